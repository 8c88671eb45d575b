"""Reading a local store without MLflow: whether all runs of a sweep have ended, and whether the store is one."""

import pytest

from orchestrator.tracking import sqlite_reader
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


def test_runs_that_have_not_ended_well_are_counted(tmp_path):
    store = Store(tmp_path / "mlflow.db")
    store.write([replicate("a", 1)], revision=1)
    store.write([replicate("b", 1)], revision=2)
    assert sqlite_reader.num_unfinished(store.uri, "asr.demo") == 2
    store.client.set_terminated(store.run_ids["a"], "FINISHED")
    store.client.set_terminated(store.run_ids["b"], "FAILED")
    assert sqlite_reader.num_unfinished(store.uri, "asr.demo") == 1
    store.client.delete_run(store.run_ids["b"])
    assert sqlite_reader.num_unfinished(store.uri, "asr.demo") == 0


def test_other_stores_are_left_to_mlflow(tmp_path):
    assert sqlite_reader.num_unfinished("http://localhost:5000", "asr.demo") is None
    assert sqlite_reader.num_unfinished(f"sqlite:///{tmp_path}/none.db", "asr.demo") is None
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(InputError, match=r"other\.db is damaged \(file is not a database\)\."):
        sqlite_reader.num_unfinished(f"sqlite:///{tmp_path}/other.db", "asr.demo")
