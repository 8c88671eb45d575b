"""Rows written together are those that MLflow's own client leaves, and all of them or none are there."""

import math
from dataclasses import replace

import pytest
from mlflow.exceptions import MlflowException
from mlflow.store.tracking.dbmodels import models
from sqlalchemy import Boolean, Float, MetaData, select

from orchestrator.environment.settings import read_settings
from orchestrator.results.curves import Curve
from orchestrator.tracking import mlflow_internals as internals
from orchestrator.tracking import names, row_batch
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.replicate_tags import encode
from tests.orchestrator.recorded import replicate

pytestmark = pytest.mark.every_store
TIMES = ("start_time", "end_time", "deleted_time")


def record(step, time_ms, **metrics):
    return {"kind": "metrics", "step": step, "time_ms": time_ms, "metrics": metrics}


def write_first(tracking, experiment, tmp_path):
    """All that a driver writes, of which a part is written twice, and late, and out of order."""
    parent = tracking.open_run(experiment, "condition", "key of a", "a", {names.CONDITION: "a"})
    tracking.log(parent, tags={"long": "x" * 9000, "empty": "", "zero": "a\0b"}, params={"x": 1.5, "text": "t" * 6001})
    run = tracking.open_run(experiment, "replicate", "key of a/1", "a seed 1", {internals.PARENT: "of a"})
    assert tracking.open_run(experiment, "replicate", "key of a/1", "a seed 1", {}) == run
    tracking.log(run, params={"x": 1.5, "seed": 1})
    rows = [record(1, 10, error=0.5, cost=math.nan), record(2, 9, error=math.inf), record(2, 8, error=-math.inf)]
    tracking.log(run, [*rows, rows[0], record(1, 99, error=7.0), record(2, 9, error=0.25)], tags={"a": "1"})
    tracking.log(run, [{"kind": "system", "step": 3, "time_ms": 5, "values": {"load": 1.0}}], tags={"a": "2"})
    ones = [replicate("a", seed, key=f"key of a/{seed}") for seed in (1, 2)]
    tracking.write_replicates(experiment, parent, {"ponderay.replicate.1": "once"})
    tracking.write_curves(parent, [Curve("a", "error", 2, (1, 2), (0.5, 0.25), (0.0, math.nan))])
    tracking.summarise_condition(parent, ones)
    tracking.finish(run, "complete")
    failed = tracking.open_run(experiment, "replicate", "key of a/2", "a seed 2", {})
    (tmp_path / "files").mkdir(exist_ok=True)
    (tmp_path / "files" / "plot.txt").write_text("drawn")
    tracking.finish(failed, "failed", "Traceback: no", tmp_path / "files")


def write_later(tracking, experiment):
    """What another driver goes on with: values that are there, older and newer ones, an ended run that begins again."""
    parent = tracking.open_run(experiment, "condition", "key of a", "a", {})
    tracking.log(parent, tags={"empty": "no more"}, params={"x": 1.5, "new": "later"})
    run = tracking.open_run(experiment, "replicate", "key of a/2", "a seed 2", {})
    rows = [record(1, 10, error=0.5, cost=0.0), record(1, 10, error=0.5), record(5, 1, error=math.nan)]
    tracking.log(run, rows, tags={"b": "1"})
    seen = tracking.open_run(experiment, "replicate", "key of a/1", "a seed 1", {})
    tracking.log(seen, [record(2, 7, error=0.0), record(1, 10, error=0.5), record(3, 1, cost=2.0)])
    tracking.write_replicates(experiment, parent, {"ponderay.replicate.1": "twice"})
    tracking.finish(run, "stopped")


@pytest.fixture
def by_client(tracking):
    """MLflow's own way, as to a server."""
    found = Tracking(read_settings())
    found._database = None
    return found


def dumped(tracking, experiment):
    """Every row of the runs of an experiment and of its registry, in every table, under the names of runs."""
    with tracking._client._tracking_client.store.ManagedSessionMaker() as session:
        connection, runs = session.connection(), models.SqlRun.__table__
        registry = tracking.registry(f"runs of experiment {experiment}").run_id
        is_ours = (runs.c.experiment_id == int(experiment)) | (runs.c.run_uuid == registry)
        found = connection.execute(select(runs.c.run_uuid, runs.c.name).where(is_ours)).all()
        ids = {run_id: "registry" if run_id == registry else name for run_id, name in found}
        metadata = MetaData()
        metadata.reflect(connection)
        return {
            table.name: sorted(
                repr({key: told(key, value, ids, experiment) for key, value in row.items()})
                for row in connection.execute(select(table).where(table.c.run_uuid.in_(ids))).mappings()
            )
            for table in metadata.sorted_tables
            if "run_uuid" in table.c
        }


def told(key, value, ids, experiment):
    if key in TIMES:
        return value is not None
    if key == "experiment_id":
        return "experiment"
    if not isinstance(value, str):
        return value
    for run_id, name in ids.items():
        value = value.replace(run_id, name)
    return value.replace(f"experiment {experiment}", "experiment").replace("/rows/", "/client/")


def test_they_are_what_the_client_leaves_run_by_run(tracking, by_client, tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.client._now_ms", lambda: 5_000)
    assert tracking.writes_together
    theirs, ours = by_client.open_experiment("client"), tracking.open_experiment("rows")
    with by_client.together():
        write_first(by_client, theirs, tmp_path)
    with tracking.together():
        write_first(tracking, ours, tmp_path)
    expected = dumped(by_client, theirs)
    assert {name for name, rows in expected.items() if rows} == {"runs", "tags", "params", "metrics", "latest_metrics"}
    assert dumped(tracking, ours) == expected
    with by_client.together():
        write_later(by_client, theirs)
    with (again := Tracking(read_settings())).together():
        write_later(again, ours)
    expected = dumped(by_client, theirs)
    assert dumped(tracking, ours) == expected


def test_its_columns_are_all_that_the_tables_have():
    for name, table in internals._tables().items():
        assert table.columns.keys() == internals.ROWS[name].split()
    assert isinstance(models.SqlMetric.__table__.c.value.type, Float)
    assert isinstance(models.SqlMetric.__table__.c.is_nan.type, Boolean)


def test_nothing_is_there_before_the_end_and_nothing_where_it_fails(tracking):
    experiment = tracking.open_experiment("sweep")
    with pytest.raises(ZeroDivisionError), tracking.together():
        tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
        assert not tracking._client.search_runs([experiment])
        raise ZeroDivisionError
    assert not tracking._client.search_runs([experiment])
    with tracking.together():
        run = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    assert [one.info.run_id for one in tracking._client.search_runs([experiment])] == [run]
    assert Tracking(read_settings()).find_run(experiment, "replicate", "0123") == run


def test_of_two_that_open_a_run_at_once_one_does_and_the_other_takes_it(tracking):
    experiment, other = tracking.open_experiment("sweep"), Tracking(read_settings())
    other.find_run(experiment, "replicate", "0123")  # has looked, and seen none
    with tracking.together():
        mine = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    with pytest.raises(MlflowException) as refused, other.together():
        other.open_run(experiment, "replicate", "0123", "a seed 1", {})
    assert not is_unavailable(refused.value)
    with other.together():
        assert other.open_run(experiment, "replicate", "0123", "a seed 1", {}) == mine
    assert len(tracking._client.search_runs([experiment])) == 1


@pytest.mark.parametrize("is_run", [True, False])
def test_a_run_or_an_experiment_that_was_deleted_takes_no_rows(tracking, is_run):
    experiment = tracking.open_experiment("sweep")
    run = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    if is_run:
        tracking._client.delete_run(run)
    else:
        tracking._client.delete_experiment(experiment)
    with pytest.raises(MlflowException, match="was deleted"), tracking.together():
        if is_run:
            tracking.log(run, [record(1, 10, error=0.5)])
        else:
            tracking.open_run(experiment, "replicate", "4567", "a seed 2", {})
    assert len(tracking._client.search_runs([experiment], run_view_type=3)) == 1
    assert not tracking._client.get_run(run).data.metrics


def test_what_the_client_refuses_is_refused(tracking):
    run = tracking.open_run(tracking.open_experiment("sweep"), "replicate", "0123", "a seed 1", {})
    with pytest.raises(MlflowException, match="Invalid value"), tracking.together():
        tracking.log(run, [record(1, 10, **{"a*b": 0.5})])


def test_a_store_of_other_tables_is_left_to_the_client(tracking, monkeypatch):
    monkeypatch.setattr(internals, "ROWS", internals.ROWS | {"SqlTag": "key value run_uuid colour"})
    assert not Tracking(read_settings()).writes_together


def test_replicates_of_a_condition_are_read_as_they_were_written(tracking):
    experiment = tracking.open_experiment("sweep")
    one = replace(replicate("a", 1), run_id="r")
    with tracking.together():
        parent = tracking.open_run(experiment, "condition", "k", "a", {names.CONDITION: "a"})
        tracking.write_replicates(experiment, parent, encode(one))
    assert tracking.read_study("sweep").replicates == (one,)
    assert row_batch.RowBatch(tracking._database).has_waiting(parent) is False


def test_a_run_that_ends_and_begins_again_within_one_batch_runs(tracking):
    experiment = tracking.open_experiment("sweep")
    run = tracking.open_run(experiment, "condition", "k", "a", {})
    with tracking.together():
        tracking.finish(run, "complete")
        assert tracking.open_run(experiment, "condition", "k", "a", {}) == run
    assert tracking._client.get_run(run).info.status == "RUNNING"


def test_many_metrics_are_written_before_the_batch_ends(tracking, monkeypatch):
    monkeypatch.setattr(row_batch, "MOST_METRICS", 3)
    experiment = tracking.open_experiment("sweep")
    with tracking.together():
        run = tracking.open_run(experiment, "condition", "k", "a", {})
        tracking.log(run, [record(step, step, error=0.5) for step in range(4)])
        assert len(tracking._client.get_metric_history(run, "error")) == 4


def test_a_tag_that_is_too_long_is_cut_also_where_a_run_begins(workplace):
    """PostgreSQL refuses what SQLite takes."""
    tracking = Tracking(read_settings())
    experiment = tracking.open_experiment("s")
    with tracking.together():
        run = tracking.open_run(experiment, "condition", "key", "a", {names.COMMAND: "x" * 9000})
    assert len(tracking._client.get_run(run).data.tags[names.COMMAND]) == 8000
