"""MLflow for several machines: behind passwords, on PostgreSQL, with artifacts that clients reach through it alone.

One process looks after MLflow's and PostgreSQL's, and ends them with itself.
"""

import http.client
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console

from orchestrator.console.exit_codes import FAILED
from orchestrator.environment.credentials import administrator, hand_to_client
from orchestrator.machine.network import allowed_hosts, allowed_origins, check_free, link
from orchestrator.server.environment import environment
from orchestrator.server.folder import ServerFolder
from orchestrator.server.postgres import Postgres
from orchestrator.tracking.store import address

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UVICORN: Final = "--log-level warning --no-access-log --timeout-graceful-shutdown 10"
LOOK_S: Final = 2.0
"""How often it is seen whether all that serves is there."""
APP: Final = "ponderay"
"""The name in the package's metadata under which MLflow finds `orchestrator.server.app:create_app`."""


@dataclass(frozen=True)
class TrackingServer:
    """A server and where it keeps things.

    Attributes:
        artifacts: a folder, or s3://BUCKET/FOLDER.
        store: PostgreSQL's address; empty for a PostgreSQL of its own in `folder`.
        users_store: the users' database beside a `store` that is not its own; empty for a file in `folder`.
    """

    folder: ServerFolder
    host: str
    port: int
    artifacts: str
    store: str = ""
    users_store: str = ""

    @property
    def link(self) -> str:
        """Its address on this machine."""
        return link(self.host, self.port)

    def run(self, console: Console) -> int:
        """Serves until a signal asks it to end, and returns 0; another exit code where MLflow or its PostgreSQL ends.

        Raises:
            InputError: if one serves from this folder already, the port is taken, or PostgreSQL does not start.
        """
        self.folder.make()
        with self.folder.held(self.host, self.port):
            handlers = {number: signal.getsignal(number) for number in SIGNALS}
            before = {number: own for number, own in handlers.items() if own is not signal.SIG_IGN}  # nohup's stays so
            for number in before:
                signal.signal(number, _interrupt)
            try:
                self.folder.end_processes()
                check_free(self.host, self.port, "is another server running there?")
                return self._serve(console)
            except KeyboardInterrupt:
                return 0
            finally:
                _ignore_signals()
                self.folder.end_left_over()
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _serve(self, console: Console) -> int:
        if self.store:
            postgres = None
            store, users = address(self.store), address(self.users_store or f"sqlite:///{self.folder.path}/users.db")
        else:
            postgres = self.folder.postgres()
            postgres.start()
            store, users = postgres.uri("mlflow"), postgres.uri("mlflow_users")
        variables = environment(self.folder.path, store, users, self.artifacts, allowed_origins(self.host, self.port))
        mlflow = subprocess.Popen(  # noqa: S603
            self._command(), env=variables, cwd=self.folder.path, process_group=0, umask=0o077
        )
        try:
            while not answers(self.host, self.port):
                if mlflow.poll() is not None:
                    return mlflow.returncode or FAILED
                time.sleep(0.2)
            self.describe(console)
            self.folder.write(self.host, self.port, is_ready=True)
            return _ended(mlflow, postgres, console)
        finally:
            _ignore_signals()
            self.folder.end_processes()
            mlflow.wait()

    def describe(self, console: Console) -> None:
        """Says how it is used; puts the password where this user's clients look, unless there is one."""
        user = administrator(self.folder.path)
        token = b64encode(f"{user.user}:{user.password}".encode()).decode()
        path = "/api/2.0/mlflow/users/current"
        if answers(self.host, self.port, path, {"Authorization": f"Basic {token}"}):
            passwords = hand_to_client(self.folder.path)
        else:
            passwords = (
                f"The password in {self.folder.path}/credentials is not that of {user.user} in the users' database, "
                "where it was changed, or set by a server in another folder. Clients need that one in "
                "~/.mlflow/credentials."
            )
        for line in (
            f"Tracking server: {self.link}",
            f"Clients: export PONDERAY_TRACKING_URI={self.link}",
            passwords,
        ):
            console.print(line, markup=False, soft_wrap=True)

    def _command(self) -> list[str]:
        options = {
            "--host": self.host,
            "--port": str(self.port),
            "--workers": "1",
            "--app-name": APP,
            "--allowed-hosts": ",".join(allowed_hosts(self.host, self.port)),
            "--uvicorn-opts": UVICORN,
        }
        program = [sys.executable, "-P", "-m", "orchestrator.server.process"]
        return [*program, *(text for option in options.items() for text in option)]


def _ended(mlflow: "subprocess.Popen[bytes]", postgres: Postgres | None, console: Console) -> int:
    """How MLflow has ended; FAILED where PostgreSQL has, without which MLflow answers but cannot read or write."""
    while (code := mlflow.poll()) is None:
        if postgres and not postgres.is_running():
            console.print(f"PostgreSQL in {postgres.folder} has ended.", markup=False, soft_wrap=True)
            return FAILED
        time.sleep(LOOK_S)
    return code or FAILED


def answers(host: str, port: int, path: str = "/health", headers: Mapping[str, str] | None = None) -> bool:
    """Whether a server on this machine answers that all is well."""
    parts = urlsplit(link(host, port))
    connection = http.client.HTTPConnection(parts.hostname or host, port, timeout=5)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """What is ending is not to be cut off."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
