"""Runs logged with plain MLflow, against the study that the same numbers make by hand."""

import math
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from orchestrator.tracking import client as tracking_client
from ponderay import notebook
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import empty_store
from trainables.errors import InputError

OBJECTIVES = (Objective("error"), Objective("cost"))


class Theirs:
    """A store of somebody else with the experiment `theirs`."""

    def __init__(self, folder: Any) -> None:
        (folder / "theirs.db").write_bytes(empty_store())
        self.uri = f"sqlite:///{folder}/theirs.db"
        self.client = MlflowClient(tracking_uri=self.uri)
        self.experiment = self.client.create_experiment("theirs")
        self.now_ms = 1_000

    def log(self, error: float | None, status: str = "FINISHED", parent: str = "", **params: Any) -> str:
        """A run of two steps that took a second; the id of it."""
        self.now_ms += 1_000
        tags = {"mlflow.parentRunId": parent} if parent else {}
        run_id: str = self.client.create_run(self.experiment, self.now_ms, tags).info.run_id
        values = {"cost": 3.0} | ({} if error is None else {"error": error})
        metrics = [
            Metric(name, number, self.now_ms, step)
            for name, value in values.items()
            for step, number in enumerate((value + 1, value))
        ]
        given = [Param(name, str(value)) for name, value in params.items()]
        self.client.log_batch(run_id, metrics, given, [RunTag("team", "b")])
        if status != "RUNNING":
            self.client.set_terminated(run_id, status, self.now_ms + 1_000)
        return run_id

    def read(self, **changes: Any) -> Any:
        values = {"seed": "seed", "condition": "model", "objectives": OBJECTIVES, "tracking_uri": self.uri}
        return notebook.from_mlflow("theirs", **values | changes)


@pytest.fixture
def theirs(workplace):
    return Theirs(workplace)


def test_finished_runs_are_complete_and_others_as_they_ended(theirs):
    ids = [theirs.log(seed / 10, seed=seed, model="a") for seed in (1, 2)]
    theirs.log(0.5, "FAILED", seed=3, model="a")
    theirs.log(0.5, "KILLED", seed=1, model="b")
    theirs.log(0.5, "RUNNING", seed=2, model="b")
    theirs.log(None, seed=3, model="b")
    found = theirs.read(reference="a")
    assert [(r.condition, r.seed, r.state) for r in found.replicates] == [
        ("a", 1, "complete"), ("a", 2, "complete"), ("a", 3, "failed"),
        ("b", 1, "stopped"), ("b", 2, "running"), ("b", 3, "failed"),
    ]  # fmt: skip
    assert [(r.run_id, r.duration_s) for r in found.of("a")[:2]] == [(ids[0], 1.0), (ids[1], 1.0)]
    assert found.of("a")[1].metrics == {"error": 0.2, "cost": 3.0}
    assert found.of("b")[2].error == "error has no finite value"
    assert [(p.name, p.summaries[0].n) for p in notebook.pareto(found).points] == [("a", 2)]
    assert found.question.reference == "a"


def test_several_parameters_and_tags_make_a_condition(theirs):
    theirs.log(0.1, **{"run.seed": "1.0", "opt.lr": 0.01, "model": "big"})
    theirs.log(0.2, **{"run.seed": "1.0", "opt.lr": 0.1, "model": "big"})
    found = theirs.read(seed="run.seed", condition=["opt.lr", "team"])
    assert found.conditions == ("lr=0.01,team=b", "lr=0.1,team=b")
    assert found.question.configs["lr=0.1,team=b"] == {"opt.lr": "0.1", "team": "b"}


def test_infinity_which_the_database_holds_as_the_largest_number_is_no_finite_value(theirs):
    for seed, error in enumerate((math.inf, -math.inf, math.nan, 1.7e308), 1):
        theirs.log(error, seed=seed, model="a")
    theirs.log(0.5, seed=1, model="b")
    found = theirs.read()
    assert [(r.state, str(r.metrics["error"])) for r in found.of("a")] == [
        ("failed", "inf"), ("failed", "-inf"), ("failed", "nan"), ("complete", "1.7e+308"),
    ]  # fmt: skip
    assert {p.name: p.seeds for p in notebook.pareto(found).points} == {"a": (4,), "b": (1,)}


def test_a_number_is_one_condition_however_it_is_written(theirs):
    theirs.log(0.1, seed=1, lr="0.001", model="True")
    theirs.log(0.2, seed=2, lr="1e-3", model="True")
    theirs.log(0.3, seed=1, lr="1", model="1")
    theirs.log(0.4, seed=2, lr="1.0", model="1.0")
    theirs.log(0.5, seed=1, lr="007", model="7")
    assert [(r.condition, r.seed) for r in theirs.read(condition="lr").replicates] == [
        ("lr=0.001", 1), ("lr=0.001", 2), ("lr=1", 1), ("lr=1", 2), ("007", 1),
    ]  # fmt: skip
    theirs.log(0.6, "FAILED", seed="1.0", lr="1E-3", model="True")
    assert [(r.condition, r.seed) for r in theirs.read(condition=["lr", "model"]).replicates] == [
        ("lr=0.001,model=True", 1), ("lr=0.001,model=True", 2), ("lr=1,model=1", 1), ("lr=1,model=1", 2),
        ("lr=007,model=7", 1),
    ]  # fmt: skip


def test_of_several_attempts_the_finished_one_counts_else_the_newest(theirs):
    theirs.log(0.9, "FAILED", seed=1, model="a")
    theirs.log(0.1, seed=1, model="a")
    theirs.log(0.8, "FAILED", seed=1, model="a")
    theirs.log(0.7, "FAILED", seed=2, model="a")
    theirs.log(0.6, "KILLED", seed=2, model="a")
    assert [(r.seed, r.state, r.metrics["error"]) for r in theirs.read().replicates] == [
        (1, "complete", 0.1),
        (2, "stopped", 0.6),
    ]
    ids = [theirs.log(0.1, seed=5, model="a") for _ in range(2)]
    with pytest.raises(InputError, match=f"run {ids[0]} and run {ids[1]} are both 'a' with seed 5"):
        theirs.read()


def test_a_run_that_others_are_nested_in_needs_no_seed_and_any_other_does(theirs):
    parent = theirs.log(None, sweep="x")
    theirs.log(0.1, parent=parent, seed=1, model="a")
    assert len(theirs.read().replicates) == 1
    alone = theirs.log(0.1, model="a", lr=3)
    with pytest.raises(InputError, match=f"a parameter or tag 'seed', but run {alone} has lr, model, team; log it"):
        theirs.read()
    theirs.client.delete_run(alone)
    assert len(theirs.read().replicates) == 1


def test_all_pages_are_read_with_a_query_each(theirs, monkeypatch):
    for seed in range(7):
        theirs.log(0.1, seed=seed, model="a")
    asked = []
    search = MlflowClient.search_runs
    monkeypatch.setattr(tracking_client, "PAGE", 3)
    monkeypatch.setattr(MlflowClient, "search_runs", lambda *a, **k: asked.append(k["max_results"]) or search(*a, **k))
    assert [r.seed for r in theirs.read().replicates] == list(range(7))
    assert asked == [3, 3, 3]


def test_what_is_not_there_is_named(theirs, workplace):
    with pytest.raises(InputError, match="theirs must have at least one run"):
        theirs.read()
    with pytest.raises(InputError, match=r"no experiment 'ours' in the store; there are theirs, Default\."):
        notebook.from_mlflow("ours", "seed", "model", tracking_uri=theirs.uri)
    with pytest.raises(InputError, match=r"no tracking store at sqlite:///none\.db"):
        notebook.from_mlflow("theirs", "seed", "model", tracking_uri="sqlite:///none.db")
    assert not (workplace / "none.db").exists()
    theirs.log(0.1, seed="one", model="a")
    with pytest.raises(InputError, match=r"seed must be a whole number, but run .* has 'one'"):
        theirs.read()
