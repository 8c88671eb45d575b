"""The tables of a tracking server's databases, brought to the version of the MLflow that is installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from orchestrator.tracking.mlflow_internals import (
    STORE_REVISION,
    STORE_TABLES,
    USERS_REVISION,
    USERS_TABLES,
    installed_version,
    make_tables,
    migrations,
    upgrade_tables,
)
from orchestrator.tracking.store import LOCK_S, take_lock
from trainables.errors import InputError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection, Engine

STORE: Final = "tracking store"
USERS: Final = "users' database"
CONNECT_S: Final = 10
LOCK_TIMEOUT: Final = "55P03"
"""PostgreSQL's code for it."""


def upgrade_store(uri: str) -> str:
    """Makes or upgrades MLflow's tables; returns what was done in a sentence, empty where there was nothing to do.

    Raises:
        InputError: if the store does not answer, or is of a newer MLflow.
    """
    with _opened(uri, STORE) as engine:
        before = _revision(engine, STORE_REVISION)
        scripts = migrations(STORE_TABLES)
        _check_known(scripts, before, STORE)
        if before == scripts.get_current_head():
            return ""
        if before is None:
            make_tables(engine)
            return "The tables of the tracking store were made."
        upgrade_tables(engine)
        return f"The tracking store was one of an older MLflow ({before}); it is now one of the MLflow installed here."


def check_users(uri: str) -> str:
    """Returns what MLflow, which upgrades the users' tables itself, will do, in a sentence; empty for nothing.

    Raises:
        InputError: if the database does not answer, or is of a newer MLflow.
    """
    with _opened(uri, USERS) as engine:
        before = _revision(engine, USERS_REVISION)
        scripts = migrations(USERS_TABLES)
        _check_known(scripts, before, USERS)
        is_old = before not in (None, scripts.get_current_head())
        return f"The users' database is one of an older MLflow ({before}) and is upgraded." if is_old else ""


@contextmanager
def _opened(uri: str, what: str) -> "Iterator[Engine]":
    from sqlalchemy.exc import SQLAlchemyError

    engine = _engine(uri, what)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                _lock(connection, what)
            yield engine
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise InputError(f"The {what} cannot be used: {said[0] if said else type(error).__name__}") from None
    finally:
        engine.dispose()


def _engine(uri: str, what: str) -> "Engine":
    """A mistyped address is refused without a word of it, for pieces of the password may be anywhere."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import ArgumentError

    is_postgres = uri.startswith("postgresql")
    try:
        if is_postgres and uri.count("@") > 1:
            raise ValueError
        return create_engine(uri, connect_args={"connect_timeout": CONNECT_S} if is_postgres else {})
    except (ArgumentError, ImportError, ValueError):
        raise InputError(
            f"The address of the {what} is not valid: write %40 for @ and %2F for / in a password; drivers are "
            "psycopg and psycopg2."
        ) from None


def _lock(connection: "Connection", what: str) -> None:
    from sqlalchemy.exc import DBAPIError

    try:
        take_lock(connection)
    except DBAPIError as error:
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        if code != LOCK_TIMEOUT:
            raise
        raise InputError(
            f"Another process has been making the tables of the {what} for {LOCK_S} s; start the server again later."
        ) from None


def _revision(engine: "Engine", table: str) -> str | None:
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        return MigrationContext.configure(connection, opts={"version_table": table}).get_current_revision()


def _check_known(scripts: "ScriptDirectory", revision: str | None, what: str) -> None:
    if revision is not None and revision not in {script.revision for script in scripts.walk_revisions()}:
        raise InputError(
            f"The {what} is one of a newer MLflow (revision {revision}) than the {installed_version()} installed here; "
            "install that newer one."
        )
