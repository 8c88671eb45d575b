"""The tracking store: how its database is opened, whether it answers in time, and its address without passwords.

One process makes the tables; nothing is waited for in silence.
"""

import contextlib
import logging
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from orchestrator.machine.process_lock import held
from orchestrator.tracking.damage import is_damage, opened, place_fault, refusal
from orchestrator.tracking.mlflow_internals import EXPERIMENT_OF_NAME
from search_spaces.known_names import known_names
from search_spaces.redaction import redacted_uri
from trainables.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection


POSTGRESQL: Final = ("postgresql://", "postgresql+psycopg2://", "postgresql+psycopg://")
PATIENCE: Final = {
    "connect_timeout": "10",
    "tcp_user_timeout": "20000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""Without these limits a driver waits a quarter of an hour, or for ever, for a machine that was cut off."""

LOCK_S: Final = 180
"""How long a driver waits for others to make the tables: seconds, but eight drivers on a busy machine took a minute."""

LOCK: Final = 5_042_026
"""Number of the lock that keeps two servers from making one store's tables at once; MLflow has none."""

NEW: Final = ".new"
"""Ends the name of a store that is being made."""

LAST_TABLE: Final = "alembic_version"
"""What PostgreSQL shows last of the tables that MLflow makes, and of those that Optuna makes."""


def address(uri: str) -> str:
    """`uri` as it is opened: PostgreSQL by the driver that is installed, and with limits of time."""
    uri = with_driver(uri)
    if not uri.startswith(POSTGRESQL):
        return uri
    place, _, options = uri.partition("?")
    limits = [f"{name}={value}" for name, value in PATIENCE.items() if f"{name}=" not in options]
    return f"{place}?{'&'.join([options, *limits] if options else limits)}"


def with_driver(uri: str) -> str:
    """A database's address that names its driver, where only psycopg2 is installed: SQLAlchemy asks for another."""
    if uri.startswith("postgresql://") and find_spec("psycopg") is None and find_spec("psycopg2") is not None:
        return uri.replace("postgresql://", "postgresql+psycopg2://", 1)
    return uri


@contextmanager
def made_once(uri: str, file: Path) -> Iterator[None]:
    """A block in which tables may be made, by one process at a time; others wait.

    Args:
        uri: as `address` gives it.
        file: what is locked for SQLite.

    Raises:
        SQLAlchemyError, ImportError: if PostgreSQL cannot be reached now; this takes seconds, MLflow alone minutes.
    """
    if uri.startswith("sqlite:///"):
        with held(file):
            yield
    elif uri.startswith(POSTGRESQL):
        from sqlalchemy import NullPool, create_engine, inspect

        with create_engine(uri, poolclass=NullPool).connect() as connection:
            if not inspect(connection).has_table(LAST_TABLE):
                take_lock(connection)
            yield
    else:
        yield


def make_file(file: Path) -> None:
    """Has MLflow make the tables of a new store in SQLite, all or none of them; for whoever is alone (`made_once`).

    It makes the first version of them and then each change since, and cannot go on where it was killed meanwhile. So
    they are made in a file beside, which takes the store's name when it is whole.
    """
    from mlflow import MlflowClient

    for left in file.parent.glob(f"{file.name}.*{NEW}"):
        left.unlink()
    made = file.with_name(f"{file.name}.{uuid4().hex[:8]}{NEW}")  # MLflow keeps a file open by its name
    MlflowClient(tracking_uri=f"sqlite:///{made}").search_experiments(max_results=1)
    made.replace(file)


def take_lock(connection: "Connection") -> None:
    """Keeps others out until the transaction ends; a lock of the session would outlive this process behind a pooler."""
    from sqlalchemy import text

    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_S}s'"))
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))


TIME_LIMIT_S: Final = 15.0
FILE_LIMIT_S: Final = 90.0
"""A file is not away; a busy machine may be this slow."""

HTTP_LIMITS: Final = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5"}
CONNECT_LIMITS: Final = {
    "sqlite": {"timeout": 5},
    "postgresql": {"connect_timeout": 5},
    "mysql": {"connect_timeout": 5},
}
PART_OF_PASSWORD: Final = re.compile(r'"[^"\s]*@')
"""What is taken for a part of the host's name where a password holds an @ that is not written %40."""

CREDENTIALS: Final = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or ~/.mlflow/credentials"
REFUSALS: Final = {
    401: f"it does not know this user with this password ({CREDENTIALS}, a copy of the server's own)",
    403: f"this user may read here, but not change it ({CREDENTIALS}); the server's own user, ponderay, may",
}
"""What a server means by its status of HTTP."""

NO_ADDRESS: Final = "it is not a valid address (write %40 for @ and %2F for / in a password)"


def store_kind(uri: str) -> str:
    """One of sqlite, postgresql, mysql, http and https; empty for a store that is not supported."""
    if uri.startswith("sqlite:///") and len(uri) > len("sqlite:///"):
        return "sqlite"
    kind = re.split(r"[+:]", uri, maxsplit=1)[0]
    return kind if "://" in uri and kind in ("postgresql", "mysql", "http", "https") else ""


def sqlite_file(uri: str) -> Path:
    """The database of a `sqlite:///` store."""
    return Path(uri.removeprefix("sqlite:///").partition("?")[0]).absolute()


class NotRunError(InputError):
    """A sweep of which the store has no study."""


def not_run(sweep: str, uri: str, recorded: Sequence[str]) -> NotRunError:
    """An error: that the sweep has no study in the store at `uri`, where those of `recorded` are."""
    others = f" Recorded are: {known_names(recorded, sweep)}." if recorded else ""
    return NotRunError(f"{sweep} has not run here yet ({redacted_uri(uri)}); `ponderay run` runs a sweep.{others}")


def check_address(uri: str) -> None:
    """Refuses what is the address of no store, before MLflow is loaded, which takes seconds.

    Raises:
        InputError: if MLflow could open nothing there.
    """
    if not (store_kind(uri) or uri.startswith(("file:", "databricks"))):
        raise InputError(
            f"The tracking store {redacted_uri(uri)} cannot be opened: PONDERAY_TRACKING_URI must be sqlite:///FILE or "
            "a server: http(s)://, postgresql:// or mysql://."
        )


def has_store(uri: str) -> bool:
    """Whether there may be something to read: false for an SQLite file that no run has made yet."""
    if store_kind(uri) != "sqlite":
        return True
    file = sqlite_file(uri)
    return file.is_file() and file.stat().st_size > 0


def may_have(uri: str, sweep: str) -> bool:
    """Whether a sweep may have a study in the store: false for an SQLite file without an experiment of its name.

    SQLite alone says so, for MLflow's import takes seconds; what it cannot read, MLflow is asked.
    """
    if store_kind(uri) != "sqlite":
        return True
    if not has_store(uri):
        return False
    try:
        with opened(sqlite_file(uri), wait_s=0.2) as database:
            return database.execute(EXPERIMENT_OF_NAME, (sweep,)).fetchone() is not None
    except sqlite3.Error:
        return True


def store_mark(uri: str) -> str:
    """The size and time of a SQLite store's file, which change with whatever is written into it."""
    found = sqlite_file(uri).stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def fault(uri: str, limit_s: float | None = None) -> str:
    """Why the store at `uri` cannot be used, in one line without passwords; empty where it answers.

    MLflow alone would try a server that is away for minutes.

    Args:
        limit_s: default: 15 s for a server, 90 s for a file.
    """
    if store_kind(uri) == "sqlite" and _has_tables(sqlite_file(uri)):
        return ""  # whether they are of this MLflow it says itself, as soon as a driver opens it
    # these take seconds, on a busy machine many, which are not the store's
    import sqlalchemy  # noqa: F401
    from mlflow import MlflowClient  # noqa: F401

    if limit_s is None:
        limit_s = FILE_LIMIT_S if store_kind(uri) == "sqlite" else TIME_LIMIT_S
    said: list[str] = []
    asking = threading.Thread(target=_ask, args=(uri, said), daemon=True)
    with _limits_on_http():
        asking.start()
        asking.join(limit_s)
    return said[0] if said else f"no answer within {limit_s:g} s"


def _has_tables(file: Path) -> bool:
    """Whether a file can be read and has the table that MLflow makes last, by SQLite's own list."""
    try:
        with opened(file) as database:
            return bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (LAST_TABLE,)).fetchall())
    except sqlite3.Error:
        return False


def _ask(uri: str, said: list[str]) -> None:
    try:
        _open(uri)
        said.append("")
    except Exception as error:
        said.append(reason_of(error, uri))


def _open(uri: str) -> None:
    from mlflow import MlflowClient
    from sqlalchemy import create_engine, inspect

    uri = address(uri)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if store_kind(uri) in CONNECT_LIMITS:
        arguments: dict[str, Any] = dict(CONNECT_LIMITS[store_kind(uri)])
        engine = create_engine(uri, connect_args=arguments)
        try:
            is_made = inspect(engine).has_table(LAST_TABLE)
        finally:
            engine.dispose()
        if not is_made:
            return
    MlflowClient(tracking_uri=uri).search_experiments(max_results=1)


@contextlib.contextmanager
def _limits_on_http() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in HTTP_LIMITS}
    os.environ.update(HTTP_LIMITS)
    try:
        yield
    finally:
        for name in HTTP_LIMITS:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def check_file(uri: str, what: str = "The tracking store") -> None:
    """Raises InputError where a folder or a loop is in an SQLite store's place: MLflow would try it for minutes."""
    if store_kind(uri) == "sqlite" and (reason := place_fault(sqlite_file(uri))):
        raise InputError(refusal(sqlite_file(uri), reason, what))


def unusable(uri: str, error: BaseException, what: str = "The tracking store") -> str:
    """A sentence: that a store cannot be opened, and what to do where it is a damaged file."""
    reason = reason_of(error, uri)
    if store_kind(uri) == "sqlite" and is_damage(error):
        return refusal(sqlite_file(uri), reason, what)
    return f"{what} {redacted_uri(uri)} cannot be opened: {reason}"


def reason_of(error: BaseException, uri: str) -> str:
    """What went wrong with the store at `uri`, in one line without passwords."""
    if isinstance(error, ValueError):  # its words may be a part of the password
        return NO_ADDRESS
    status = error.get_http_status_code() if hasattr(error, "get_http_status_code") else 0
    text = telling_line(str(error)) or type(error).__name__
    if status in REFUSALS and store_kind(uri) in ("http", "https"):
        return REFUSALS[status]
    caused = re.search(r"\[Errno \d+\] ([\w ]+)", text)  # such as `Connection refused`
    return _without_password(caused[1] if caused else text[:200], uri)


def telling_line(text: str) -> str:
    """The first line of an error's text that says what the matter is; SQLAlchemy tells of its own doings before it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("(raised as a result of")), "")


def _without_password(text: str, uri: str) -> str:
    try:
        password = urlsplit(uri).password
    except ValueError:
        password = None
    for secret in {password, unquote(password)} if password else ():
        text = text.replace(secret, "***")
    return redacted_uri(PART_OF_PASSWORD.sub('"***@', text))
