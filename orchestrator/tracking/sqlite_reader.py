"""Reads studies from a local SQLite store without MLflow, whose import alone takes seconds.

It reads some of MLflow's tables and writes none. What it does not understand it leaves to `mlflow_reader`.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from orchestrator.results.study import Study
from orchestrator.tracking import names, study_cache
from orchestrator.tracking.damage import is_damage, place_fault, refusal
from orchestrator.tracking.empty_store import known_revision
from orchestrator.tracking.lease_holder import Holder, find_holder
from orchestrator.tracking.mlflow_internals import (
    ENTRY_ROWS,
    EXPERIMENT_ROW,
    EXPERIMENT_TAG_ROW,
    METRIC_ROWS,
    NAMES,
    NUM_NAMED,
    NUM_NOT_FINISHED,
    PARAM_ROWS,
    REVISION_ROW,
    RUN_PARAM_ROWS,
    RUN_TAG_ROWS,
    TAG_ROWS,
)
from orchestrator.tracking.replicate_tags import decode, decode_settings
from orchestrator.tracking.study_cache import Origin, ReadCondition, Snapshot
from trainables.errors import InputError

SCHEME: Final = "sqlite:///"
WAIT_S: Final = 2.0


class ConditionRow(NamedTuple):
    """A condition's run."""

    run_id: str
    started_ms: int
    is_deleted: bool
    revision: int
    tags: dict[str, str] | None


def read_study(store: str, name: str, cache: Path | None) -> Study | None:
    """The study of the sweep `name`, as `mlflow_reader.read_study` gives it.

    None where the store is no SQLite file that can be read, or has no such sweep.
    """
    if not store.startswith(SCHEME) or "?" in store:
        return None
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            found = database.execute(EXPERIMENT_ROW, (name,)).fetchall()
            if len(found) != 1:
                return None
            origin = Origin(store, str(found[0][0]), int(found[0][1] or 0))
            before = study_cache.load(cache, origin)
            rows = _changed(database, origin.experiment_id, before)
    except sqlite3.Error:
        return None
    snapshot = _merged(rows, before)
    if snapshot != before:
        study_cache.save(cache, origin, snapshot)
    return snapshot.study(name)


def lacks(store: str, name: str) -> bool:
    """Whether a store that can be read has no experiment `name`; false where only MLflow can tell."""
    if not store.startswith(SCHEME) or "?" in store:
        return False
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            return not database.execute(NUM_NAMED, (name,)).fetchone()[0]
    except sqlite3.Error:
        return False


def is_known(store: str) -> bool:
    """Whether a store is a file that answers, with the tables of the MLflow that is installed, as they are known here.

    Raises:
        InputError: if the file is damaged.
    """
    if not store.startswith(SCHEME) or "?" in store:
        return False
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            database.execute(NUM_NAMED, ("",)).fetchone()
            return bool(database.execute(REVISION_ROW).fetchall() == [(known_revision(),)])
    except sqlite3.Error:
        return False


def recorded_names(store: str) -> list[str]:
    """The sweeps with a condition's run, by name."""
    with opened(Path(store.removeprefix(SCHEME))) as database:
        return [name for (name,) in database.execute(NAMES, (names.KIND, "condition"))]


def read_ended_study(store: str, name: str, cache: Path | None) -> Study | None:
    """As `read_study`; None also where a run of the sweep is under way, was stopped or has failed."""
    study = read_study(store, name, cache)
    if study is None:
        return None
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            num_left: int = database.execute(NUM_NOT_FINISHED, (name,)).fetchone()[0]
    except sqlite3.Error:
        return None
    return None if num_left else study


def read_configs(store: str, name: str) -> dict[str, dict[str, str]] | None:
    """Every condition's config as it was logged, as `mlflow_reader.read_configs` gives it; None as of `read_study`."""
    if not store.startswith(SCHEME) or "?" in store:
        return None
    configs: dict[str, dict[str, str]] = {}
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            found = database.execute(EXPERIMENT_ROW, (name,)).fetchall()
            if len(found) != 1:
                return None
            rows = database.execute(PARAM_ROWS, (names.CONDITION, names.KIND, found[0][0]))
            for condition, path, value in rows:
                configs.setdefault(condition, {})[path] = value
    except sqlite3.Error:
        return None
    return configs


def read_declaration(store: str, name: str) -> str | None:
    """What the sweep `name` declares; None where the file cannot be read or has no such sweep."""
    try:
        with opened(Path(store.removeprefix(SCHEME).partition("?")[0])) as database:
            found = database.execute(EXPERIMENT_TAG_ROW, (name, names.DECLARATION)).fetchone()
    except sqlite3.Error:
        return None
    return str(found[0]) if found else None


def read_holder(store: str, name: str) -> Holder | None:
    """Who last ran the sweep `name`; None where the file cannot be read or does not say it."""
    try:
        with opened(Path(store.removeprefix(SCHEME).partition("?")[0])) as database:
            registry = (names.REGISTRIES, names.storable(names.lease_of(name)))
            found = database.execute(ENTRY_ROWS, registry).fetchone()
            if found is None:
                return None
            claims, notes = (dict(database.execute(rows, found).fetchall()) for rows in (RUN_PARAM_ROWS, RUN_TAG_ROWS))
    except sqlite3.Error:
        return None
    return find_holder(claims, notes)


@contextlib.contextmanager
def opened(path: Path, mode: Literal["ro", "rw"] = "ro", wait_s: float = WAIT_S) -> Iterator[sqlite3.Connection]:
    """The file of a store, which must be there; each statement is a transaction unless one is begun.

    Args:
        wait_s: how long a lock of another process is waited for.

    Raises:
        InputError: if the file is damaged.
    """
    place = f"file:{quote(str(path.absolute()))}?mode={mode}"
    try:
        with contextlib.closing(sqlite3.connect(place, uri=True, timeout=wait_s, isolation_level=None)) as database:
            yield database
    except sqlite3.Error as error:
        if (reason := place_fault(path)) or is_damage(error):
            raise InputError(refusal(path, reason or str(error))) from None
        raise


def _changed(database: sqlite3.Connection, experiment_id: str, before: Snapshot) -> list[ConditionRow]:
    """Runs with their tags, which are None where nothing has changed; all of one moment, for it is one transaction.

    Writers wait meanwhile, so nothing is decoded here.
    """
    database.execute("BEGIN")
    rows = []
    for run_id, started_ms, stage, revision in database.execute(METRIC_ROWS, (names.UPDATED, experiment_id)).fetchall():
        known = before.conditions.get(run_id)
        is_known = stage == "deleted" or (known is not None and known.revision == revision)
        tags = None if is_known else _tags(database, run_id)
        rows.append(ConditionRow(run_id, int(started_ms or 0), stage == "deleted", int(revision), tags))
    database.execute("COMMIT")
    return rows


def _merged(rows: list[ConditionRow], before: Snapshot) -> Snapshot:
    active = [row for row in rows if not row.is_deleted]
    conditions = {
        row.run_id: before.conditions[row.run_id] if row.tags is None else _condition(row, row.tags) for row in active
    }
    deleted = frozenset(row.run_id for row in rows if row.is_deleted)
    return Snapshot(max((row.revision for row in active), default=0), conditions, deleted)


def _condition(row: ConditionRow, tags: dict[str, str]) -> ReadCondition:
    name = tags[names.CONDITION]
    return ReadCondition(name, row.started_ms, row.revision, tuple(decode(name, tags)), decode_settings(tags))


def _tags(database: sqlite3.Connection, run_id: str) -> dict[str, str]:
    prefix = names.REPLICATE_PREFIX
    return dict(database.execute(TAG_ROWS, (run_id, names.CONDITION, names.SETTINGS, len(prefix), prefix)).fetchall())
