"""The folder of a tracking server: who serves from it, so that there is at most one server, and how it is ended."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]

from orchestrator.machine.durable_files import make_folder
from orchestrator.machine.network import free_port, is_free, link
from orchestrator.machine.process_lock import Lease
from orchestrator.machine.processes import process_space, start_time
from orchestrator.machine.waiting import wait_until
from orchestrator.server.postgres import Postgres
from trainables.errors import InputError

MARK: Final = "_PONDERAY_SERVES_FROM"
"""A variable of every process that serves MLflow, by which it is found whatever became of its parent."""
END_S: Final = 15.0
STOP_S: Final = 60.0


@dataclass(frozen=True)
class Serving:
    """The process that serves from a folder; it looks after all others.

    Attributes:
        started: when, by its operating system, which is named by `space`.
        is_ready: whether requests are answered.
    """

    pid: int
    started: str
    space: str
    host: str
    port: int
    is_ready: bool

    @property
    def is_alive(self) -> bool:
        """Whether it is there, as far as this machine can see."""
        return self.space == process_space() and start_time(self.pid) == self.started

    @property
    def link(self) -> str:
        """Its address on this machine."""
        return link(self.host, self.port)

    def end(self) -> None:
        """Has it end in order, and waits for that.

        Raises:
            InputError: if it does not, or is another user's.
        """
        try:
            os.kill(self.pid, signal.SIGTERM)
        except PermissionError:
            raise InputError(f"The server at {self.link} belongs to another user (process {self.pid}).") from None
        except ProcessLookupError:
            return
        if not wait_until(lambda: not self.is_alive, STOP_S):
            raise InputError(f"The server at {self.link} (process {self.pid}) does not end within {STOP_S:.0f} s.")


@dataclass(frozen=True)
class ServerFolder:
    """What a server needs to be found again, below `path`."""

    path: Path

    def make(self) -> None:
        """Makes the folder for its owner alone; where root serves, PostgreSQL's user may pass through."""
        try:
            if not self.path.exists():
                make_folder(self.path)
                self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise InputError(f"{self.path} cannot be created: {error.strerror}; name a folder by `--folder`.") from None
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise InputError(f"`--folder` must be one that you can write to, but {self.path} is not.")

    @property
    def log(self) -> Path:
        """What a server in the background has to say."""
        return self.path / "server.log"

    def serving(self) -> Serving | None:
        """Who serves here now."""
        try:
            serving = Serving(**json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return serving if serving.is_alive else None

    @contextmanager
    def held(self, host: str, port: int) -> Iterator[None]:
        """Makes this process the one that serves here.

        Raises:
            InputError: if there is one already.
        """
        lease = Lease(self._lock, is_private=True)
        if not lease.acquire():
            where = f" at {serving.link}" if (serving := self.serving()) else ""
            raise InputError(
                f"A server of {self.path} already runs{where} ({lease.holder()}); `ponderay serve --stop` ends it."
            )
        try:
            self.write(host, port, is_ready=False)
            yield
        finally:
            self._state.unlink(missing_ok=True)
            lease.release()

    def write(self, host: str, port: int, is_ready: bool) -> None:
        """Has this process found as the one that serves here."""
        own = Serving(os.getpid(), start_time(os.getpid()), process_space(), host, port, is_ready)
        part = self._state.with_suffix(".part")
        part.write_text(json.dumps(asdict(own)), encoding="utf-8")
        part.replace(self._state)

    def was_used(self) -> bool:
        """Whether a server was ever started here; true where only another user can see it."""
        try:
            return self._lock.exists()
        except PermissionError:
            return True

    def stop(self) -> bool:
        """Ends whoever serves here, and what one that was killed has left; returns whether there was anything.

        Raises:
            InputError: if it does not end, is another user's or runs on another machine.
        """
        try:
            serving, is_there = self.serving(), self._lock.exists()
        except PermissionError:
            raise InputError(f"{self.path} belongs to another user, and only that user can end its server.") from None
        if serving:
            serving.end()
        if not is_there:
            return False
        lease = Lease(self._lock, is_private=True)
        if not lease.acquire():
            raise InputError(f"{self.path} is in use by {lease.holder()}; end it there.")
        try:
            return self.end_left_over() or serving is not None
        finally:
            lease.release()

    def end_left_over(self) -> bool:
        """Ends processes of MLflow and PostgreSQL that nobody looks after; returns whether there were any."""
        were_any = self.end_processes()
        if not self._postgres.exists():
            return were_any
        postgres = self.postgres()
        were_any = were_any or postgres.is_running()
        postgres.stop()
        return were_any

    def end_processes(self) -> bool:
        """Ends every process that serves MLflow from here; returns whether there were any."""
        were_any = bool(self._marked())
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            wait_until(lambda: not self._marked(), END_S)
        return were_any

    def postgres(self) -> Postgres:
        """Its own PostgreSQL, on the port that it had before unless another has that now."""
        file = self.path / "postgres.port"
        written = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        port = int(written) if written.isascii() and written.isdigit() else 0  # a full disk may have left it empty
        postgres = Postgres(self._postgres, port)
        if port and (postgres.is_running() or is_free("127.0.0.1", port)):
            return postgres
        port = free_port()
        file.write_text(str(port), encoding="ascii")
        return Postgres(postgres.folder, port)

    @property
    def _state(self) -> Path:
        return self.path / "server.json"

    @property
    def _lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def _postgres(self) -> Path:
        return self.path / "postgres"

    def _marked(self) -> list[int]:
        pids = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == str(self.path):
                    pids.append(int(process.pid))
        return pids
