"""Writes of many runs in one transaction, as rows of the tables of a store that is a database reached from here.

MLflow's client takes a transaction, and several queries before it, for each write to each run: some 40 ms for a
replicate, where its rows take less than one. The rows here are those that the client would leave.
"""

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from orchestrator.tracking import mlflow_internals as internals

if TYPE_CHECKING:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import Connection

Row = dict[str, Any]
MOST_METRICS: Final = 20_000
"""With so many the rows are written, so that a transaction holds others up for less than a second."""


class RowBatch:
    """What is to be written, until `flush` or too much waits; methods that MLflow has too do what they do there."""

    def __init__(self, store: "SqlAlchemyStore") -> None:
        self._store = store
        self._places: dict[str, str] = {}
        self._clear()

    def _clear(self) -> None:
        self._runs: dict[str, Row] = {}
        self._ends: dict[str, Row] = {}
        self._entries: list[Row] = []
        self._params: dict[tuple[str, str], Row] = {}
        self._tags: dict[tuple[str, str], Row] = {}
        self._metrics: dict[tuple[Any, ...], Row] = {}
        self._latest: dict[tuple[str, str], Row] = {}

    def has_waiting(self, run_id: str) -> bool:
        """Whether the run's beginning or end is not yet in the store."""
        return run_id in self._runs or run_id in self._ends

    def create_run(self, experiment_id: str, tags: Mapping[str, str], run_name: str) -> str:
        """The id of a new run."""
        if experiment_id not in self._places:
            found = self._store.get_experiment(experiment_id)  # type: ignore[no-untyped-call]
            self._places[experiment_id] = str(found.artifact_location)
        run_id = uuid.uuid4().hex
        place = internals.artifacts_of(self._places[experiment_id], run_id)
        self._runs[run_id] = internals.new_run_row(run_id, int(experiment_id), run_name, place, _now_ms())
        named = dict(tags) | {internals.RUN_NAME: run_name}
        for tag in internals.checked_batch([], [], [RunTag(name, value) for name, value in named.items()])[2]:
            self._tags[run_id, tag.key] = {"run_uuid": run_id, "key": tag.key, "value": tag.value}
        return run_id

    def enter(self, registry: str, name: str, value: str) -> None:
        """An entry of a registry; where it has one of this name by then, `flush` fails and writes nothing."""
        (checked,) = internals.checked_batch([], [Param(name, value)], [])[1]
        self._entries.append({"run_uuid": registry, "key": checked.key, "value": checked.value})

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric] = (), params: Sequence[Param] = (), tags: Sequence[RunTag] = ()
    ) -> None:
        """Metrics, tags, and parameters that are not there yet."""
        metrics, params, tags = internals.checked_batch(metrics, params, tags)
        for param in params:
            self._params.setdefault((run_id, param.key), {"run_uuid": run_id, "key": param.key, "value": param.value})
        for tag in tags:
            self._tags[run_id, tag.key] = {"run_uuid": run_id, "key": tag.key, "value": tag.value}
        for metric in metrics:
            self._add_metric(run_id, metric)
        if len(self._metrics) >= MOST_METRICS:
            self.flush()

    def _add_metric(self, run_id: str, metric: Metric) -> None:
        is_nan, value = self._store.sanitize_metric_value(metric.value)
        row = {"run_uuid": run_id, "key": metric.key, "value": value, "is_nan": is_nan}
        row |= {"timestamp": metric.timestamp, "step": metric.step}
        self._metrics.setdefault(tuple(row.values()), row)
        latest = self._latest.get((run_id, metric.key))
        if latest is None or _age(row) > _age(latest):
            self._latest[run_id, metric.key] = row

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        """A tag."""
        self.log_batch(run_id, tags=[RunTag(key, value)])

    def set_terminated(self, run_id: str, status: str) -> None:
        """The end of a run, now."""
        end = {"status": status, "end_time": _now_ms()}
        if run_id in self._runs:
            self._runs[run_id] |= end
        else:
            self._ends[run_id] = end

    def flush(self) -> None:
        """Writes all of it or, where anything is wrong, nothing.

        Raises:
            MlflowException: as the client does, also if a run or an experiment was deleted meanwhile.
        """
        touched = self._touched()
        if not (touched or self._runs):
            return
        with self._store.ManagedSessionMaker(read_only=False) as session:
            connection = session.connection()
            self._insert(connection)  # first: it takes the lock under which the rest is read
            experiments = {row["experiment_id"] for row in self._runs.values()}
            if not internals.are_active(connection, touched, experiments):
                raise MlflowException("A run, or its experiment, was deleted.", internals.INVALID)
        self._clear()

    def _touched(self) -> Collection[str]:
        """The runs that must be in the store."""
        keyed = {run_id for rows in (self._params, self._tags, self._latest) for run_id, _ in rows}
        return (keyed | self._ends.keys() | {row["run_uuid"] for row in self._entries}) - self._runs.keys()

    def _insert(self, connection: "Connection") -> None:
        rows = internals.RowStatements(connection.dialect.name)
        for statement, values in (
            (rows.new_runs, self._runs.values()),
            (rows.entries, self._entries),
            (rows.params, self._params.values()),
            (rows.tags, self._tags.values()),
            (rows.metrics, self._metrics.values()),
            (rows.latest, self._latest.values()),
            (rows.ends, [{"ended": run_id} | end for run_id, end in self._ends.items()]),
        ):
            if values:
                connection.execute(statement, list(values))


def _age(row: Row) -> tuple[int, int, float]:
    return row["step"], row["timestamp"], row["value"]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
