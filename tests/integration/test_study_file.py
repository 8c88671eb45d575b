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
from orchestrator.run import run_here
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.stop_request import StoppedError
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_study
from search_spaces.distributions import Choice
from search_spaces.sweep import Search
from tests.integration.sweeps import run_quietly, tiny
from tests.waiting import until

CONDITIONS = {"b": {"x": 0.25}, "a": {}}
FILE = Path("runs/replicates/tiny.sweep") / STUDY_FILE


def test_what_is_deleted_in_mlflow_changes_no_answer(workplace):
    run_quietly(tiny(CONDITIONS))
    study = load_study("tiny.sweep")
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    of_a = client.search_runs([experiment], "tags.`ponderay.condition` = 'a'")
    for run in of_a:
        client.delete_run(run.info.run_id)
    assert load_study("tiny.sweep") == study
    assert len(of_a) == 3 and study.conditions == ("b", "a")
    for run in of_a:
        client.restore_run(run.info.run_id)


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


def test_a_driver_that_was_killed_leaves_a_file_with_all_that_was_done(workplace):
    def states() -> list[str]:
        content = read_study_file(FILE.parent)
        return [one["state"] for one in content.replicates.values()] if content else []

    command = [sys.executable, "-m", "tests.integration.sweeps", "tiny.sweep", "0.3", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    driver = subprocess.Popen(command, env=environment)  # noqa: S603
    until(lambda: "complete" in states())
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert "complete" in states()
    run_quietly(tiny({"a": {"sleep_s": 0.3, "first.sleep_s": 0.0}, "b": {"x": 0.25}}))
    found = load_study("tiny.sweep")
    assert {one.state for one in found.replicates} == {"complete"}


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
        patch.setattr(Recorder, "close", lambda self, *_: self._queue.close() or self._file.close() or 0)
        with pytest.raises(KeyboardInterrupt):
            run_quietly(tiny({"a": {}}, seeds=(1,)))
    if is_lost:
        FILE.unlink()
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert [one.state for one in load_study("tiny.sweep").replicates] == ["complete"]
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
    monkeypatch.setattr("orchestrator.scheduler.task_factory.code_version", lambda *_: "another")
    with pytest.raises(RefusedError, match="was trained by version"):
        run_quietly(tiny(CONDITIONS))
    monkeypatch.setattr("orchestrator.tracking.load._asked", lambda *_: pytest.fail("MLflow was asked"))
    assert len(load_study("tiny.sweep").replicates) == 4


def test_what_mlflow_lacks_is_written_by_the_next_run_though_the_file_has_all(workplace):
    run_quietly(tiny(CONDITIONS))
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    (run,) = client.search_runs([experiment], "attributes.run_name = 'a seed 1'")
    client.delete_run(run.info.run_id)
    factory = TaskFactory(tiny(CONDITIONS), read_settings(), 0)
    assert finished_replicates(factory, accept_code=False) == ()
    client.restore_run(run.info.run_id)
    assert len(finished_replicates(factory, accept_code=False)) == 4


def test_a_file_of_another_store_says_nothing_of_this_one(workplace, monkeypatch):
    run_quietly(tiny(CONDITIONS))
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{Path('other.db').absolute()}")
    run_quietly(tiny({"c": {"x": 0.75}}))
    assert load_study("tiny.sweep").conditions == ("c",)
