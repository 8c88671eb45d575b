"""Strikes at what runs the work, each as it is made to happen in a round that is under way, and cleared after it."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.faults.hosts import Nodes, Part, option, part_of, raylets
from tests.faults.processes import records

CLOCKS: Final = ("clock_back", "second_clock_behind", "second_clock_ahead")
CLOCK_LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HOUR_S: Final = 3600
DISK_BYTES: Final = 600 << 20
"""Of the disk that is filled; PostgreSQL takes some 60 MB of it where it keeps the records."""

HOLD_S: Final = 20.0
"""How long a disk stays full, and memory scarce."""

ROOM_BYTES: Final = 32 << 20
EATER: Final = """
import sys, time
kept = []
for _ in range(60):
    kept.append(bytearray(b"1") * (4 << 20))
    time.sleep(.05)
time.sleep(60)
"""
"""Takes 240 MB, and keeps them."""


class ImpossibleError(Exception):
    """A strike needs what is not to be had here; the message says what."""


@dataclass
class Stage:
    """What strikes meet.

    Attributes:
        nodes: the machines of the cluster, where the round has several.
        group: in which all processes of the round share their memory.
        eater: the process that takes it.
        released_s: when that lets go or the disk is cleared, by the monotonic clock.
        said: what there is to say of the last strike.
        variables: what a strike adds to the environment of what starts after it.
    """

    folder: Path
    nodes: Nodes | None = None
    group: "MemoryGroup | None" = None
    eater: subprocess.Popen[bytes] | None = None
    released_s: float = 0.0
    said: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def disk(self) -> Path:
        """The folder for all that is kept."""
        return self.folder / "disk"

    @property
    def runs(self) -> Path:
        """PONDERAY_RUNS of the round."""
        return self.disk / "runs"

    @property
    def clock(self) -> Path:
        """The file that says how far the clock is off."""
        return self.folder / "clock"


class MemoryGroup:
    """A control group of memory, of either version of the kernel's interface.

    Raises:
        ImpossibleError: if none can be made here.
    """

    def __init__(self, name: str) -> None:
        first = Path("/sys/fs/cgroup/memory")
        self._is_first = first.is_dir()
        self._folder = (first if self._is_first else Path("/sys/fs/cgroup")) / name
        try:
            self._folder.mkdir()
        except OSError:
            raise ImpossibleError("no control group can be made here") from None
        if not self._file("memory.limit_in_bytes", "memory.max").exists():
            self._folder.rmdir()
            raise ImpossibleError("the controller of memory is not delegated to this user")

    @property
    def ahead(self) -> tuple[str, ...]:
        """What has a command run in the group."""
        return ("/bin/sh", "-c", f'echo $$ > {self._folder}/cgroup.procs; exec "$@"', "sh")

    def num_killed(self) -> int:
        """Processes that the kernel has killed for its limit."""
        text = self._file("memory.oom_control", "memory.events").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")))

    def limit(self) -> None:
        """Leaves little more memory than is in use."""
        usage = self._file("memory.usage_in_bytes", "memory.current").read_text(encoding="ascii")
        self._write(str(int(usage) + ROOM_BYTES))

    def free(self) -> None:
        """Takes the limit away."""
        self._write("-1" if self._is_first else "max")

    def remove(self) -> None:
        """Once none is in it."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _write(self, limit: str) -> None:
        self._file("memory.limit_in_bytes", "memory.max").write_text(limit, encoding="ascii")

    def _file(self, first: str, second: str) -> Path:
        return self._folder / (first if self._is_first else second)


@contextlib.contextmanager
def prepared(kind: str, stage: Stage) -> Iterator[None]:
    """What a strike needs from the round's start to its end.

    Raises:
        ImpossibleError: if it cannot be had here.
    """
    stage.disk.mkdir()
    if kind == "disk_full":
        with _small_disk(stage.disk):
            yield
        return
    if kind == "memory_limit":
        stage.group = MemoryGroup(f"ponderay-{os.getpid()}-{time.monotonic_ns()}")
    if kind in CLOCKS:
        stage.variables = _faked(kind, stage)
    try:
        yield
    finally:
        if stage.group:
            stage.group.remove()


def _faked(kind: str, stage: Stage) -> dict[str, str]:
    """Variables of processes with a clock of their own; how long things take stays true."""
    if not CLOCK_LIBRARY.exists() or not shutil.which("cc"):
        raise ImpossibleError(
            f"another clock needs {CLOCK_LIBRARY} (Debian: apt-get install libfaketime) and a C compiler"
        )
    sleep = stage.folder / "true_sleep.so"
    source = Path(__file__).with_name("true_sleep.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(sleep), str(source)], check=True)  # noqa: S603
    fixed = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    fixed["LD_PRELOAD"] = f"{sleep}:{CLOCK_LIBRARY}"
    if kind == "clock_back":
        stage.clock.write_text("+0\n", encoding="ascii")
        return fixed | {"FAKETIME_TIMESTAMP_FILE": str(stage.clock), "FAKETIME_CACHE_DURATION": "1"}
    return fixed | {"FAKETIME": f"{'-' if kind == 'second_clock_behind' else '+'}{HOUR_S}"}


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    options = f"size={DISK_BYTES},mode=711"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise ImpossibleError("a disk of its own needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)  # noqa: S603


def strike(kind: str, stage: Stage) -> str:
    """Lets it happen; what was seen of it, or nothing where it met nobody."""
    return _STRIKES[kind](stage)


def release(stage: Stage) -> None:
    """What was taken is given back."""
    stage.released_s = 0.0
    (stage.disk / "filler").unlink(missing_ok=True)
    if stage.eater and stage.group:
        stage.said = f"memory of a control group: {stage.group.num_killed()} processes killed by the kernel"
        stage.group.free()
        stage.eater.kill()
        stage.eater.wait()
        stage.eater = None
    if stage.clock.exists() and stage.clock.read_text(encoding="ascii").startswith("-"):
        stage.clock.write_text("+0\n", encoding="ascii")


def _kill(part: Part, of_head: bool, stage: Stage) -> str:
    node = stage.nodes.name("head" if of_head else "second") if stage.nodes else ""
    for raylet in raylets(stage.folder, node):
        if process := part_of(raylet, part):
            process.kill()
            return f"{part} killed" + (f" on the {node.rpartition(':')[2]}" if node else "")
    return ""


def _fill_disk(stage: Stage) -> str:
    size = 1 << 20
    with (stage.disk / "filler").open("wb", buffering=0) as filler:
        while size:
            try:
                filler.write(b"\1" * size)
            except OSError:
                size //= 2
        written = filler.tell()
    stage.released_s = time.monotonic() + HOLD_S
    return f"disk filled with {written >> 20} MiB for {HOLD_S:.0f} s"


def _set_clock_back(stage: Stage) -> str:
    stage.clock.write_text(f"-{HOUR_S}\n", encoding="ascii")
    return "clock set back by 1 h"


def _see_clocks(stage: Stage) -> str:
    """How far the clocks are apart, by what the second node's replicates say of when they started."""
    for journal in stage.runs.glob("replicates/*/*/journal.jsonl"):
        for record in records(journal):
            apart = record["time_ms"] / 1000 - time.time() if record["kind"] == "started" else 0.0
            if abs(apart) > HOUR_S / 2:
                return f"clock of the second node off by {apart / HOUR_S:+.1f} h"
    return ""


def _remove_session(stage: Stage) -> str:
    for raylet in raylets(stage.folder, stage.nodes.name("second") if stage.nodes else ""):
        folder = Path(option(raylet, "temp_dir"))
        if folder.is_relative_to(stage.folder) and folder != stage.folder:
            shutil.rmtree(folder, ignore_errors=True)
            return "Ray's temporary folder removed"
    return ""


def _limit_memory(stage: Stage) -> str:
    assert stage.group
    stage.group.limit()
    command = [*stage.group.ahead, sys.executable, "-c", EATER]
    stage.eater = subprocess.Popen(command)  # noqa: S603
    stage.released_s = time.monotonic() + HOLD_S
    return "memory of a control group limited"


_STRIKES: Final[Mapping[str, Callable[[Stage], str]]] = MappingProxyType(
    {
        "head_raylet_killed": lambda stage: _kill("raylet", True, stage),
        "second_node_lost": lambda stage: stage.nodes.lose() if stage.nodes else "",
        "agent_killed": lambda stage: _kill("agent", False, stage),
        "log_monitor_killed": lambda stage: _kill("log_monitor", False, stage),
        "disk_full": _fill_disk,
        "clock_back": _set_clock_back,
        "second_clock_behind": _see_clocks,
        "second_clock_ahead": _see_clocks,
        "session_removed": _remove_session,
        "memory_limit": _limit_memory,
    }
)
KINDS: Final = tuple(_STRIKES)
