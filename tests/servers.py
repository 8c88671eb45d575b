"""Tracking servers for the tests that want one: `ponderay serve` in a folder of its own, with PostgreSQL."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.environment.credentials import Credentials, administrator
from orchestrator.machine.network import free_port
from orchestrator.server.folder import MARK
from orchestrator.server.postgres import Postgres, find_program
from trainables.errors import InputError

STOP_S = 60
COMMAND = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "serve"]


@dataclass
class Server:
    """`ponderay serve` in `folder`, for a user whose home is in it.

    Attributes:
        options: beside host, port and folder.
        variables: beside those of this process.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    options: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        """For clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def kept(self) -> Path:
        """What the server keeps."""
        return self.folder / "server"

    @property
    def user(self) -> Credentials:
        """The one that the server was made with."""
        return administrator(self.kept)

    def call(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """`ponderay serve OPTIONS`, once it has ended."""
        command, environment = self._command(*options)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)  # noqa: S603

    def start(self) -> None:
        """In the background; answers when this returns."""
        done = self.call("--background")
        assert done.returncode == 0, done.stderr + done.stdout

    def stop(self) -> None:
        """Ends what is left of it, however it ended."""
        self.call("--stop")

    def open(self, *options: str) -> "subprocess.Popen[str]":
        """`ponderay serve OPTIONS`, while it goes on, as the first of its group."""
        command, environment = self._command(*options)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)  # noqa: S603

    def _command(self, *options: str) -> tuple[list[str], dict[str, str]]:
        named = ["--folder", str(self.kept), "--port", str(self.port)]
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return [*COMMAND, *named, *self.options, *options], os.environ | {"HOME": str(home)} | self.variables

    def processes(self) -> list[psutil.Process]:
        """Those of MLflow and of PostgreSQL's first one, and the one that looks after them."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                arguments = process.cmdline()
                is_ours = str(self.kept) in arguments or f"{self.kept}/postgres/data" in arguments
                if is_ours or process.environ().get(MARK) == str(self.kept):
                    found.append(process)
        return found

    def client(self) -> dict[str, str]:
        """The variables with which a client may do everything here."""
        return {
            "PONDERAY_TRACKING_URI": self.uri,
            "MLFLOW_TRACKING_USERNAME": self.user.user,
            "MLFLOW_TRACKING_PASSWORD": self.user.password,
        }

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | str | bytes | None = None,
        user: Credentials | None = None, host: str = "", origin: str = "",
    ) -> tuple[int, bytes]:  # fmt: skip
        """Status and body of the answer; nothing in the path is mended on the way, as clients do it."""
        headers = {name: text for name, text in {"Host": host, "Origin": origin}.items() if text}
        if user:
            headers["Authorization"] = _named(user)
        if isinstance(body, Mapping | str):
            headers["Content-Type"], body = "application/json", json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @property
    def authorization(self) -> str:
        """The header of that name, with which the server's own user is let in."""
        return _named(self.user)

    def status(self, line: str, headers: str) -> int:
        """Of the answer to a request of which its first line and its headers alone are sent, each with its end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            request = f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{headers}\r\n"
            connection.sendall(request.encode("latin-1"))
            with connection.makefile("rb") as answer:
                return int(answer.readline().split()[1])


def _named(user: Credentials) -> str:
    return "Basic " + b64encode(f"{user.user}:{user.password}".encode()).decode()


def arguments_of_all() -> str:
    """Of every process of this machine, which everybody on it can see."""
    return " ".join(word for process in psutil.process_iter(["cmdline"]) for word in process.info["cmdline"] or ())


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user can enter; skips where PostgreSQL is not installed."""
    try:
        find_program("initdb")
    except InputError as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="tracking-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """PostgreSQL alone, made and running."""
    with server_folder() as folder:
        running = Postgres(folder / "postgres", free_port())
        try:
            running.start()
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="session")
def tracking_server() -> Iterator[Server]:
    """One that all tests share; they add to it and neither stop it nor change its users' passwords.

    It is lab.example too, by itself and behind a proxy with TLS.
    """
    with server_folder() as folder:
        server = Server(folder)
        server.variables["MLFLOW_SERVER_ALLOWED_HOSTS"] = f"lab.example,lab.example:{server.port}"
        server.variables["MLFLOW_SERVER_CORS_ALLOWED_ORIGINS"] = "https://lab.example"
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def unmade_server() -> Iterator[Server]:
    """One in a new folder, ended at the end however it ended before."""
    with server_folder() as folder:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()
            for process in server.processes():
                process.send_signal(signal.SIGKILL)


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One that the test makes, ends and damages as it likes."""
    with unmade_server() as server:
        yield server


@pytest.fixture
def client(tracking_server: Server, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The shared server, with this process one of its clients, in a working folder of its own."""
    for name, value in tracking_server.client().items():
        monkeypatch.setenv(name, value)
    return tracking_server


OLDER_STORE = "bd07f7e963c5"
OLDER_USERS = "2ed73881770d"


def older_store(uri: str, experiment: str) -> str:
    """Makes a store at `uri` as an older MLflow did, with an experiment; returns the revision of its tables."""
    from alembic.command import upgrade
    from mlflow.store.db.utils import InitialBase, _get_alembic_config
    from sqlalchemy import create_engine, text

    engine = create_engine(uri)
    InitialBase.metadata.create_all(engine)
    config = _get_alembic_config(uri)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        upgrade(config, OLDER_STORE)
    with engine.begin() as connection:
        columns = "(experiment_id, name, artifact_location, lifecycle_stage)"
        values = "(7, :name, 'mlflow-artifacts:/7', 'active')"
        connection.execute(text(f"INSERT INTO experiments {columns} VALUES {values}"), {"name": experiment})
    engine.dispose()
    return OLDER_STORE


def older_users(uri: str) -> str:
    """Makes a users' database at `uri` as an older MLflow did; returns the revision of its tables."""
    from mlflow.server.auth.db.utils import migrate
    from sqlalchemy import create_engine

    engine = create_engine(uri)
    migrate(engine, OLDER_USERS)
    engine.dispose()
    return OLDER_USERS
