"""The same promises under Ray: in the trial, in one Train worker, in two; faults of processes; Optuna."""

import json
from pathlib import Path

import pytest
import torch
from rich.console import Console

from orchestrator.driver import run_on_ray
from orchestrator.refusal import RefusedError
from orchestrator.settings import read_settings
from orchestrator.tracking import Tracking
from search_spaces.sweep import Condition, Resources
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts, statuses
from trainables.asr.config import AsrConfig, Optimisation, Pretraining, Random, Recurrent
from trainables.asr.data_config import Synthetic

pytestmark = pytest.mark.usefixtures("ray_instance", "workplace")


def run_with_ray(sweep, accept_code=False):
    return run_on_ray(sweep, read_settings(), Console(quiet=True), None, accept_code)


def by_condition(outcome):
    return {(r.condition, r.seed): (r.state, dict(r.metrics)) for r in outcome.replicates}


def test_trial_train_workers_and_no_ray_give_the_same_digits():
    conditions = (
        Condition("in the trial", {"first.level": 0.5}),
        Condition("in two workers", {"first.level": 0.625}, Resources(num_workers=2)),
    )
    sweep = tiny(conditions, seeds=(1,))
    outcome = run_with_ray(sweep)
    alone = run_quietly(tiny(conditions, seeds=(1,), name="tiny.alone"))
    assert by_condition(outcome) == by_condition(alone)
    assert {r.state for r in outcome.replicates} == {"complete"}
    assert set(statuses("tiny.sweep").values()) == {"FINISHED"}
    run_with_ray(sweep)
    assert set(starts().values()) == {1}


def check_faults(resources):
    mark = Path("killed").absolute()
    conditions = (
        Condition("nan", {"nan_at": 3}, resources),
        Condition("raises", {"raise_at": 2}, resources),
        Condition("killed", {"kill_at": 3, "fault_file": mark}, resources),
        Condition("good", {}),
    )
    outcome = run_with_ray(tiny(conditions, seeds=(1,)))
    assert {r.condition: (r.state, r.error) for r in outcome.replicates} == {
        "nan": ("failed", "DivergedError: The loss is nan at epoch 3, batch 1."),
        "raises": ("failed", "ZeroDivisionError: ordered"),
        "killed": ("complete", ""),
        "good": ("complete", ""),
    }
    assert mark.exists()
    metrics = {r.condition: dict(r.metrics) for r in outcome.replicates}
    recorded = Tracking(read_settings()).read_study("tiny.sweep").replicates
    assert {r.condition: dict(r.metrics) for r in recorded} == metrics
    alone = run_quietly(tiny({"killed": {"kill_at": 3}}, name="tiny.alone", seeds=(1,)))
    assert metrics["killed"] == dict(alone.replicates[0].metrics)
    for journal in Path("runs").rglob("journal.jsonl"):
        steps = [record["step"] for record in map(json.loads, journal.open()) if record["kind"] == "metrics"]
        assert steps == sorted(set(steps))
    assert "RUNNING" not in statuses("tiny.sweep").values()


def test_faults_fail_their_replicate_only_and_a_killed_worker_is_replaced():
    check_faults(Resources(num_workers=0))


@pytest.mark.slow
def test_faults_in_train_workers_fail_their_replicate_only_and_a_killed_one_is_replaced():
    check_faults(Resources(num_workers=1))


@pytest.mark.slow
def test_faults_in_one_of_two_train_workers_end_the_other_too():
    check_faults(Resources(num_workers=2))


def test_a_search_is_drawn_and_told_under_ray():
    outcome = run_with_ray(searched(num_trials=4))
    assert [r.state for r in outcome.replicates] == ["complete"] * 8
    assert len({r.condition for r in outcome.replicates}) == 4


def test_what_can_never_fit_is_refused_before_it_starts():
    with pytest.raises(RefusedError, match="needs 16 CPUs"):
        run_with_ray(tiny((Condition("huge", {}, Resources(num_workers=16)),)))


def test_two_processes_train_a_recogniser_as_one_does():
    """Without dropout and with p_big = 1, what data-parallel training computes does not depend on their number."""
    data = Synthetic(num_train_utterances=9, num_validation_utterances=2, num_test_utterances=2)
    quick = Optimisation(batch_size=4, num_epochs=2, learning_rate=1e-3)
    base = AsrConfig(
        data=data,
        ar=Pretraining(data=data, hidden_size=8, dropout=0, training=quick),
        network=Recurrent(pre_hidden_size=4, big_hidden_size=8, post_hidden_size=4, dropout=0),
        controller=Random(p_big=1),
        training=quick,
    )
    from search_spaces.asr import AUTOREGRESSIVE, OBJECTIVES

    def sweep(name, num_workers):
        return tiny(
            {"a": {}},
            name=name,
            trainable="trainables.asr.train",
            base=base,
            objectives=OBJECTIVES,
            seeds=(1,),
            prerequisites=(AUTOREGRESSIVE,),
            resources=Resources(num_workers=num_workers),
        )

    one = run_quietly(sweep("asr.one", 0)).replicates[0]
    two = run_with_ray(sweep("asr.two", 2)).replicates[0]
    assert two.state == "complete"
    for metric in ("train_loss_nats", "valid_loss_nats@stochastic", "macs_per_frame@stochastic", "gradient_norm"):
        assert two.metrics[metric] == pytest.approx(one.metrics[metric], rel=1e-4), metric
    states = [
        torch.load(next(Path(f"runs/replicates/{name}").rglob("step_000002*.pt")), weights_only=True)
        for name in ("asr.one", "asr.two")
    ]
    torch.testing.assert_close(states[1]["recogniser"], states[0]["recogniser"], rtol=1e-3, atol=1e-5)
    assert [len(state["rng"]) for state in states] == [1, 2]
