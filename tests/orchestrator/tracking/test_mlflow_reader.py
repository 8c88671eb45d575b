"""Reading a study through MLflow's client, where there is no study file."""

import math

import pytest

from orchestrator.results.study import Origin
from orchestrator.tracking.mlflow_reader import read_origins, read_study
from tests.orchestrator.recorded import Store, replicate


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlflow.db")


def read(store):
    return read_study(store.client, "asr.demo", store.experiment_id)


def test_conditions_come_in_the_order_of_their_start_and_seeds_in_order(store):
    late = store.write([replicate("late", 10), replicate("late", 9)], revision=1, start_ms=50, params={"lr": "0.1"})
    early = store.write([replicate("early", 1, metrics={"a": math.inf})], revision=2, start_ms=40)
    store.client.create_run(store.experiment_id, 1, {"ponderay.kind": "replicate"}, "late seed 9")
    study = read(store)
    assert study.sweep == "asr.demo"
    assert study.replicates == (*early, late[1], late[0])
    assert study.updated_ms == {"early": 2, "late": 1}
    assert study.configs == {"late": {"lr": "0.1"}}


def test_pages_are_put_together(store, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.mlflow_writer.PAGE", 2)
    for i in range(5):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    assert read(store).conditions == ("c0", "c1", "c2", "c3", "c4")


def test_a_condition_that_is_added_between_two_pages_doubles_none(store, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.mlflow_writer.PAGE", 2)
    for i in range(4):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    search, asked = store.client.search_runs, []

    def busy(*arguments, **options):
        page = search(*arguments, **options)
        if not asked:
            asked.append(store.write([replicate("new", 1)], revision=9, start_ms=9))
        return page

    monkeypatch.setattr(store.client, "search_runs", busy)
    assert [one.condition for one in read(store).replicates if one.condition != "new"] == ["c0", "c1", "c2", "c3"]


def test_conditions_deleted_in_mlflow_are_gone_until_they_are_restored(store):
    for i in range(3):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    store.client.delete_run(store.run_ids["c1"])
    assert read(store).conditions == ("c0", "c2")
    store.client.restore_run(store.run_ids["c1"])
    assert read(store).conditions == ("c0", "c1", "c2")


def test_nothing_recorded_is_an_empty_study(store):
    assert read(store).replicates == () and read(store).conditions == ()


def test_origins_are_those_of_the_replicates_runs_in_the_order_of_their_start(store):
    tags = {"git_commit": "c0ffee", "packages": "torch==2", "command": """ponderay run x --set 'a="b"'""", "key": "k"}
    tags = {f"ponderay.{name}": value for name, value in tags.items()}
    for start_ms, kind, key in ((3, "replicate", "late"), (2, "replicate", "early"), (1, "condition", "of condition")):
        named = tags | {"ponderay.kind": kind, "ponderay.key": key}
        store.client.create_run(store.experiment_id, start_ms, named)
    store.client.create_run(store.experiment_id, 4, {"ponderay.kind": "replicate", "ponderay.key": "old"})
    gone = store.client.create_run(store.experiment_id, 5, tags | {"ponderay.kind": "replicate"})
    store.client.delete_run(gone.info.run_id)
    of_tags = Origin("c0ffee", "torch==2", """ponderay run x --set 'a="b"'""")
    found = read_origins(store.client, store.experiment_id)
    assert list(found.items()) == [("early", of_tags), ("late", of_tags), ("old", Origin("", "", ""))]
