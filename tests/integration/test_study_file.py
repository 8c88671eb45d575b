"""Commands answer from the study file in the runs folder, as long as its driver was the sweep's last one."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from rich.console import Console

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.journal.study_file import STUDY_FILE, StudyFile, read_study_file
from orchestrator.results.study import Origin
from orchestrator.run import run_here
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.stop_request import StoppedError
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_study
from ponderay import notebook
from search_spaces.distributions import Choice
from search_spaces.sweep import Search
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.tiny import TinyEvaluation

CONDITIONS = {"b": {"x": 0.25}, "a": {}}
FILE = Path("runs/replicates/tiny.sweep") / STUDY_FILE


def test_what_is_deleted_in_mlflow_changes_no_answer(workplace):
    run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    assert study.unmirrored == ()
    deleted = delete_in_mlflow("a")
    assert load_study("tiny.sweep") == study
    assert len(deleted) == 3 and study.conditions == ("b", "a")
    for run_id in deleted:
        MlflowClient(tracking_uri=read_settings().tracking_uri).restore_run(run_id)


def delete_in_mlflow(condition: str) -> list[str]:
    """Deletes every run of a condition, and returns their ids."""
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    runs = client.search_runs([experiment], f"tags.`ponderay.condition` = '{condition}'")
    for run in runs:
        client.delete_run(run.info.run_id)
    return [run.info.run_id for run in runs]


def test_without_the_file_mlflow_answers_and_the_next_driver_writes_it_again(workplace):
    run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    FILE.unlink()
    assert load_study("tiny.sweep").replicates == study.replicates
    run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}))
    assert FILE.exists()
    assert load_study("tiny.sweep").conditions == ("b", "a", "c")
    assert load_study("tiny.sweep").of("a") == study.of("a")


def test_a_file_that_another_runs_folder_has_left_behind_is_not_asked(workplace, monkeypatch):
    run_quietly(tiny(CONDITIONS, seeds=(1,)))
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{Path('runs/mlflow.db').absolute()}")
    shutil.copytree("runs/replicates", "other/replicates")
    monkeypatch.setenv("PONDERAY_RUNS", "other")
    run_quietly(tiny(CONDITIONS, seeds=(1, 2)))
    monkeypatch.setenv("PONDERAY_RUNS", "runs")
    assert len(read_study_file(FILE.parent).replicates) == 2
    assert len(load_study("tiny.sweep").replicates) == 4


def test_a_driver_that_ends_before_it_notes_anything_leaves_what_the_file_had(workplace, monkeypatch):
    """As where it is stopped while Ray starts: MLflow lacks a condition, and so does the next sweep."""
    run_quietly(tiny(CONDITIONS, seeds=(1,)))
    delete_in_mlflow("a")
    study = load_study("tiny.sweep")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("orchestrator.scheduler.conditions.source_of", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}, seeds=(1,)))
    assert load_study("tiny.sweep") == study
    run_quietly(tiny({"c": {"x": 0.75}}, seeds=(1,)))
    assert load_study("tiny.sweep").of("a") == study.of("a")
    run_quietly(tiny(CONDITIONS, seeds=(1,)))  # brings MLflow up to date


def test_a_copy_in_the_files_place_is_not_believed(workplace, monkeypatch, capsys):
    """A program that synchronises folders replaces the file by itself, and its driver cannot write it any more."""

    def replace_by_copy(*_):
        if not (copy := FILE.absolute().with_suffix(".copy")).exists():
            shutil.copy(FILE.absolute(), copy)
            os.link(copy, copy.with_suffix(".link"))
            copy.with_suffix(".link").replace(FILE.absolute())

    end = Recorder.end
    monkeypatch.setattr(Recorder, "end", lambda self, *given: (replace_by_copy(), end(self, *given))[1])
    run_quietly(tiny(CONDITIONS))
    assert not FILE.exists()
    assert [one.state for one in load_study("tiny.sweep").replicates] == ["complete"] * 4


def test_a_driver_whose_file_another_one_takes_over_stops(workplace, monkeypatch):
    taken = []

    def take_over(*_):
        if not taken:
            taken.append(StudyFile(FILE.parent.absolute(), ""))

    end = Recorder.end
    monkeypatch.setattr(Recorder, "end", lambda self, *given: (take_over(), end(self, *given))[1])
    with pytest.raises(StoppedError, match="was taken over by another driver"):
        run_quietly(tiny(CONDITIONS))
    assert read_study_file(FILE.parent).generation == 2


def test_loading_a_study_imports_neither_mlflow_nor_ray(workplace):
    run_quietly(tiny(CONDITIONS))
    code = (
        "import sys; from orchestrator.tracking.load import load_study; study = load_study('tiny.sweep'); "
        "assert len(study.replicates) == 4; print(*{'mlflow', 'ray', 'torch', 'pandas', 'scipy'} & set(sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == []


def test_a_journal_says_what_it_is_of(workplace):
    run_quietly(tiny(CONDITIONS, seeds=(2,)).with_values({"x": 0.75}))
    for replicate in load_study("tiny.sweep").replicates:
        (line,) = (one for one in (FILE.parent / replicate.key / "journal.jsonl").open() if '"kind": "started"' in one)
        found = json.loads(line)
        assert (found["sweep"], found["condition"], found["seed"]) == ("tiny.sweep", replicate.condition, 2)
        assert found["settings"] == ({"x": "0.75"} if replicate.condition == "a,x=0.75" else {})
        assert (found["fingerprint"], found["resources"]["num_workers"]) == (replicate.data_fingerprint, 0)


def rows(study) -> list[str]:
    return sorted(map(repr, study.replicates))


def mirrored():
    return Tracking(read_settings()).read_study("tiny.sweep")


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_only_a_journal_holds_is_noted_over_what_mlflow_has(workplace, monkeypatch, is_lost):
    """A driver was killed before MLflow had the end; `is_lost`: and its study file is gone."""
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "end", lambda self, *_: os.kill(os.getpid(), signal.SIGTERM))
        patch.setattr(Recorder, "close", lambda self, *_: self._queue.close() or self._study.close() or 0)
        with pytest.raises(KeyboardInterrupt):
            run_quietly(tiny({"a": {}}, seeds=(1,)))
    if is_lost:
        FILE.unlink()
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert [one.state for one in load_study("tiny.sweep").replicates] == ["complete"]
    assert rows(load_study("tiny.sweep")) == rows(mirrored())


def test_what_mlflow_did_not_get_is_known_from_the_file_alone(workplace, monkeypatch):
    """Its driver gave up waiting for it; a file of an earlier version says nothing of it."""
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "_write_states", lambda *_: None)
        run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    assert study.unmirrored == tuple((one.condition, one.seed) for one in study.replicates)
    assert study.of_conditions(["a"]).unmirrored == (("a", 1), ("a", 2))
    lines = FILE.read_bytes().splitlines(keepends=True)
    FILE.write_bytes(b"".join(line for line in lines if b'"kind": "mirror"' not in line))
    assert load_study("tiny.sweep") == study and load_study("tiny.sweep").unmirrored == ()
    run_quietly(tiny(CONDITIONS))
    assert load_study("tiny.sweep").unmirrored == ()
    assert rows(load_study("tiny.sweep")) == rows(mirrored())


def test_conditions_of_a_search_that_drew_the_same_are_all_there(workplace):
    search = Search({"x": Choice((0.25, 0.75))}, num_trials=4)
    run_quietly(tiny((), search=search, seeds=(1,)))
    assert len(load_study("tiny.sweep").replicates) == 4
    assert rows(load_study("tiny.sweep")) == rows(mirrored())


def test_a_driver_goes_on_without_a_file_that_cannot_be_written(workplace, monkeypatch):
    put = StudyFile.put

    def full(self, kind, name, said, time_ms=0):
        if name == "b seed 1":
            monkeypatch.setattr("orchestrator.journal.study_file.os.write", lambda *_: 0)
        put(self, kind, name, said, time_ms)

    monkeypatch.setattr(StudyFile, "put", full)
    log = io.StringIO()
    outcome = run_here(tiny(CONDITIONS, seeds=(1,)), read_settings(), Console(file=log, width=300))
    assert {one.state for one in outcome.replicates} == {"complete"}
    assert "study.jsonl cannot be written: No space left on device. Commands read MLflow until" in log.getvalue()
    assert rows(load_study("tiny.sweep")) == rows(mirrored())


def test_a_sweep_that_is_refused_leaves_the_file_in_use(workplace, monkeypatch):
    run_quietly(tiny(CONDITIONS))
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "another")
    with pytest.raises(RefusedError, match="was trained by version"):
        run_quietly(tiny(CONDITIONS))
    monkeypatch.setattr("orchestrator.tracking.load._asked", lambda *_: pytest.fail("MLflow was asked"))
    assert len(load_study("tiny.sweep").replicates) == 4


@pytest.mark.parametrize("name", ["a seed 1", "a"], ids=["replicate", "condition"])
def test_what_mlflow_lacks_is_said_and_written_by_the_next_run_though_the_file_has_all(workplace, monkeypatch, name):
    run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    (run,) = client.search_runs([experiment], f"attributes.run_name = '{name}'")
    client.delete_run(run.info.run_id)
    num_lacking = 1 if name == "a seed 1" else 2
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Scheduler, "extend", lambda _: os.kill(os.getpid(), signal.SIGINT))
        run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}))
    assert load_study("tiny.sweep").unmirrored == (("a", 1), ("a", 2))[:num_lacking]
    log = io.StringIO()
    run_here(tiny(CONDITIONS | {"c": {"x": 0.75}}), read_settings(), Console(file=log, width=300))
    assert load_study("tiny.sweep").unmirrored == ()
    assert f"MLflow lacks {num_lacking} of 4 replicates; they are written again from what is here." in log.getvalue()
    again = client.get_run(run.info.run_id)
    assert (again.info.lifecycle_stage, again.info.status) == ("active", "FINISHED")
    assert again.data.metrics.keys() == run.data.metrics.keys()
    assert again.data.tags["ponderay.state"] == "complete"
    assert load_study("tiny.sweep").of("a") == study.of("a")


def test_a_sweep_of_which_mlflow_lacks_a_run_is_not_finished(workplace):
    run_quietly(tiny(CONDITIONS))
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    (run,) = client.search_runs([experiment], "attributes.run_name = 'a seed 1'")
    client.delete_run(run.info.run_id)
    factory = TaskFactory(tiny(CONDITIONS), read_settings(), 0)
    assert finished_replicates(factory, accept_code=False) == ()
    run_quietly(tiny(CONDITIONS))
    assert len(finished_replicates(factory, accept_code=False)) == 4


def test_what_is_known_comes_from_the_file_and_is_not_trained_again_where_mlflow_lost_it(workplace):
    """The journals are gone too: nothing is done twice, and MLflow has again what the file says."""
    run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    (run,) = client.search_runs([experiment], "attributes.run_name = 'a'")
    client.delete_run(run.info.run_id)
    for one in study.of("a"):
        shutil.rmtree(FILE.parent / one.key)
    run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}))
    assert load_study("tiny.sweep").of("a") == study.of("a")
    assert not any((FILE.parent / one.key).exists() for one in study.of("a"))


def test_the_file_says_with_which_configs_packages_and_commands_replicates_were_begun(workplace, monkeypatch):
    run_quietly(tiny(CONDITIONS))
    monkeypatch.setattr("orchestrator.tracking.load._asked", lambda *_: pytest.fail("MLflow was asked"))
    study = load_study("tiny.sweep")
    assert study.configs["b"]["x"] == "0.25" and set(study.configs) == {"a", "b"}
    (origin,) = set(study.origins.values())
    assert "torch==" in origin.packages and origin.commit and origin.command
    assert set(study.origins) == {one.key for one in study.replicates}


def test_a_run_that_was_deleted_in_mlflow_still_says_what_its_replicate_was_begun_with(workplace, monkeypatch):
    """Of one that MLflow lost for good nothing is said; by no means that the present command has begun it."""
    run_quietly(tiny(CONDITIONS, seeds=(1,)))
    origins = load_study("tiny.sweep").origins
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    runs = {name: client.search_runs([experiment], f"attributes.run_name = '{name} seed 1'")[0] for name in "ab"}
    for run in runs.values():
        client.delete_run(run.info.run_id)
    client._tracking_client.store._hard_delete_run(runs["b"].info.run_id)
    FILE.unlink()
    monkeypatch.setattr("orchestrator.tracking.checkout.command", lambda: "another command")
    more = {"evaluations": (TinyEvaluation(), TinyEvaluation(name="good", factor=2.0))}
    run_quietly(tiny({name: values | more for name, values in CONDITIONS.items()}, seeds=(1,)))
    study = load_study("tiny.sweep")
    found = {name: study.origins[study.of(name)[0].key] for name in "ab"}
    assert found == {"a": next(iter(origins.values())), "b": Origin("", "", "")}


def test_a_file_of_another_store_says_nothing_of_this_one(workplace, monkeypatch):
    run_quietly(tiny(CONDITIONS))
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{Path('other.db').absolute()}")
    run_quietly(tiny({"c": {"x": 0.75}}))
    assert load_study("tiny.sweep").conditions == ("c",)


def test_without_file_and_journals_the_front_is_what_mlflows_runs_say(workplace):
    """The front is found again, by comparing every pair, from the means that MLflow's public client gives."""
    conditions = {f"x={x}": {"x": x} for x in (0.1, 0.25, 0.5, 0.75, 0.9)}
    run_quietly(tiny(conditions, seeds=(1, 2, 3)))
    before = notebook.pareto(load_study("tiny.sweep"), tiny(conditions).objectives)
    shutil.rmtree(FILE.parent)
    after = notebook.pareto(load_study("tiny.sweep"), tiny(conditions).objectives)
    assert after.points == before.points
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    runs = client.search_runs([experiment], "tags.`ponderay.kind` = 'condition'")
    names = ("error/plain", "cost/plain")
    means = {run.data.tags["ponderay.condition"]: tuple(run.data.metrics[one] for one in names) for run in runs}
    front = {one for one, of in means.items() if not any(dominates(other, of) for other in means.values())}
    assert {point.condition for point in after.points if point.is_front} == front
    found = {point.condition: tuple(one.mean for one in point.summaries) for point in after.points}
    assert found == {name: pytest.approx(of) for name, of in means.items()}


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(one <= other for one, other in zip(a, b, strict=True))
