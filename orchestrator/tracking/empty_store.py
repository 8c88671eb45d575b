"""The tables of a new tracking store in SQLite, as MLflow makes them: it takes seconds, for it makes the first version
of them and then each change since.

`empty_store.sql` is what `sqlite3` dumps of such a store. `python -m orchestrator.tracking.empty_store` writes the file
anew with the MLflow that is installed.
"""

import contextlib
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from orchestrator.tracking.mlflow_internals import STORE_REVISION, installed_version, make_tables

TABLES: Final = Path(__file__).with_suffix(".sql")
MADE_WITH: Final = "-- MLflow "


def make_store(file: Path) -> None:
    """Makes the tables in a database that has none, all or none of them.

    Nothing happens where the MLflow that is installed is another than theirs, or the file cannot be written: MLflow
    makes its own, and says what the matter is.
    """
    version, _, script = TABLES.read_text(encoding="utf-8").partition("\n")
    if version != MADE_WITH + installed_version():
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(file)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(script)


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
