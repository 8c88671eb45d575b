"""Sweeps that are changed, mended or disturbed between two runs, without Ray."""

import os
import signal
from dataclasses import replace

import optuna
import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.stop_request import StoppedError
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import LeaseKeeper, StoreLease
from orchestrator.tracking.registry import Registry
from orchestrator.worker.code_version import version_of
from search_spaces.distributions import Real
from search_spaces.sweep import Objective, Search
from tests.integration import tiny as trainable
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts, statuses
from tests.integration.tiny import TinyEvaluation


def recorded(name: str = "tiny.sweep"):
    return Tracking(read_settings()).read_study(name).replicates


def studies() -> list[optuna.Study]:
    storage = read_settings().search_store
    return [optuna.load_study(study_name=name, storage=storage) for name in optuna.get_all_study_names(storage)]


def away(*_, **__):
    raise ConnectionError("the server is away")


@pytest.fixture
def broken_evaluation(monkeypatch):
    evaluate = trainable.evaluate

    def breaking(config, checkpoint, evaluation, trial):
        if evaluation.name == "bad":
            raise ValueError("this evaluation cannot be")
        evaluate(config, checkpoint, evaluation, trial)

    monkeypatch.setattr(trainable, "evaluate", breaking)
    return {"evaluations": (TinyEvaluation(), TinyEvaluation(name="bad"))}


def test_an_added_evaluation_that_fails_takes_no_result_away_for_good(workplace, broken_evaluation):
    whole = run_quietly(tiny({"a": {}}, seeds=(1,)))
    (failed,) = run_quietly(tiny({"a": broken_evaluation}, seeds=(1,))).replicates
    assert (failed.state, failed.error) == ("failed", "ValueError: this evaluation cannot be")
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert [(r.state, r.metrics["error@plain"]) for r in recorded()] == [
        ("complete", whole.replicates[0].metrics["error@plain"])
    ]
    run_quietly(tiny({"a": broken_evaluation}, seeds=(1,)))
    mended = {"evaluations": (TinyEvaluation(), TinyEvaluation(name="good", factor=2.0))}
    assert run_quietly(tiny({"a": mended}, seeds=(1,))).replicates[0].state == "complete"


def test_an_added_evaluation_tells_which_of_the_kept_checkpoints_it_took(workplace):
    """The last epoch is best under the first, the first epoch under the second; of these two the third has a choice."""
    kept = (TinyEvaluation(), TinyEvaluation(name="worst", factor=-1.0))
    run_quietly(tiny({"a": {"evaluations": kept}}, seeds=(1,)))
    added = (*kept, TinyEvaluation(name="late", factor=-2.0))
    (replicate,) = run_quietly(tiny({"a": {"evaluations": added}}, seeds=(1,))).replicates
    steps = {name: replicate.metrics[f"checkpoint_step@{name}"] for name in ("plain", "worst", "late")}
    assert steps == {"plain": 4, "worst": 1, "late": 1}


def test_a_metric_of_the_trainable_takes_the_place_of_the_checkpoints_step(workplace, monkeypatch):
    reported = {"error": 0.5, "cost": 1.0, "checkpoint_step": 77.0}
    monkeypatch.setattr(trainable, "evaluate", lambda config, path, evaluation, trial: trial.report(reported, step=4))
    (replicate,) = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates
    assert replicate.metrics["checkpoint_step@plain"] == 77.0


def test_another_base_or_objective_is_another_search(workplace):
    run_quietly(searched(2))
    assert run_quietly(searched(2).with_values({"num_epochs": 2})).num_failed == 0
    run_quietly(searched(3, objectives=(Objective("error"),)))
    assert sorted(len(study.trials) for study in studies()) == [2, 2, 3]
    assert {trial.state.name for study in studies() for trial in study.trials} == {"COMPLETE"}


def test_a_trial_that_was_half_drawn_is_not_trained(workplace):
    space = {"x": Real(0.1, 1.0), "first.level": Real(0.1, 1.0)}
    sweep = tiny((), "tiny.search", search=Search(space, num_trials=1), seeds=(1,))
    run_quietly(sweep)
    (study,) = studies()
    study.ask().suggest_float("x", 0.1, 1.0)
    outcome = run_quietly(replace(sweep, search=replace(sweep.search, num_trials=2)))
    assert [trial.state.name for trial in study.get_trials()] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert len(outcome.replicates) == 2


def test_a_search_goes_on_past_a_condition_whose_prerequisite_fails(workplace):
    for _ in range(2):
        run_quietly(searched(2, seeds=(1,)).with_values({"first.nan_at": 1}))
        assert [trial.state.name for trial in studies()[0].trials] == ["FAIL", "FAIL"]


def test_an_optuna_database_that_cannot_be_written_now_hears_later(workplace, monkeypatch):
    tell, failures = optuna.Study.tell, [1, 2]

    def failing(self, *arguments, **options):
        if failures:
            failures.pop()
            raise optuna.exceptions.StorageInternalError("database or disk is full")
        return tell(self, *arguments, **options)

    monkeypatch.setattr(optuna.Study, "tell", failing)
    run_quietly(searched(2, seeds=(1,)))
    assert [trial.state.name for trial in studies()[0].trials] == ["COMPLETE", "COMPLETE"]


@pytest.mark.parametrize("call", ["acquire", "release"])
def test_a_store_that_is_away_when_a_prerequisite_is_taken_or_given_back_is_waited_for(workplace, monkeypatch, call):
    real, failures = getattr(StoreLease, call), [1]

    def failing(self):
        if self.name.startswith("prerequisite") and failures:
            failures.pop()
            away()
        return real(self)

    monkeypatch.setattr(StoreLease, call, failing)
    assert [r.state for r in run_quietly(tiny({"a": {}}, seeds=(1,))).replicates] == ["complete"]
    assert not failures


def test_results_of_mended_code_alone_are_the_mended_codes(workplace, monkeypatch):
    sweep = tiny({"a": {"raise_at": 1}}, seeds=(1,))
    run_quietly(sweep)
    monkeypatch.setattr(
        "orchestrator.scheduler.task_factory.version_of",
        lambda sources: version_of(sources) if any("tiny_first" in name for name in sources) else "mended",
    )
    monkeypatch.setattr(trainable, "_strike", lambda config, epoch: None)
    assert run_quietly(sweep, accept_code=True).replicates[0].state == "complete"
    assert [r.code_version for r in recorded()] == ["mended"]
    run_quietly(sweep)


def test_a_prerequisite_that_other_code_has_made_meanwhile_is_refused(workplace, monkeypatch):
    real, others = StoreLease.acquire, []

    def meanwhile(self):
        if self.name.startswith("prerequisite") and not others:
            others.append(1)
            with monkeypatch.context() as patch:
                patch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "other")
                run_quietly(tiny({"z": {}}, name="tiny.other", seeds=(1,)))
        return real(self)

    monkeypatch.setattr(StoreLease, "acquire", meanwhile)
    with pytest.raises(RefusedError, match="prerequisite first was trained by version other"):
        run_quietly(tiny({"a": {}}, seeds=(1,)))


def test_a_run_that_was_removed_from_the_store_for_good_is_made_again(workplace):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    client = Tracking(read_settings())._client
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    for run in client.search_runs([experiment]):
        client.delete_run(run.info.run_id)
        client._tracking_client.store._hard_delete_run(run.info.run_id)
    run_quietly(tiny({"a": {}}, seeds=(1, 2)))
    assert statuses("tiny.sweep") == dict.fromkeys(["a", "a seed 1", "a seed 2"], "FINISHED")
    assert set(starts().values()) == {1}


def test_a_driver_that_has_lost_its_lease_writes_no_more(workplace, monkeypatch):
    """Another one has completed the sweep meanwhile."""
    from orchestrator.worker import execute as worker

    monkeypatch.setattr(LeaseKeeper, "_run", lambda self: None)  # which would notice it on its own

    execute, plans, others = worker.execute, [], []
    make = Scheduler.__init__
    monkeypatch.setattr(Scheduler, "__init__", lambda self, *a: (make(self, *a), plans.append(self))[0])

    def meanwhile(work, send):
        if work.label == "a seed 1" and not others:
            others.append(1)
            plans[0]._recorder._queue.drain(60.0)  # a run in the making would be removed under its feet
            with monkeypatch.context() as patch:
                patch.setattr("fcntl.flock", lambda *_: None)  # a disk with locks of each machine's own
                patch.setattr(StoreLease, "_is_free", lambda *_: True)
                run_quietly(tiny({"a": {}}, seeds=(1,)))
            plans[0].stopping.lose("The lease cannot be kept.")
        execute(work, send)

    monkeypatch.setattr(worker, "execute", meanwhile)
    with pytest.raises(StoppedError, match="cannot be kept"):
        run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert [(r.state, "error@plain" in r.metrics) for r in recorded()] == [("complete", True)]
    assert statuses("tiny.sweep") == dict.fromkeys(["a", "a seed 1"], "FINISHED")


def test_a_node_that_is_away_for_a_moment_is_no_reason_to_refuse(workplace, monkeypatch):
    """Only before anything starts it is asked whether there is enough."""
    number = [2]
    monkeypatch.setattr("orchestrator.run.Capacity", lambda *_: Capacity(number[0], 0))
    ended = Scheduler.ended

    def dip(self, key, lost=""):
        number[0] = 0
        ended(self, key, lost)
        self.extend()
        number[0] = 2

    monkeypatch.setattr(Scheduler, "ended", dip)
    assert [r.state for r in run_quietly(searched(3, seeds=(1,))).replicates] == ["complete"] * 3
    monkeypatch.setattr("orchestrator.run.Capacity", lambda *_: Capacity(0, 0))
    run_quietly(searched(3, seeds=(1,)))
    with pytest.raises(RefusedError, match="needs 1 CPUs"):
        run_quietly(searched(4, seeds=(1,)))


def test_a_signal_that_comes_at_the_very_end_leaves_the_process_alive(workplace, monkeypatch):
    leave = ProgressView.__exit__

    def late(self, *error):
        leave(self, *error)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressView, "__exit__", late)
        with pytest.raises(KeyboardInterrupt):
            run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert StoreLease(Tracking(read_settings()), "sweep tiny.sweep").acquire()


def test_devices_are_held_once_for_as_long_as_the_work_takes(workplace, monkeypatch):
    plans, make = [], Scheduler.__init__
    monkeypatch.setattr(Scheduler, "__init__", lambda self, *a: (make(self, *a), plans.append(self))[0])
    seen, end = [], Recorder.end
    monkeypatch.setattr(Recorder, "end", lambda self, *a: (seen.append(plans[0].device_s()), end(self, *a))[1])
    run_quietly(tiny({"a": {"sleep_s": 0.3}}, seeds=(1,)))
    assert 1.2 <= plans[0].device_s() <= seen[-1], "nothing is held after the end"


def test_a_metric_whose_name_no_store_takes_fails_its_replicate_in_words(workplace, monkeypatch):
    from orchestrator.worker.journal_trial import JournalTrial

    report = JournalTrial.report
    monkeypatch.setattr(
        JournalTrial, "report", lambda self, metrics, **rest: report(self, metrics | {"loss (nats)": 1.0}, **rest)
    )
    (failed,) = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates
    assert "A metric's name must have 1 to 150 letters, digits, spaces" in failed.error
    assert "'loss (nats)'" in failed.error


def test_a_book_that_cannot_be_noted_in_does_not_keep_a_process_from_its_own_sweep(workplace, monkeypatch):
    note = Registry.note
    monkeypatch.setattr(
        Registry, "note", lambda self, name, value: away() if value == "released" else note(self, name, value)
    )
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    monkeypatch.setattr(Registry, "note", note)
    assert run_quietly(tiny({"a": {}}, seeds=(1, 2))).num_failed == 0
