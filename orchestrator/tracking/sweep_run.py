"""Stores files on a sweep's own run, without MLflow's import where the store is an SQLite file with local files.

The rows are those that MLflow's client leaves, which `Tracking` asks everywhere else.
"""

import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.tracking import mlflow_internals as internals
from orchestrator.tracking import names
from orchestrator.tracking.sqlite_reader import is_known, opened
from orchestrator.tracking.sqlite_runs import WAIT_S, local_place
from orchestrator.tracking.store import sqlite_file, unusable
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings

REPORT: Final = "report"
"""The folder of a report among the files of the sweep's own run."""


def store_report(sweep: str, settings: "Settings", files: Iterable[Path]) -> None:
    """Stores a report on the sweep's own run.

    Raises:
        InputError: if the store cannot be written.
    """
    listed = list(files)
    if not _store(sweep, settings.tracking_uri, listed):
        from orchestrator.tracking.client import Tracking

        Tracking(settings).store_report(sweep, listed)


def _store(sweep: str, store: str, files: list[Path]) -> bool:
    """False, and nothing is done, where only MLflow can."""
    if not is_known(store):
        return False
    try:
        # one transaction around the files too: a run whose report cannot be stored stays as it was
        with opened(sqlite_file(store), "rw", WAIT_S) as database, _transaction(database):
            run = _open_run(database, sweep)
            if run is None:
                return False
            _copy(files, run.place / REPORT)
            database.execute(internals.SET_TAG, (run.run_id, names.STATE, "complete"))
            database.execute(internals.END_RUN, (_now_ms(), run.run_id))
    except sqlite3.Error as error:
        raise InputError(unusable(store, error)) from None
    return True


class _Run(NamedTuple):
    run_id: str
    place: Path


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A block in which nobody else writes, and of which all is written or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if database.in_transaction:  # on a full disk SQLite has taken it back itself
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _open_run(database: sqlite3.Connection, sweep: str) -> _Run | None:
    """As `KeyedRuns.open`, in a transaction; None where the run is deleted, or nobody has made its registry yet."""
    experiment = database.execute(internals.EXPERIMENT_PLACE_ROW, (sweep,)).fetchone()
    if experiment is None or local_place(experiment[1]) is None:
        return None
    of_runs = names.storable(f"runs of experiment {experiment[0]}")
    registry = database.execute(internals.ENTRY_ROWS, (names.REGISTRIES, of_runs)).fetchone()
    if registry is None:
        return None
    entries, claim = dict(database.execute(internals.RUN_PARAM_ROWS, registry)), names.storable(f"sweep {sweep}")
    while claim in entries:
        found = database.execute(internals.RUN_PLACE_ROW, (entries[claim],)).fetchone()
        if found:
            return _reopened(database, entries[claim], *found)
        claim += " again"  # that run was removed for good
    return _made(database, sweep, experiment, registry[0], claim)


def _reopened(database: sqlite3.Connection, run_id: str, stage: str, uri: str) -> _Run | None:
    place = local_place(uri)
    if stage != "active" or place is None:
        return None
    database.execute(internals.REOPEN_RUN, (run_id,))
    return _Run(run_id, place)


def _made(database: sqlite3.Connection, sweep: str, experiment: tuple[int, str], registry: str, claim: str) -> _Run:
    run_id, uri = uuid.uuid4().hex, experiment[1].rstrip("/")
    uri = f"{uri}/{run_id}/artifacts"
    row = internals.new_run_row(run_id, experiment[0], sweep, uri, _now_ms())
    database.execute(internals.add_run(row), row)
    identity = {names.KEY: sweep, names.KIND: "sweep", names.STATE: "running"}
    tags = {names.SWEEP: sweep, internals.RUN_NAME: sweep} | identity
    database.executemany(internals.SET_TAG, [(run_id, name, value) for name, value in tags.items()])
    database.execute(internals.ADD_PARAM, (registry, claim, run_id))
    place = local_place(uri)
    assert place is not None
    return _Run(run_id, place)


def _copy(files: list[Path], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            _put(file, folder / file.name)
    except OSError as error:
        raise InputError(f"{folder} must be a place that can be written to, but: {error}.") from None


def _put(file: Path, place: Path) -> None:
    """As MLflow's client: whoever reads sees the whole file or the one before; a file is not copied onto itself."""
    if place.exists() and place.samefile(file):
        return
    partial = place.with_name(f"{internals.UPLOADING}{uuid.uuid4().hex}")
    try:
        shutil.copy2(file, partial)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
