"""The tables of a new tracking store in SQLite, as MLflow makes them: it takes seconds, for it makes the first version
of them and then each change since.

`empty_store.sql` is what `sqlite3` dumps of such a store. `python -m orchestrator.tracking.empty_store` writes the file
anew with the MLflow that is installed.
"""

import contextlib
import re
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from orchestrator.tracking.mlflow_internals import STORE_REVISION, installed_version, make_tables

TABLES: Final = Path(__file__).with_suffix(".sql")
MADE_WITH: Final = "-- MLflow "
REVISION: Final = re.compile(rf"INSERT INTO \"{STORE_REVISION}\" VALUES\('(\w+)'\)")


def make_store(file: Path) -> None:
    """Makes the tables in a database that has none, all or none of them.

    Nothing happens where the MLflow that is installed is another than theirs, or the file cannot be written: MLflow
    makes its own, and says what the matter is.
    """
    script = _tables()
    if not script:
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(file)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(script)


def known_revision() -> str:
    """The revision of the tables here; empty where the MLflow that is installed is another than theirs."""
    found = REVISION.search(_tables())
    return found[1] if found else ""


def _tables() -> str:
    version, _, script = TABLES.read_text(encoding="utf-8").partition("\n")
    return script if version == MADE_WITH + installed_version() else ""


def dumped() -> str:
    """What the file holds where it is up to date."""
    from sqlalchemy import create_engine

    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{folder}/store.db")
        make_tables(engine)
        engine.dispose()
        with contextlib.closing(sqlite3.connect(f"{folder}/store.db")) as database:
            assert database.execute(f"SELECT count(*) FROM {STORE_REVISION}").fetchone() == (1,)
            return "\n".join([MADE_WITH + installed_version(), *database.iterdump()]) + "\n"


if __name__ == "__main__":
    TABLES.write_text(dumped(), encoding="utf-8")
