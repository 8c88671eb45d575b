"""Reads what belongs to studies from a local SQLite store without MLflow, whose import alone takes seconds.

It reads some of MLflow's tables and writes none. What it does not understand it leaves to `mlflow_reader`.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from orchestrator.tracking import names
from orchestrator.tracking.damage import is_damage, place_fault, refusal
from orchestrator.tracking.empty_store import known_revision
from orchestrator.tracking.lease_holder import Holder, find_holder
from orchestrator.tracking.mlflow_internals import (
    ENTRY_ROWS,
    EXPERIMENT_ROW,
    EXPERIMENT_TAG_ROW,
    NAMES,
    NUM_NAMED,
    NUM_NOT_FINISHED,
    NUM_REPLICATES,
    PARAM_ROWS,
    REVISION_ROW,
    RUN_PARAM_ROWS,
    RUN_TAG_ROWS,
)
from trainables.errors import InputError

SCHEME: Final = "sqlite:///"
WAIT_S: Final = 2.0


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


def num_finished(store: str, name: str) -> int | None:
    """How many replicates of the sweep have a run; None where some run has not ended well or the file does not say it.

    Runs that were deleted count as none.
    """
    if not store.startswith(SCHEME) or "?" in store:
        return None
    try:
        with opened(Path(store.removeprefix(SCHEME))) as database:
            num_left: int = database.execute(NUM_NOT_FINISHED, (name,)).fetchone()[0]
            num_replicates: int = database.execute(NUM_REPLICATES, (names.KIND, name)).fetchone()[0]
    except sqlite3.Error:
        return None
    return None if num_left else num_replicates


def read_configs(store: str, name: str) -> dict[str, dict[str, str]] | None:
    """Every condition's config as it was logged, as `mlflow_reader.read_configs` gives it.

    None where the store is no SQLite file that can be read, or has no such sweep.
    """
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
