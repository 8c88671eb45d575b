"""Predictors and conditions beside what needs no learning: said in checks, and warned of where it is not beaten."""

from dataclasses import replace

import pytest

from orchestrator.checks.sweep import check_floors
from orchestrator.environment.settings import Settings
from orchestrator.results.floors import BesideFloor, beaten_sentences, beside_floors, of_study
from orchestrator.results.study import Study
from orchestrator.scheduler.floors import of_prerequisites
from orchestrator.scheduler.task import folder_of
from orchestrator.scheduler.task_factory import TaskFactory
from tests.integration import tiny_first
from tests.integration.sweeps import FIRST, tiny
from tests.orchestrator.recorded import replicate
from trainables.act.metrics import METRICS as ACT
from trainables.asr.metrics import METRICS as ASR
from trainables.lm.metrics import METRICS as LM
from trainables.metric import Metric

METRICS = (Metric("loss", direction="minimize", floor="linear"), Metric("linear"), Metric("valid_error"))


@pytest.fixture
def factory(tmp_path, monkeypatch) -> TaskFactory:
    """Of a sweep whose prerequisite, one for each of two seeds, has a floor of 100."""
    monkeypatch.setattr(tiny_first, "metrics", METRICS, raising=False)
    sweep = tiny({"a": {}}, seeds=(1, 2), prerequisites=(replace(FIRST, each_seed=True),))
    return TaskFactory(sweep, Settings(tmp_path, ""), 0)


def record(factory: TaskFactory, seed: int, *losses: float, is_complete: bool = True) -> None:
    """What a worker that reports the floor once leaves of a prerequisite."""
    task = factory.prerequisites(factory.sweep.conditions[0], seed)["first"]
    folder = folder_of(task)
    folder.append({"kind": "started", "attempt": "1", "code_version": "v", "host": "h", "device": "cpu"})
    for step, loss in enumerate(losses):
        metrics = {"loss": loss} | ({"linear": 100.0} if step == 0 else {})
        folder.append({"kind": "metrics", "step": step, "metrics": metrics})
    if is_complete:
        folder.append({"kind": "state", "state": "complete"})


def test_a_predictor_is_held_by_its_best_value(factory):
    record(factory, 1, 300.0, 90.0, 96.0)
    assert of_prerequisites(factory) == [BesideFloor("prerequisite first seed 1", "loss", 90.0, "linear", 100.0)]
    (check,) = check_floors(factory)
    assert (check.name, check.state) == ("prerequisites", "ok")
    assert check.found == "prerequisite first seed 1: loss 90 is 10.0 % below linear 100"


@pytest.mark.parametrize(
    ("loss", "said"), [(96.0, "is 4.0 % below"), (100.0, "is equal to linear 100"), (268.0, "168.0 % above")]
)
def test_a_predictor_that_has_not_learnt_is_warned_of(factory, loss, said):
    record(factory, 1, 300.0, 90.0)
    record(factory, 2, 300.0, loss)
    (check,) = check_floors(factory)
    assert check.state == "warning" and "seed 2" in check.found and said in check.found
    assert "a model that has learnt is at least 5 % below" in check.found and "Train it longer" in check.remedy


def test_all_seeds_that_beat_their_floor_have_one_sentence(factory):
    record(factory, 1, 300.0, 90.0)
    assert beaten_sentences(of_prerequisites(factory)) == (
        "prerequisite first seed 1: loss 90 is 10.0 % below linear 100.",
    )
    record(factory, 2, 300.0, 80.0)
    assert beaten_sentences(of_prerequisites(factory)) == (
        "prerequisite first, 2 seeds: loss is 10.0 % to 20.0 % below linear.",
    )


def test_predictors_of_two_conditions_stay_apart():
    two = [BesideFloor("prerequisite ar", "loss", value, "linear", 100.0) for value in (90.0, 80.0)]
    assert beaten_sentences(two) == tuple(one.sentence for one in two)


def test_five_per_cent_below_is_enough(factory):
    record(factory, 1, 95.0)
    assert [one.is_beaten for one in of_prerequisites(factory)] == [True]


def test_of_what_is_not_complete_or_has_no_floor_nothing_is_said(factory, monkeypatch):
    record(factory, 1, 300.0, 90.0, is_complete=False)
    assert check_floors(factory) == []
    record(factory, 2, 268.0)
    monkeypatch.setattr(tiny_first, "metrics", (Metric("loss"),))
    assert check_floors(factory) == []


def test_an_evaluation_has_its_own_floor_or_that_of_the_replicate():
    floors = {"perplexity": "bigram", "step_error": "majority"}
    values = {"perplexity@test": 80.0, "bigram": 100.0, "step_error@test": 0.5, "majority@test": 0.5, "majority": 0.1}
    assert [(one.metric, one.floor, one.is_beaten) for one in beside_floors("a", values, floors)] == [
        ("perplexity@test", "bigram", True),
        ("step_error@test", "majority@test", False),
    ]


def test_conditions_are_held_in_means_over_their_seeds():
    replicates = [
        replicate(name, seed, metrics={"perplexity@test": value + seed, "bigram_perplexity": 100.0})
        for name, value in (("good", 70.0), ("poor", 96.0))
        for seed in (1, 2)
    ]
    good, poor = of_study(Study("s", tuple(replicates)), LM)
    assert (good.value, good.is_beaten, poor.value, poor.is_beaten) == (71.5, True, 97.5, False)


def test_every_floor_of_the_families_is_one_of_their_metrics():
    for metrics in (ACT, ASR, LM):
        named = {one.floor for one in metrics if one.floor}
        assert named and named <= {one.name for one in metrics}
        assert all(one.direction == "minimize" for one in metrics if one.floor)


def test_beside_a_floor_of_0_no_share_is_said():
    floors = [BesideFloor(f"first seed {seed}", "nll", -float(seed), "linear", 0.0) for seed in (1, 2)]
    assert beaten_sentences(floors) == tuple(f"first seed {n}: nll -{n} is below linear 0." for n in (1, 2))
    assert BesideFloor("a", "loss", 0.0, "linear", 0.0).sentence == "a: loss 0 is equal to linear 0."
