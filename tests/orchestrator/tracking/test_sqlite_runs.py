"""What the file of a store says of a sweep's runs is what MLflow's client says of them."""

import math
import sqlite3

import pytest
from mlflow.entities import Metric

from orchestrator.tracking import sqlite_runs
from orchestrator.tracking.mlflow_runs import MlflowRuns
from orchestrator.tracking.sqlite_runs import find_runs
from tests.orchestrator.recorded import Store
from trainables.errors import InputError


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlflow.db")


def both(store):
    return MlflowRuns(store.client, store.experiment_id), find_runs(store.uri, store.experiment)


def opened(store, **options):
    return sqlite3.connect(store.uri.removeprefix("sqlite:///"), **options)


def new_run(store, start_ms, **tags):
    named = {f"ponderay.{name}": value for name, value in tags.items()}
    return store.client.create_run(store.experiment_id, start_ms, named).info.run_id


def test_a_history_has_nan_where_mlflow_has_it(store):
    """MLflow keeps 0 in its place."""
    values = [1.0, math.nan, math.inf, -math.inf, 2.0]
    run_id = new_run(store, 1, kind="condition", condition="a")
    store.client.log_batch(run_id, [Metric("m", value, step, step) for step, value in enumerate(values)])
    by_mlflow, found = (runs.run_of("a").history("m") for runs in both(store))
    assert repr(found) == repr(by_mlflow)
    assert math.isnan(found[1]) and found[4] == 2.0


def test_of_values_that_start_together_the_run_with_the_lesser_id_is_first(store):
    run_ids = sorted(new_run(store, 5, kind="replicate") for _ in range(3))
    for run_id, commit in zip(run_ids, ("late", "early", "late"), strict=True):
        store.client.set_tag(run_id, "ponderay.git_commit", commit)
    with opened(store) as database:  # of the value that comes second some run has the least id, but a later start
        database.execute("UPDATE runs SET start_time = 9 WHERE run_uuid = ?", run_ids[:1])
    by_mlflow, found = (runs.values_of("ponderay.git_commit", 9) for runs in both(store))
    assert found == by_mlflow == (["early", "late"], True)


def test_of_two_workspaces_with_the_sweep_none_is_guessed(store):
    with opened(store) as database:
        database.execute(
            "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage, workspace) "
            "SELECT -1, name, artifact_location, 'active', 'lab' FROM experiments WHERE name = ?",
            (store.experiment,),
        )
    assert find_runs(store.uri, store.experiment) is None


def test_a_store_that_another_process_holds_is_told(store, monkeypatch):
    """It is taken after the look at its version."""
    monkeypatch.setattr(sqlite_runs, "WAIT_S", 0.01)
    monkeypatch.setattr(sqlite_runs, "is_known", lambda _: True)
    with opened(store, isolation_level=None) as database:
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="cannot be opened: database is locked"):
            find_runs(store.uri, store.experiment)
        database.execute("ROLLBACK")


@pytest.mark.parametrize("folder", ["a%20b", "a b", "a#b", "ü;x"])
@pytest.mark.parametrize("is_uri", [True, False])
def test_files_are_read_where_mlflow_has_them(store, tmp_path, folder, is_uri):
    place = tmp_path / folder
    location = place.as_uri() if is_uri else str(place)
    store.experiment = "asr.placed"
    store.experiment_id = store.client.create_experiment(store.experiment, artifact_location=location)
    store.client.log_text(new_run(store, 1, kind="sweep"), "-old", "uncommitted/a.diff")
    by_mlflow, found = (
        [(one.path, one.num_bytes, one.read()) for one in runs.files_of("uncommitted")] for runs in both(store)
    )
    assert found == by_mlflow == [("uncommitted/a.diff", 4, b"-old")]
