"""What can be told of a process from outside: whether it is the one that was meant, and the memory it has taken."""

import contextlib
import os
import resource
import signal
from pathlib import Path


def process_space() -> str:
    """Names this boot of this machine and, in a container, its own numbering of processes; empty where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """The start of a process in clock ticks since boot; "ended" for a zombie, empty where nothing is visible of it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else fields[19]


def is_gone(pid: int, started: str) -> bool:
    """Whether the process that had this number when it started is surely no more; others' may be hidden."""
    now = start_time(pid)
    if now:
        return now != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def with_variable(name: str, value: str) -> dict[int, str]:
    """When each of this user's processes that were started with the environment variable `name=value` began."""
    variable, starts = f"{name}={value}".encode(), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable in variables and (started := start_time(int(folder.name))) not in ("", "ended"):
            starts[int(folder.name)] = started
    return starts


def children(of: int) -> dict[int, str]:
    """When each process that was started by the process `of`, which still lives, began."""
    starts = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == of:
                starts[int(folder.name)] = fields[19]
    return starts


def kill(pid: int, started: str) -> None:
    """Ends a process at once, unless it has ended and another has its number."""
    if start_time(pid) == started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def peak_memory_bytes() -> int:
    """The most memory that this process has held at once."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
