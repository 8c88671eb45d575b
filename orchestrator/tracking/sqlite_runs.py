"""The runs of a study read from the tables of an SQLite store and its local files, without MLflow's import."""

import json
import math
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from orchestrator.tracking import mlflow_internals as internals
from orchestrator.tracking import names
from orchestrator.tracking.sqlite_reader import is_known, opened
from orchestrator.tracking.store import sqlite_file, unusable
from orchestrator.tracking.study_runs import CurveRun, StoredFile
from trainables.errors import InputError

WAIT_S: Final = 20.0
"""For a driver that writes."""


@dataclass(frozen=True)
class SqliteRuns:
    """Those of an experiment.

    Attributes:
        store: address of the store.
    """

    store: str
    experiment_id: str

    def values_of(self, tag: str, most: int) -> tuple[Sequence[str], bool]:
        """As `StudyRuns` says."""
        found = self._rows(internals.TAG_VALUE_ROWS, names.KIND, "replicate", self.experiment_id, tag, most + 1)
        values = [value for (value,) in found]
        return values[:most], len(values) <= most

    def params_of(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """As `StudyRuns` says."""
        found: dict[str, dict[str, str]] = {}
        for run_id, path, value in self._rows(
            internals.LISTED_PARAM_ROWS, self.experiment_id, json.dumps(list(run_ids))
        ):
            found.setdefault(run_id, {})[path] = value
        return found

    def tags_of(self, run_ids: Collection[str], tag: str) -> Sequence[str]:
        """The distinct values of a tag of these runs, in their order."""
        tags = (dict(self._rows(internals.RUN_TAG_ROWS, run_id)) for run_id in run_ids)
        return list(dict.fromkeys(found[tag] for found in tags if tag in found))

    def files_of(self, folder: str) -> Sequence[StoredFile]:
        """As `StudyRuns` says."""
        kind = (names.KIND, "sweep")
        for _, uri in self._rows(internals.TAGGED_RUN_ROWS, *kind, *kind, self.experiment_id):
            place = local_place(uri)
            if place is None:
                raise FileNotFoundError(f"{uri} is no folder of this machine.")
            files = sorted(file for file in (place / folder).glob("*") if file.is_file())
            return [StoredFile(f"{folder}/{file.name}", file.stat().st_size, file.read_bytes) for file in files]
        return []

    def run_of(self, condition: str) -> CurveRun | None:
        """As `CurveRuns` says."""
        wanted = (names.KIND, "condition", names.CONDITION, condition, self.experiment_id)
        for run_id, _ in self._rows(internals.TAGGED_RUN_ROWS, *wanted):
            tags = dict(self._rows(internals.RUN_TAG_ROWS, run_id))
            metrics = [name for (name,) in self._rows(internals.LATEST_NAME_ROWS, run_id)]
            return CurveRun(tags, metrics, partial(self._history, run_id))
        return None

    def histories_of(self, run_ids: Collection[str], metric: str) -> Mapping[str, Mapping[int, float]]:
        """As `CurveRuns` says."""
        found: dict[str, dict[int, float]] = {}
        for run_id, step, value, is_nan in self._rows(internals.LISTED_HISTORY_ROWS, metric, json.dumps(list(run_ids))):
            found.setdefault(run_id, {})[step] = math.nan if is_nan else value
        return found

    def _history(self, run_id: str, name: str) -> Mapping[int, float]:
        found = self._rows(internals.HISTORY_ROWS, run_id, name)
        return {step: math.nan if is_nan else value for step, value, is_nan in found}

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return _rows(self.store, statement, *values)


def find_runs(store: str, sweep: str) -> SqliteRuns | None:
    """Those of the sweep; None where only MLflow can read them.

    It has another version, the files are elsewhere, or several workspaces have an experiment of that name.

    Raises:
        InputError: if the file is damaged, or another process holds it.
    """
    found = _rows(store, internals.EXPERIMENT_PLACE_ROW, sweep) if is_known(store) else []
    return SqliteRuns(store, str(found[0][0])) if len(found) == 1 and local_place(found[0][1]) else None


def _rows(store: str, statement: str, *values: object) -> list[Any]:
    try:
        with opened(sqlite_file(store), wait_s=WAIT_S) as database:
            return database.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise InputError(unusable(store, error)) from None


def local_place(uri: str) -> Path | None:
    """The folder of this machine that a place of files names; None where it names another one."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc:
        return Path(url2pathname(parts.path))
    return Path(url2pathname(uri)) if uri.startswith("/") else None  # MLflow decodes the %20 of both
