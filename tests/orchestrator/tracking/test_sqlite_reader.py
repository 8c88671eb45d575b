"""Reading a local store without MLflow: whether all runs of a sweep have ended, and whether the store is one."""

import pytest

from orchestrator.tracking import sqlite_reader
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


def test_replicates_are_counted_once_all_runs_have_ended_well(tmp_path):
    store = Store(tmp_path / "mlflow.db")
    store.write([replicate("a", 1)], revision=1)
    tags = {"ponderay.kind": "replicate"}
    runs = [store.client.create_run(store.experiment_id, tags=tags).info.run_id for _ in range(3)]
    for run_id in runs:
        store.client.set_terminated(run_id, "FINISHED")
    assert sqlite_reader.num_finished(store.uri, "asr.demo") is None
    store.client.set_terminated(store.run_ids["a"], "FINISHED")
    assert sqlite_reader.num_finished(store.uri, "asr.demo") == 3
    store.client.delete_run(runs[0])
    assert sqlite_reader.num_finished(store.uri, "asr.demo") == 2
    store.client.set_terminated(runs[1], "FAILED")
    assert sqlite_reader.num_finished(store.uri, "asr.demo") is None


def test_other_stores_are_left_to_mlflow(tmp_path):
    assert sqlite_reader.num_finished("http://localhost:5000", "asr.demo") is None
    assert sqlite_reader.num_finished(f"sqlite:///{tmp_path}/none.db", "asr.demo") is None
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(InputError, match=r"other\.db is damaged \(file is not a database\)\."):
        sqlite_reader.num_finished(f"sqlite:///{tmp_path}/other.db", "asr.demo")
