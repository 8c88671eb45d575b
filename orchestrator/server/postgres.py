"""A PostgreSQL server of Ponderay's own, from the machine's package: for tracking and searches of several machines.

It lives in one folder, listens on loopback only and asks for a password, which is made with it. PostgreSQL refuses to
be started by root; then it runs as the user `postgres`, which Debian's package makes.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]

from orchestrator.environment.credentials import secret_in, write_secret
from orchestrator.machine.durable_files import make_folder, sync
from orchestrator.tracking.store import with_driver
from trainables.errors import InputError

USER: Final = "ponderay"
SYSTEM_USER: Final = "postgres"
DATABASES: Final = ("mlflow", "mlflow_users", "optuna")
PACKAGED: Final = Path("/usr/lib/postgresql")
START_S: Final = 60
REMEDY: Final = "On Debian and Ubuntu `apt-get install postgresql` brings one (`postgresql-15` version 15)."
OPTIONS: Final = (
    "-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 -c log_checkpoints=off"
)


@dataclass(frozen=True)
class Postgres:
    """A server in `folder`, made when first started.

    Attributes:
        port: of loopback.
    """

    folder: Path
    port: int

    def uri(self, database: str) -> str:
        """The address of one of the databases, with the password."""
        return with_driver(f"postgresql://{USER}:{self._password()}@127.0.0.1:{self.port}/{database}")

    def start(self) -> None:
        """Makes and starts the server, with its databases; nothing happens where it runs.

        Raises:
            InputError: if PostgreSQL is not installed, or does not start.
        """
        if self.is_running():
            return
        if not self._data.exists():
            self._make()
        if self._process() is not None:  # one that was killed left its number, which another process has by now
            self._lock.unlink()
        log, options = str(self._data / "server.log"), f"-c port={self.port} {OPTIONS}"
        self._run("pg_ctl", "start", "-w", "-t", str(START_S), "-l", log, "-o", options, "-D", str(self._data))
        known = self._run("psql", "-At", "-c", "SELECT datname FROM pg_database", "postgres").split()
        for database in DATABASES:
            if database not in known:
                self._run("createdb", database)

    def stop(self) -> None:
        """Ends the server, which writes everything first; nothing happens where it does not run."""
        if self.is_running():
            self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._data))

    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        process = self._process()
        try:
            return process is not None and str(self._data) in process.cmdline()
        except psutil.NoSuchProcess:  # or a dead one that nobody has buried
            return False

    def _process(self) -> psutil.Process | None:
        """Whatever has the number that the server had when it started."""
        try:
            return psutil.Process(int(self._lock.read_text(encoding="utf-8").partition("\n")[0]))
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None

    @property
    def _data(self) -> Path:
        return self.folder.resolve() / "data"

    @property
    def _lock(self) -> Path:
        return self._data / "postmaster.pid"

    def _make(self) -> None:
        """Makes the server under another name first, so that what was cut off is made anew."""
        make_folder(self.folder)
        making, password = self.folder / "data.part", self.folder / "password.told"
        if os.geteuid() == 0:
            self._let_in()
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        write_secret(password, self._password())
        if os.geteuid() == 0:
            for path in (making, password):
                shutil.chown(path, SYSTEM_USER)
        try:
            options = ["-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--locale", "C.UTF-8", "-D", str(making)]
            self._run("initdb", "--pwfile", str(password), *options)
        finally:
            password.unlink()
        making.rename(self._data)  # initdb has synced all that is in it
        sync(self.folder)

    def _let_in(self) -> None:
        """Where root starts it, its user has to be there and to come into the folder."""
        self.folder.chmod(0o711)
        closed = [path for path in self.folder.resolve().parents if not path.stat().st_mode & 0o001]
        if closed:
            raise InputError(
                f"PostgreSQL cannot live in {self.folder}: started by root it runs as the user {SYSTEM_USER}, who "
                f"cannot enter {closed[0]}. Choose another folder, such as /var/lib/ponderay, or start as another user."
            )
        try:
            pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            raise InputError(
                f"PostgreSQL started by root runs as the user {SYSTEM_USER}, who does not exist."
            ) from None

    def _password(self) -> str:
        return secret_in(self.folder / "password")

    def _run(self, program: str, *arguments: str) -> str:
        """What a program of PostgreSQL prints, run as another user where this one is root.

        Its version is that which made the data, for no other can read them. The password is in the environment, not in
        the arguments, which all can see.
        """
        user = SYSTEM_USER if os.geteuid() == 0 else None
        made_by, log = self._data / "PG_VERSION", self._data / "server.log"
        variables = {"PATH": os.environ.get("PATH", ""), "PGHOST": "127.0.0.1", "PGPORT": str(self.port)}
        done = subprocess.run(  # noqa: S603
            [
                find_program(program, made_by.read_text(encoding="ascii").strip() if made_by.exists() else ""),
                *arguments,
            ],
            env=variables | {"PGUSER": USER, "PGPASSWORD": self._password()},
            user=user,
            group=user,
            extra_groups=[] if user else None,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
        )
        if done.returncode:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing"]
            hint = f"See {log}." if log.exists() else ""
            raise InputError(f"PostgreSQL in {self.folder}: `{program}` failed: {lines[-1]}. {hint}".strip())
        return done.stdout


def find_program(name: str, version: str = "") -> str:
    """The path of a program of PostgreSQL: of the package of `version`, else of the newest, without any on the PATH.

    Raises:
        InputError: if PostgreSQL, or this version of it, is not installed.
    """
    packaged = sorted(PACKAGED.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    if not packaged and (on_path := shutil.which(name)):
        return on_path
    right = [path for path in packaged if not version or path.parts[-3] == version]
    if not right:
        needed = f"PostgreSQL {version}, which made the data," if packaged else "PostgreSQL"
        raise InputError(f"{needed} is needed, but there is no program {name!r}. {REMEDY}")
    return str(right[-1])
