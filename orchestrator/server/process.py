"""The process in which MLflow serves, once its tables are of the MLflow that is installed.

Run as a program by `serve`, with the options of `mlflow server`; its databases are named in its environment.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from orchestrator.console.exit_codes import WRONG_INPUT
from orchestrator.tracking.mlflow_internals import (
    STORE_REVISION,
    STORE_TABLES,
    USERS_REVISION,
    USERS_TABLES,
    installed_version,
    make_tables,
    migrations,
    run_server,
    upgrade_tables,
)
from orchestrator.tracking.store import LOCK_S, take_lock
from trainables.errors import InputError

STORE: Final = "tracking store"
USERS: Final = "users' database"
CONNECT_S: Final = 10
LOCK_TIMEOUT: Final = "55P03"
"""PostgreSQL's code for it."""


def main() -> None:
    """Says what was done to the tables, then serves; what is wrong with a store is one line and exit code 2."""
    for name in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        done = [upgrade_store(os.environ["MLFLOW_BACKEND_STORE_URI"]), check_users(os.environ["PONDERAY_USERS_URI"])]
        _check_artifacts(os.environ["MLFLOW_ARTIFACTS_DESTINATION"])
    except InputError as error:
        print(f"ponderay: {error}", file=sys.stderr, flush=True)
        raise SystemExit(WRONG_INPUT) from None
    for sentence in filter(None, done):
        print(sentence, flush=True)
    run_server(sys.argv[1:])


def _check_artifacts(destination: str) -> None:
    """Looks into a bucket, for MLflow alone would find it closed when the first artifact comes."""
    parts = urlsplit(destination)
    if parts.scheme != "s3":
        return
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    limits = Config(connect_timeout=10, read_timeout=10, retries={"total_max_attempts": 2})
    try:
        client = boto3.client("s3", endpoint_url=os.environ.get("MLFLOW_S3_ENDPOINT_URL"), config=limits)
        client.list_objects_v2(Bucket=parts.netloc, Prefix=parts.path.lstrip("/"), MaxKeys=1)
    except (BotoCoreError, ClientError, ValueError) as error:
        raise InputError(
            f"The bucket of {destination} cannot be used: {str(error).splitlines()[0]} "
            "Check AWS_* and MLFLOW_S3_ENDPOINT_URL."
        ) from None


def upgrade_store(uri: str) -> str:
    """Makes or upgrades MLflow's tables; returns what was done in a sentence, empty where there was nothing to do.

    Raises:
        InputError: if the store does not answer, or is of a newer MLflow.
    """
    with _opened(uri, STORE, STORE_REVISION, STORE_TABLES) as (engine, before, newest):
        if before == newest:
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
    with _opened(uri, USERS, USERS_REVISION, USERS_TABLES) as (_, before, newest):
        is_old = before not in (None, newest)
        return f"The users' database is one of an older MLflow ({before}) and is upgraded." if is_old else ""


@contextmanager
def _opened(uri: str, what: str, table: str, package: str) -> Iterator[tuple[Engine, str | None, str | None]]:
    """A database, the revision that its tables have, None without tables, and the newest that is known here.

    Args:
        table: holds the revision.
        package: has the scripts that lead from one revision to the next.
    """
    engine = _engine(uri, what)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                _lock(connection, what)
            with engine.connect() as other:
                before = MigrationContext.configure(other, opts={"version_table": table}).get_current_revision()
            scripts = migrations(package)
            if before is not None and before not in {script.revision for script in scripts.walk_revisions()}:
                raise InputError(
                    f"The {what} is one of a newer MLflow (revision {before}) than the {installed_version()} installed "
                    "here; install that newer one."
                )
            yield engine, before, scripts.get_current_head()
    except SQLAlchemyError as error:
        lines = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise InputError(f"The {what} cannot be used: {lines[0] if lines else type(error).__name__}") from None
    finally:
        engine.dispose()


def _engine(uri: str, what: str) -> Engine:
    """A mistyped address is refused without a word of it, for pieces of the password may be anywhere."""
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


def _lock(connection: Connection, what: str) -> None:
    try:
        take_lock(connection)
    except DBAPIError as error:
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        if code != LOCK_TIMEOUT:
            raise
        raise InputError(
            f"Another process has been making the tables of the {what} for {LOCK_S} s; start the server again later."
        ) from None


if __name__ == "__main__":
    main()
