"""What a plan does, in one process: each promise of the orchestrator with a trainable that takes no time."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.progress import ProgressView
from orchestrator.tracking.client import Tracking
from tests.integration import tiny as tiny_trainable
from tests.integration.sweeps import REFUSED, run_quietly, searched, tiny
from tests.integration.tiny import TinyEvaluation
from tests.waiting import LIMIT_S, until
from trainables.config import content_hash

ROOT = Path(__file__).parents[2]


def starts(folder: Path = Path("runs")) -> dict[str, int]:
    """How often each replicate and prerequisite was started, by its key."""
    counts = {}
    for journal in folder.rglob("journal.jsonl"):
        records = [json.loads(line) for line in journal.read_text().splitlines()]
        counts[journal.parent.name] = sum(record["kind"] == "started" for record in records)
    return counts


RUNS_OF_A_AND_B = [f"{condition} seed {seed}" for condition in "ab" for seed in (1, 2)]


def statuses(sweep: str) -> dict[str, str]:
    """MLflow's own status of each condition's and replicate's run of a sweep, by name."""
    client = Tracking(read_settings())._client
    experiment = client.get_experiment_by_name(sweep)
    runs = client.search_runs([experiment.experiment_id], "tags.`ponderay.kind` != 'sweep'", max_results=1000)
    names = [run.info.run_name for run in runs]
    assert len(set(names)) == len(names), names
    return {run.info.run_name: run.info.status for run in runs}


@pytest.mark.every_store
def test_a_sweep_leaves_each_condition_with_its_replicates_in_mlflow(workplace):
    outcome = run_quietly(tiny({"a": {}, "b": {"x": 0.25}}))
    assert [(r.condition, r.seed, r.state) for r in outcome.replicates] == [
        (condition, seed, "complete") for condition in "ab" for seed in (1, 2)
    ]
    expected = ["a", "b", "a seed 1", "a seed 2", "b seed 1", "b seed 2"]
    assert statuses("tiny.sweep") == dict.fromkeys(expected, "FINISHED")
    study = Tracking(read_settings()).read_study("tiny.sweep")
    assert {r.key: r.metrics for r in study.replicates} == {r.key: r.metrics for r in outcome.replicates}

    client = Tracking(read_settings())._client
    runs = client.search_runs([client.get_experiment_by_name("tiny.sweep").experiment_id])
    by_name = {run.info.run_name: run for run in runs}
    parent, first, second = by_name["a"], by_name["a seed 1"], by_name["a seed 2"]
    assert first.data.tags["mlflow.parentRunId"] == parent.info.run_id
    errors = [run.data.metrics["error/plain"] for run in (first, second)]
    assert parent.data.metrics["error/plain"] == pytest.approx(sum(errors) / 2)
    assert parent.data.metrics["error/plain.std"] == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5)
    assert parent.data.metrics["error/plain.n"] == 2
    history = client.get_metric_history(first.info.run_id, "total")
    assert [metric.step for metric in history] == [1, 2, 3, 4]
    assert first.data.tags["ponderay.data_fingerprint"] == "tiny"


def test_the_same_sweep_again_repeats_nothing(workplace):
    sweep = tiny({"a": {}, "b": {"x": 0.25}})
    first = run_quietly(sweep)
    assert set(starts().values()) == {1}
    assert len(starts()) == 5
    again = run_quietly(sweep)
    assert set(starts().values()) == {1}
    assert [(r.key, r.state, r.metrics) for r in again.replicates] == [
        (r.key, r.state, r.metrics) for r in first.replicates
    ]


def test_more_seeds_conditions_and_evaluations_extend_it(workplace):
    run_quietly(tiny({"a": {}}))
    run_quietly(tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1, 2, 3)))
    assert len(starts()) == 7
    assert set(starts().values()) == {1}
    added = (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))
    outcome = run_quietly(tiny({"a": {"evaluations": added}}))
    metrics = outcome.replicates[0].metrics
    assert metrics["error@double"] == pytest.approx(2 * metrics["error@plain"])
    assert len(starts()) == 7
    journal = next(Path("runs").rglob(f"{outcome.replicates[0].key}/journal.jsonl"))
    steps = [json.loads(line)["step"] for line in journal.read_text().splitlines() if '"kind": "metrics"' in line]
    assert steps == [1, 2, 3, 4]


def test_the_time_left_is_first_told_by_what_the_same_conditions_took(workplace, monkeypatch):
    told = []
    monkeypatch.setattr(ProgressView, "expect", lambda _, duration_s: told.append(duration_s))
    first = run_quietly(tiny({"a": {}, "b": {"x": 0.25, "sleep_s": 0.05}}))
    assert told == []
    run_quietly(tiny({"a": {}}, seeds=(1, 2, 3)))
    run_quietly(tiny({"c": {"x": 0.75}}))
    of_a, of_b = ([one.duration_s for one in first.replicates if one.condition == name] for name in "ab")
    of_third = Tracking(read_settings()).read_study("tiny.sweep").of("a")[-1].duration_s
    assert told == pytest.approx([sum(of_a) / 2, (sum(of_a) + sum(of_b) + of_third) / 5], abs=0.1)


def test_another_setting_under_an_evaluations_name_is_refused(workplace, monkeypatch):
    """Whether its results are there already, or only its choice of checkpoints."""
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    changed = {"evaluations": (TinyEvaluation(factor=2.0),)}
    with pytest.raises(RefusedError, match="a seed 1 already has an evaluation 'plain' with other settings"):
        run_quietly(tiny({"a": changed}, seeds=(1,)))
    for journal in Path("runs/replicates").rglob("journal.jsonl"):
        lines = [line for line in journal.read_text().splitlines() if '"kind": "started"' in line]
        journal.write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{workplace}/runs/another.db")
    with pytest.raises(RefusedError, match="with other settings"):
        run_quietly(tiny({"a": changed}, seeds=(1,)))


def test_a_nan_and_an_exception_fail_their_replicates_only(workplace):
    sweep = tiny({"nan": {"nan_at": 3}, "raises": {"raise_at": 2}, "good": {}}, seeds=(1,))
    outcome = run_quietly(sweep)
    assert {r.condition: (r.state, r.error) for r in outcome.replicates} == {
        "nan": ("failed", "DivergedError: The loss is nan at epoch 3, batch 1."),
        "raises": ("failed", "ZeroDivisionError: ordered"),
        "good": ("complete", ""),
    }
    assert statuses("tiny.sweep")["nan seed 1"] == "FAILED"
    assert statuses("tiny.sweep")["nan"] == "FAILED"
    client = Tracking(read_settings())._client
    runs = client.search_runs([client.get_experiment_by_name("tiny.sweep").experiment_id])
    failed = next(run for run in runs if run.info.run_name == "raises seed 1")
    assert [file.path for file in client.list_artifacts(failed.info.run_id)] == ["traceback.txt"]
    run_quietly(sweep)
    assert set(starts().values()) == {1}


def test_a_failed_prerequisite_fails_what_needs_it_with_its_cause(workplace):
    outcome = run_quietly(tiny({"a": {"first.nan_at": 1}, "good": {}}, seeds=(1,)))
    assert outcome.replicates[0].error == (
        "prerequisite first failed: DivergedError: The loss is nan at epoch 1, batch 1."
    )
    assert outcome.replicates[1].state == "complete"


def test_a_broken_input_is_tried_again_once_it_may_be_mended(workplace):
    sweep = tiny({"bad": {"bad_input": True}}, seeds=(1,))
    assert run_quietly(sweep).input_errors == ("The file tiny.flac is broken.",)
    run_quietly(sweep)
    assert 2 in starts().values()


def test_equal_prerequisites_run_once_and_others_for_themselves(workplace):
    run_quietly(tiny({f"c{i}": {"x": i / 10} for i in range(10)}, seeds=(1,)))
    assert len(list(Path("runs/prerequisites").glob("*/journal.jsonl"))) == 1
    run_quietly(tiny({"other": {"first.level": 0.75}}, name="tiny.other", seeds=(1,)))
    assert len(list(Path("runs/prerequisites").glob("*/journal.jsonl"))) == 2


def driver(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.integration.sweeps", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PONDERAY_RUNS": str(Path("runs").absolute())}
    return subprocess.Popen(command, env=environment)  # noqa: S603


@pytest.mark.slow
def test_sweeps_started_together_pretrain_once(workplace):
    drivers = [driver(name, "0", "2") for name in ("tiny.one", "tiny.two")]
    assert [process.wait(LIMIT_S) for process in drivers] == [0, 0]
    assert set(starts().values()) == {1}
    assert len(starts()) == 1 + 2 * 4


@pytest.mark.slow
def test_a_second_driver_of_the_same_sweep_is_refused_by_the_name_of_the_first(workplace):
    process = driver("tiny.sweep", "0", "1", str(Path("never").absolute()))
    until(starts)
    with pytest.raises(RefusedError, match=f"already run by process {process.pid} on "):
        run_quietly(tiny({"a": {}}))
    process.kill()
    process.wait()
    assert run_quietly(tiny({"a": {}})).num_failed == 0


@pytest.mark.slow
def test_of_two_drivers_started_in_the_same_second_one_runs_the_sweep_once(workplace):
    """SQLite's is one that neither finds made."""
    Path("runs/mlflow.db").unlink(missing_ok=True)
    go = Path("go").absolute()
    drivers = [driver("tiny.sweep", "0", "0", str(go)) for _ in range(2)]
    until(lambda: any(process.poll() is not None for process in drivers))
    go.touch()
    assert sorted(process.wait(LIMIT_S) for process in drivers) == [0, REFUSED]
    assert set(starts().values()) == {1}
    assert len(starts()) == 5
    assert statuses("tiny.sweep") == dict.fromkeys(["a", "b", *RUNS_OF_A_AND_B], "FINISHED")


def test_results_of_other_code_are_refused_until_accepted(workplace, monkeypatch):
    run_quietly(tiny({"a": {}}))
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "changed")
    with pytest.raises(RefusedError, match="--accept-code"):
        run_quietly(tiny({"a": {}}, seeds=(1, 2, 3)))
    outcome = run_quietly(tiny({"a": {}}, seeds=(1, 2, 3)), accept_code=True)
    assert [r.state for r in outcome.replicates] == ["complete"] * 3
    assert len(starts()) == 4


@pytest.mark.every_store
def test_optuna_hears_the_mean_over_seeds_and_goes_on_where_it_was(workplace):
    import optuna

    run_quietly(searched(num_trials=3))
    outcome = run_quietly(searched(num_trials=5))
    storage = read_settings().search_store
    (name,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=name, storage=storage).trials
    assert len(trials) == 5
    assert len({trial.params["x"] for trial in trials}) == 5
    for trial in trials:
        replicates = [r for r in outcome.replicates if r.condition.startswith(f"{trial.number:04d} ")]
        assert len(replicates) == 2
        assert trial.values == pytest.approx(
            [sum(r.metrics[f"{m}@plain"] for r in replicates) / 2 for m in ("error", "cost")]
        )
    assert set(starts().values()) == {1}


def test_optuna_hears_of_a_failed_condition_as_failed(workplace):
    import optuna

    sweep = searched(num_trials=2)
    run_quietly(sweep.with_values({"nan_at": 2}))
    storage = read_settings().search_store
    (name,) = optuna.get_all_study_names(storage)
    states = [trial.state for trial in optuna.load_study(study_name=name, storage=storage).trials]
    assert states == [optuna.trial.TrialState.FAIL] * 2


def test_a_search_stops_at_an_input_that_may_be_mended_and_then_goes_on(workplace):
    import optuna

    mended = Path("mended").absolute()
    sweep = searched(num_trials=3).with_values({"bad_input": True, "fault_file": str(mended)})
    assert run_quietly(sweep).input_errors
    storage = read_settings().search_store
    (name,) = optuna.get_all_study_names(storage)
    study = optuna.load_study(study_name=name, storage=storage)
    assert [trial.state for trial in study.trials] == [optuna.trial.TrialState.RUNNING]
    mended.touch()
    assert {r.state for r in run_quietly(sweep).replicates} == {"complete"}
    assert [trial.state for trial in study.get_trials()] == [optuna.trial.TrialState.COMPLETE] * 3


def test_another_setting_under_a_known_name_is_refused(workplace):
    run_quietly(tiny({"a": {}}))
    with pytest.raises(RefusedError, match="a seed 1 is recorded with another setting or other data"):
        run_quietly(tiny({"a": {"x": 0.75}}))


def test_an_evaluation_does_not_take_the_place_of_a_file_of_training(workplace, monkeypatch):
    def report(trial, metrics, step, checkpoint=None):
        (workplace / "notes.txt").write_text(str(step))
        trial.report(metrics, step=step, checkpoint=checkpoint, artifacts=[workplace / "notes.txt"])

    def train(config, trial):
        report(trial, {"valid_error@plain": 1.0}, 4, workplace / "notes.txt")

    monkeypatch.setattr(tiny_trainable, "train", train)
    numbers = {"error": 1.0, "valid_error": 1.0, "cost": 1.0}
    monkeypatch.setattr(tiny_trainable, "evaluate", lambda config, path, test, trial: report(trial, numbers, 5))
    (found,) = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates
    assert found.state == "failed" and "`train` and `evaluate` under 'plain' gave a file 'notes.txt'" in found.error


@pytest.mark.parametrize(("second", "state"), [("notes.txt", "failed"), ("second.txt", "complete")])
def test_of_two_evaluations_neither_loses_its_files_to_the_other(workplace, monkeypatch, second, state):
    def evaluate(config, path, evaluation, trial):
        file = workplace / (second if evaluation.name == "second" else "notes.txt")
        file.write_text(evaluation.name)
        trial.report({"error": 1.0, "valid_error": 1.0, "cost": 1.0}, step=1, artifacts=[file])

    monkeypatch.setattr(tiny_trainable, "evaluate", evaluate)
    tests = (TinyEvaluation(), TinyEvaluation(name="second"))
    (found,) = run_quietly(tiny({"a": {"evaluations": tests}}, seeds=(1,))).replicates
    said = "`evaluate` under 'plain' and `evaluate` under 'second' gave a file 'notes.txt', of which one would be lost"
    assert found.state == state and (said in found.error) == (state == "failed")
    (kept,) = Path("runs").rglob(f"{found.key}/artifacts/notes.txt")
    assert kept.read_text() == "plain"


def test_another_trainable_under_a_known_name_is_refused_by_its_name(workplace, monkeypatch):
    """As of a file that was renamed: the settings and the data are the same."""
    run_quietly(tiny({"a": {}}))
    shutil.copy(tiny_trainable.__file__, workplace / "small.py")
    monkeypatch.syspath_prepend(workplace)
    said = r"recorded under another trainable or prerequisite \(the trainable is small now\)"
    with pytest.raises(RefusedError, match=said):
        run_quietly(tiny({"a": {}}, trainable="small"))


def test_a_failure_of_other_code_is_tried_again_once_accepted(workplace, monkeypatch):
    sweep = tiny({"a": {"raise_at": 2}}, seeds=(1,))
    assert run_quietly(sweep).num_failed == 1
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "mended")
    monkeypatch.setattr("tests.integration.tiny._strike", lambda config, epoch: None)
    assert run_quietly(sweep, accept_code=True).num_failed == 0
    assert statuses("tiny.sweep")["a seed 1"] == "FINISHED"


def test_a_prerequisite_that_nothing_needs_any_more_is_not_made_again(workplace):
    run_quietly(tiny({"a": {}}))
    shutil.rmtree("runs/prerequisites")
    run_quietly(tiny({"a": {}}))
    assert not list(Path("runs").rglob("prerequisites/*/journal.jsonl"))


def test_the_name_of_a_sweeps_condition_says_what_was_overridden():
    sweep = tiny({"a": {}}).with_values({"num_epochs": 2, "sleep_s": 0.5})
    assert sweep.conditions[0].name == "a,num_epochs=2"
    assert content_hash(sweep.config(sweep.conditions[0], 1)) != content_hash(tiny({"a": {}}).base)
