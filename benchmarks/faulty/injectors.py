"""Faults, each as it is made to happen in a round that is under way."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.faulty import orders
from benchmarks.faulty.places import Database, TrackingServer, TwoNodes
from benchmarks.faulty.processes import Worker, records, workers

ENDS_DRIVER: Final = ("driver_sigterm", "driver_sigint", "driver_killed", "driver_and_worker_killed")
ORDERED: Final = ("hung", "host_memory", "cuda_memory", "disk_full", "process_changed")
ALWAYS: Final = ("nan", "exception")
"""Conditions of the listed sweep, in every run of it."""

BUSY: Final = ("worker_killed", "worker_stopped", "damaged_newest", "damaged_best")
GENERAL: Final = (*BUSY, *ORDERED, *ENDS_DRIVER)
"""What can happen anywhere."""

KINDS: Final = (*GENERAL, "node_lost", "tracking_away", "database_away", *ALWAYS)
AWAY_S: Final = (10.0, 20.0)
"""How long a server stays away."""


@dataclass
class Fault:
    """One fault of a round.

    Attributes:
        moment: share of the sweep's steps after which it is due; 0 is the start of a driver.
        delay_s: how much later than that.
        is_struck: whether it met somebody.
        order: the file that orders it, where a worker carries it out itself.
    """

    kind: str
    moment: float
    delay_s: float
    due_s: float = 0.0
    is_injected: bool = False
    is_struck: bool = False
    order: Path | None = None


@dataclass
class Scene:
    """What faults meet: a round under way.

    Attributes:
        later: what is still to happen, by the monotonic clock.
    """

    folder: Path
    rng: random.Random
    cluster: TwoNodes | None
    server: TrackingServer | None
    database: Database | None
    driver: subprocess.Popen[bytes] | None = None
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        """PONDERAY_RUNS of the round."""
        return self.folder / "runs"

    def can_be_reached(self) -> bool:
        """Whether a driver could open the stores now."""
        return (self.server is None or self.server.is_up()) and (self.database is None or self.database.is_up())

    def worker(self, node: str = "") -> Worker | None:
        """One at work, drawn; on `node` where that is given."""
        found = [worker for worker in workers(self.runs) if node in ("", worker.node_id)]
        return self.rng.choice(found) if found else None


def inject(fault: Fault, scene: Scene) -> None:
    """Lets `fault` happen; where nobody is there whom it could strike, it is as if it was not injected."""
    if fault.kind in ORDERED:
        variants = list(orders.FULL_BYTES) if fault.kind == "disk_full" else [fault.kind]
        name = f"{scene.rng.choice(variants)} {scene.rng.getrandbits(32):08x}"
        fault.order, fault.is_injected = orders.give(scene.folder / "orders", name), True
        return
    fault.is_injected = fault.is_struck = _STRIKES[fault.kind](scene)


def notice(fault: Fault) -> None:
    """Sees whether what was ordered has struck."""
    if fault.order:
        fault.is_struck = fault.order.with_suffix(".taken").exists()


def withdraw(fault: Fault) -> None:
    """Takes back an order that nobody took."""
    if fault.order:
        fault.order.unlink(missing_ok=True)


def _kill_worker(scene: Scene) -> bool:
    worker = scene.worker()
    return bool(worker and worker.send(signal.SIGKILL))


def _stop_worker(scene: Scene) -> bool:
    worker = scene.worker()
    if worker and worker.send(signal.SIGSTOP):
        return True
    if worker:
        worker.send(signal.SIGCONT)
    return False


def _damage(scene: Scene, which: Callable[[Path], Path | None]) -> bool:
    """The worker is stopped first, so that what is damaged still is what it was."""
    worker = scene.worker()
    if not worker or not worker.send(signal.SIGSTOP):
        if worker:
            worker.send(signal.SIGCONT)
        return False
    file = which(worker.folder)
    if file is None:
        worker.send(signal.SIGCONT)
        return False
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 16] = bytes(byte ^ 0xFF for byte in content[middle : middle + 16])
    file.write_bytes(content)
    worker.send(signal.SIGKILL)
    return True


def _checkpoints(folder: Path) -> dict[int, Path]:
    found = {int(file.name.split(".")[0].removeprefix("step_")): file for file in folder.glob("step_*.pt")}
    return dict(sorted(found.items()))


def _newest(folder: Path) -> Path | None:
    found = list(_checkpoints(folder).values())
    return found[-1] if found else None


def _best(folder: Path) -> Path | None:
    """The best so far; None where that is the newest, or that of a prerequisite."""
    found = _checkpoints(folder)
    rows = {row["step"]: row["metrics"] for row in records(folder / "journal.jsonl") if row["kind"] == "metrics"}
    errors = {step: rows[step].get("valid_error@plain") for step in found if step in rows}
    known = {step: error for step, error in errors.items() if error is not None}
    best = min(known, key=lambda step: (known[step], step), default=None)
    return None if best is None or best == max(found) else found[best]


def _signal_driver(scene: Scene, number: signal.Signals) -> bool:
    if scene.driver is None or scene.driver.poll() is not None:
        return False
    os.kill(scene.driver.pid, number)
    return True


def _interrupt_driver(scene: Scene) -> bool:
    """Ctrl-C in a terminal goes to the whole group of processes."""
    if scene.driver is None or scene.driver.poll() is not None:
        return False
    os.killpg(scene.driver.pid, signal.SIGINT)
    return True


def _kill_driver_and_worker(scene: Scene) -> bool:
    worker = scene.worker()
    if worker is None or not _signal_driver(scene, signal.SIGKILL):
        return False
    return worker.send(signal.SIGKILL)


def _lose_node(scene: Scene) -> bool:
    """Only while somebody works there; another node comes some seconds later."""
    assert scene.cluster is not None
    second = scene.cluster.second
    if not second or scene.worker(second) is None:
        return False
    scene.cluster.lose()
    scene.later.append((time.monotonic() + scene.rng.uniform(3, 8), scene.cluster.add))
    return True


def _stop_server(scene: Scene) -> bool:
    """With the database behind it, where that is a server too."""
    server, database = scene.server, scene.database
    assert server is not None
    if not scene.can_be_reached() or scene.worker() is None:
        return False
    server.kill()
    if database:
        database.crash()

    def start() -> None:
        if database:
            database.start()
        server.start()

    scene.later.append((time.monotonic() + scene.rng.uniform(*AWAY_S), start))
    return True


def _crash_database(scene: Scene) -> bool:
    assert scene.database is not None
    if not scene.can_be_reached() or scene.worker() is None:
        return False
    scene.database.crash()
    scene.later.append((time.monotonic() + scene.rng.uniform(*AWAY_S), scene.database.start))
    return True


_STRIKES: Final[dict[str, Callable[[Scene], bool]]] = {
    "worker_killed": _kill_worker,
    "worker_stopped": _stop_worker,
    "damaged_newest": lambda scene: _damage(scene, _newest),
    "damaged_best": lambda scene: _damage(scene, _best),
    "driver_sigterm": lambda scene: _signal_driver(scene, signal.SIGTERM),
    "driver_sigint": _interrupt_driver,
    "driver_killed": lambda scene: _signal_driver(scene, signal.SIGKILL),
    "driver_and_worker_killed": _kill_driver_and_worker,
    "node_lost": _lose_node,
    "tracking_away": _stop_server,
    "database_away": _crash_database,
}
