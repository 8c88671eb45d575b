"""How databases are opened, for tracking and for searches: by one process at first, and never waited for in silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from orchestrator.machine.process_lock import held
from orchestrator.server.postgres import with_driver
from orchestrator.server.schema import take_lock

POSTGRESQL: Final = ("postgresql://", "postgresql+psycopg2://", "postgresql+psycopg://")
PATIENCE: Final = {
    "connect_timeout": "10",
    "tcp_user_timeout": "20000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""A machine that was cut off would by itself be waited for for a quarter of an hour, or for ever."""

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
        with _held_in(uri):
            yield
    else:
        yield


@contextmanager
def _held_in(uri: str) -> Iterator[None]:
    """Holds a lock of the database, unless its tables are there."""
    from sqlalchemy import NullPool, create_engine, inspect

    with create_engine(uri, poolclass=NullPool).connect() as connection:
        if not inspect(connection).has_table(LAST_TABLE):
            take_lock(connection)
        yield
