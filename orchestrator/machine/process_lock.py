"""A lease on a piece of work: at most one process holds it, and it is free when that process ends, however it ends."""

import errno
import fcntl
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from orchestrator.machine.durable_files import LinkError, make_folder, open_itself
from orchestrator.machine.processes import process_space, start_time
from orchestrator.machine.waiting import wait_until
from trainables.errors import InputError

HELD_S: Final = 60.0
PROCESS: Final = re.compile(r"process (\d+) on ")


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lets one process at a time through, on one machine; the others wait.

    Raises:
        InputError: if another one, which may have been stopped, is in it for a minute.
    """
    lease = Lease(path)
    try:
        lease.wait(timeout_s=HELD_S)
    except TimeoutError as error:
        raise InputError(f"{error} Let that process go on, or end it, and try again.") from None
    try:
        yield
    finally:
        lease.release()


def _without_locks(path: Path, error: OSError) -> Exception:
    """The error in one sentence where the file system knows no locks, as Lustre without `-o flock`; else itself."""
    if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        return error
    remedy = "mount it with them (Lustre: `-o flock`), or set PONDERAY_RUNS to a local folder and PONDERAY_STORAGE"
    return InputError(f"{path} must lie where files can be locked, but: {error.strerror}; {remedy} to a bucket.")


def _open_private(path: str, flags: int) -> int:
    number = open_itself(path, flags, 0o600)
    os.fchmod(number, 0o600)  # one of an earlier version, too
    return number


class Lease:
    """An advisory lock on a file (`flock`), released by the operating system when its holder dies.

    Args:
        is_private: whether only its owner may open the file; whoever may can also hold it.
    """

    def __init__(self, path: Path, is_private: bool = False) -> None:
        self.path, self._is_private = path, is_private
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Takes the lease without waiting; False where another process holds it."""
        if self._file:
            return True
        try:
            make_folder(self.path.parent)
            file = open(self.path, "a+", opener=_open_private if self._is_private else open_itself)  # noqa: SIM115
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise InputError(
                f"{self.path} must be a file in a folder, but it cannot be made ({error.strerror}); move away what is "
                "in its place."
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        except OSError as error:
            file.close()
            raise _without_locks(self.path, error) from None
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n{start_time(os.getpid())}\n{process_space()}")
            file.flush()
        except OSError:
            fcntl.flock(file, fcntl.LOCK_UN)
            raise
        self._file = file
        return True

    def is_held(self) -> bool:
        """Whether any process holds the lease; looking leaves no trace."""
        try:
            file = open(self.path, opener=open_itself)  # noqa: SIM115
        except (FileNotFoundError, NotADirectoryError, LinkError):
            return False
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError as error:
                raise _without_locks(self.path, error) from None
        return False

    def holder(self) -> str:
        """Who wrote its name into the lease last."""
        return self._read().partition("\n")[0] if self.path.exists() else "nobody"

    def end_holder(self) -> None:
        """Kills the process that holds the lease, if it runs on this machine."""
        holder, started, space = (self._read() + "\n\n").split("\n")[:3]
        process = PROCESS.match(holder)
        if process and space and space == process_space() and start_time(int(process[1])) == started:
            os.kill(int(process[1]), signal.SIGKILL)

    def _read(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")

    def release(self) -> None:
        """Gives the lease back, also where a forked child has the file open; nothing happens where it is not held."""
        if self._file:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.leave()

    def leave(self) -> None:
        """Closes a forked child's copy, which is its parent's to release."""
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
