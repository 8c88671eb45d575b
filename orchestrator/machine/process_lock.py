"""A lease on a piece of work: at most one process holds it, and it is free when that process ends, however it ends."""

import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from orchestrator.machine.processes import process_space, start_time
from orchestrator.machine.waiting import wait_until


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lets one process at a time through, on one machine; the others wait."""
    lease = Lease(path)
    lease.wait(timeout_s=60.0)
    try:
        yield
    finally:
        lease.release()


class Lease:
    """An advisory lock on a file (`flock`), released by the operating system when its holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Takes the lease without waiting; False where another process holds it."""
        if self._file:
            return True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n{start_time(os.getpid())}\n{process_space()}")
            file.flush()
        except OSError:
            fcntl.flock(file, fcntl.LOCK_UN)
            raise
        self._file = file
        return True

    def holder(self) -> str:
        """Who wrote its name into the lease last."""
        return self.path.read_text().partition("\n")[0] if self.path.exists() else "nobody"

    def end_holder(self) -> None:
        """Kills the process that holds the lease, if it runs on this machine."""
        who, started, space = (self.path.read_text() + "\n\n").split("\n")[:3]
        if not space or space != process_space():
            return
        pid = int(who.split()[1])
        if start_time(pid) == started:
            os.kill(pid, signal.SIGKILL)

    def release(self) -> None:
        """Gives the lease back; nothing happens where it is not held."""
        if self._file:
            self._file.close()
            self._file = None

    def wait(self, timeout_s: float) -> None:
        """Takes the lease as soon as it is free.

        Raises:
            TimeoutError: if another process still holds it after `timeout_s`.
        """
        if not wait_until(self.acquire, timeout_s):
            raise TimeoutError(f"{self.path.parent} is still in use by {self.holder()} after {timeout_s:.0f} s.")
