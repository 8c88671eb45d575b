"""One round: a sweep is run, and run again whenever its driver has ended, while faults befall it."""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.faulty import checks
from benchmarks.faulty.injectors import ENDS_DRIVER, Fault, Scene, inject, notice, withdraw
from benchmarks.faulty.places import Database, TrackingServer, TwoNodes
from benchmarks.faulty.processes import MARK, kill_all, left_after, num_reports
from benchmarks.faulty.schedule import Round
from benchmarks.faulty.sweeps import NUM_STEPS

LIMIT_S: Final = 600.0
"""A round that takes longer has failed."""

MAX_DRIVERS: Final = 15
LOOK_S: Final = 0.15
ROOT: Final = Path(__file__).parents[2]
STRANGE: Final = (
    *(f"PONDERAY_{name}" for name in ("STORAGE", "TRACKING_URI", "SEARCH_URI")),
    *(f"RAY_{name}" for name in ("ADDRESS", "AUTH_MODE", "TMPDIR")),
)
AWAY: Final = ("tracking_away", "database_away")
SAID_AWAY: Final = "The tracking store is unavailable"


@dataclass
class Course:
    """How a round went.

    Attributes:
        problems: everything that should not be; empty where the round has passed.
    """

    num_drivers: int = 0
    duration_s: float = 0.0
    problems: list[str] = field(default_factory=list)


def run(one: Round, folder: Path, rng: random.Random) -> Course:
    """Runs a round in `folder` and looks at what it leaves; ends all of its processes, however it ends."""
    started, course = time.monotonic(), Course()
    (folder / "runs").mkdir(parents=True)
    with environment(folder):
        server = cluster = database = None
        is_done = False
        try:
            if one.store == "postgresql":
                database = Database(folder / "postgresql")
                os.environ["PONDERAY_TRACKING_URI"] = database.tracking_uri
                os.environ["PONDERAY_SEARCH_URI"] = database.search_uri
            if one.place == "server":
                store = database.tracking_uri if database else f"sqlite:///{folder / 'server.db'}"
                server = TrackingServer(folder, os.environ, store)
                os.environ["PONDERAY_TRACKING_URI"] = server.uri
            if one.place == "cluster":
                cluster = TwoNodes()
                os.environ["RAY_ADDRESS"] = cluster.address
            scene = Scene(folder, rng, cluster, server, database)
            _course(one, scene, course)
            is_done = True
            course.problems += checks.check(one.sweep, folder / "runs")
            if cluster:
                course.problems += _left_in(cluster)
        except TimeoutError as error:
            course.problems.append(str(error))
        finally:
            if not is_done:
                kill_all(folder)
            _close(server, cluster, database)
            course.problems += _leaks(folder)
    course.duration_s = time.monotonic() - started
    return course


@contextlib.contextmanager
def environment(folder: Path) -> Iterator[None]:
    """Every process started in the block belongs to the round."""
    before = dict(os.environ)
    path = os.pathsep.join([str(ROOT), before.get("PYTHONPATH", "")])
    places = {"PONDERAY_RUNS": str(folder / "runs"), "PONDERAY_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    places["PONDERAY_CLUSTER_WAIT"] = "1"  # of minutes: a head that is killed stays away, and the command has to end
    for name in STRANGE:
        os.environ.pop(name, None)
    os.environ.update({MARK: str(folder), "OMP_NUM_THREADS": "1", "PYTHONPATH": path.rstrip(os.pathsep)} | places)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _course(one: Round, scene: Scene, course: Course) -> None:
    deadline = time.monotonic() + LIMIT_S
    code: int | None = None
    while code != 0:
        if course.num_drivers == MAX_DRIVERS:
            raise TimeoutError(f"The sweep is not done after {MAX_DRIVERS} drivers.")
        course.num_drivers += 1
        scene.driver = _driver(one, scene.folder, course.num_drivers)
        code, is_asked = _watch(one, scene, scene.driver, deadline)
        if code and not is_asked:
            course.problems.append(f"driver {course.num_drivers} ended by itself with {code}: {_last_line(scene)}")
        time.sleep(scene.rng.uniform(0, 2) if code else 0)
    for fault in one.faults:
        notice(fault)
        withdraw(fault)
        if fault.kind in AWAY and fault.is_struck:
            fault.is_struck = SAID_AWAY in (scene.folder / "driver.log").read_text(encoding="utf-8", errors="replace")
    for _, happen in scene.later:
        happen()
    if scene.server:
        scene.server.wait()


def _driver(one: Round, folder: Path, number: int) -> "subprocess.Popen[bytes]":
    with (folder / "driver.log").open("ab") as log:
        log.write(f"--- driver {number}\n".encode())
        log.flush()
        command = [sys.executable, "-m", "benchmarks.faulty.sweeps", one.sweep, str(folder / "orders")]
        return subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )


def _watch(one: Round, scene: Scene, driver: "subprocess.Popen[bytes]", deadline: float) -> tuple[int, bool]:
    """Lets faults happen until the driver ends; its code, and whether one of them ended it or kept it from starting."""
    started, is_asked = time.monotonic(), False
    while (code := driver.poll()) is None:
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(
                f"The sweep is not done after {LIMIT_S:g} s, with {num_reports(scene.runs)} steps reported."
            )
        for due_s, happen in list(scene.later):
            if now >= due_s:
                scene.later.remove((due_s, happen))
                happen()
        share = num_reports(scene.runs) / NUM_STEPS[one.sweep]
        for fault in one.faults:
            if not fault.is_injected and _is_due(fault, share, started):
                inject(fault, scene)
                if fault.is_injected:
                    _note(scene, fault)
                    is_asked |= fault.kind in ENDS_DRIVER
        is_asked |= not scene.can_be_reached()
        time.sleep(LOOK_S)
    return code, is_asked


def _is_due(fault: Fault, share: float, started_s: float) -> bool:
    now = time.monotonic()
    if not fault.due_s and share >= fault.moment:
        fault.due_s = (now if fault.moment else started_s) + fault.delay_s
    return bool(fault.due_s) and now >= fault.due_s


def _note(scene: Scene, fault: Fault) -> None:
    with (scene.folder / "driver.log").open("a", encoding="utf-8") as log:
        log.write(f"--- {time.strftime('%H:%M:%S')} {fault.kind} {fault.order.name if fault.order else ''}\n")


def _last_line(scene: Scene) -> str:
    lines = (scene.folder / "driver.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _left_in(cluster: TwoNodes) -> list[str]:
    deadline = time.monotonic() + checks.LEFT_S
    while (left := cluster.left()) and time.monotonic() < deadline:
        time.sleep(1)
    return [f"{one} is left in the cluster" for one in left]


def _close(server: TrackingServer | None, cluster: TwoNodes | None, database: Database | None) -> None:
    if server:
        server.kill()
    if cluster:
        cluster.shutdown()
    if database:
        database.stop()


def _leaks(folder: Path) -> list[str]:
    """Processes left behind, which are ended then."""
    left = checks.leaks(folder)
    if left_after(folder, 0):
        kill_all(folder)
    return left
