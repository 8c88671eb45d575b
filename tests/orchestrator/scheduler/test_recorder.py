"""What a driver leaves in MLflow for people: summaries, curves, descriptions with links, the machine's load."""

import itertools
import math
import os
import re
import shutil
import threading
from functools import partial
from statistics import fmean, stdev

import pytest
from mlflow import MlflowClient

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.recorder import Recorder
from orchestrator.tracking import names, write_queue
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.curves import load_mean_curves
from orchestrator.tracking.load import load_study
from tests.conftest import check_mirror
from tests.faults.course import in_child
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import DESCRIPTION, drive, driven, new_settings

ENDED = 9
TWO = tiny({"a": {}, "b": {"x": 0.75}}, seeds=(1, 2))
WRITES = ("create_run", "log_param", "log_batch", "log_metric", "set_terminated")


def journals(study, name: str, condition: str) -> list[list[dict]]:
    """Of the condition's replicates by seed."""
    folder = study.settings.runs / "replicates" / name
    keys = [one.key for one in study.outcome.replicates if one.condition == condition]
    return [ReplicateFolder(folder / key, {}).records() for key in keys]


def test_a_condition_has_the_bounds_of_its_mean():
    study = driven()
    values = [one.metrics["error@plain"] for one in study.outcome.replicates if one.condition == "good"]
    metrics = study.run("good").data.metrics
    half = 4.302653 * stdev(values) / math.sqrt(3)
    assert metrics["error/plain.low"] == pytest.approx(fmean(values) - half, rel=1e-6)
    assert metrics["error/plain.high"] == pytest.approx(fmean(values) + half, rel=1e-6)


def test_a_condition_has_the_mean_of_its_replicates_by_step():
    study = driven()
    loaded = load_study("tiny.driven", study.settings)
    curves = {curve.metric: curve for curve in load_mean_curves(loaded, ["good", "bad"], study.settings)}
    assert set(curves) == {"total", "valid_error@plain"}
    rows = [
        {record["step"]: record["metrics"]["total"] for record in journal if record["kind"] == "metrics"}
        for journal in journals(study, "tiny.driven", "good")
    ]
    total = curves["total"]
    assert (total.condition, total.n, total.steps) == ("good", 3, (1, 2, 3, 4))
    assert total.means == pytest.approx([fmean(row[step] for row in rows) for step in total.steps])
    assert total.stds == pytest.approx([stdev(row[step] for row in rows) for step in total.steps])


def test_a_replicate_that_ends_before_its_first_write_is_recorded_with_its_run(tmp_path, monkeypatch):
    """The last state is there for the writer before the job that is to write it; an earlier job may take it along."""

    def written_early(self, task, condition, replicate):
        self._study.note_state(condition, replicate, self._origin(task), self.known)
        with self._lock:
            self._unwritten.setdefault(condition.name, {})[replicate.seed] = replicate
        if replicate.state == "complete":
            assert self._queue.drain(30) == 0
        self._queue.put(("condition", condition.name), partial(self._write_states, condition))

    monkeypatch.setattr(Recorder, "_write_state", written_early)
    monkeypatch.setattr(write_queue, "GATHER_S", 60.0)
    study = drive(tiny({"a": {}}, seeds=(1,)), new_settings(tmp_path))
    (replicate,) = Tracking(study.settings).read_study("tiny.sweep").replicates
    assert replicate.state == "complete" and study.client.get_run(replicate.run_id).data.tags


def test_more_seeds_have_a_curve_of_their_own_and_the_same_again_adds_nothing(tmp_path):
    settings = new_settings(tmp_path)
    drive(tiny({"a": {}}), settings)
    for _ in range(2):
        study = drive(tiny({"a": {}}, seeds=(1, 2, 3)), settings)
    run = study.run("a")
    lengths = {
        name: len(study.client.get_metric_history(run.info.run_id, name)) for name in run.data.metrics if " of " in name
    }
    names = [
        f"{kind} of {n}/{metric}"
        for kind in ("mean", "std")
        for n in (2, 3)
        for metric in ("total", "valid_error/plain")
    ]
    assert lengths == dict.fromkeys(names, 4)
    loaded = load_study("tiny.sweep", settings)
    assert {curve.n for curve in load_mean_curves(loaded, ["a"], settings)} == {3}


def test_without_all_journals_there_is_no_curve(tmp_path):
    settings = new_settings(tmp_path)
    study = drive(tiny({"a": {}}), settings)
    shutil.rmtree(settings.runs / "replicates" / "tiny.sweep" / study.outcome.replicates[0].key)
    study = drive(tiny({"a": {}}, seeds=(1, 2, 3)), settings)
    metrics = study.run("a").data.metrics
    assert metrics["error/plain.n"] == 3
    assert {name.partition("/")[0] for name in metrics if " of " in name} == {"mean of 2", "std of 2"}


def test_descriptions_lead_from_experiment_to_condition_to_replicate_and_back():
    study = driven()
    runs = {name: study.run(name).info.run_id for name in ("bad", "bad seed 2")}
    notes = {name: study.run(name).data.tags["mlflow.note.content"] for name in runs}
    page = "](#/experiments/{}/runs/{}?"
    assert page.format(study.experiment_id, runs["bad seed 2"]) in notes["bad"]
    assert page.format(study.experiment_id, runs["bad"]) in notes["bad seed 2"]
    (line,) = (line for line in notes["bad"].splitlines() if line.startswith("- [seed 2]"))
    assert line.endswith(r", failed: DivergedError: The loss is nan at epoch 3, batch 1\.")
    note = study.tags["mlflow.note.content"]
    assert re.sub(r"\\(.)", r"\1", note.splitlines()[0]) == (
        DESCRIPTION.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    assert 'metrics."error/plain" < {most error} AND metrics."cost/plain" < {most cost}' in note


def test_the_load_of_the_machine_is_in_replicates_runs_only_and_changes_no_result(tmp_path, monkeypatch):
    def loads(metrics) -> set[str]:
        return {name for name in metrics if name.startswith("system/")}

    settings = new_settings(tmp_path)
    monkeypatch.setattr("orchestrator.worker.system_metrics.FIRST_S", 3600.0)  # by default it samples after a second
    plain = drive(tiny({"a": {}}, name="tiny.plain"), settings)
    assert not loads(plain.run("a seed 1").data.metrics)
    monkeypatch.setattr("orchestrator.worker.system_metrics.FIRST_S", 0.0)
    monkeypatch.setattr("orchestrator.worker.system_metrics.INTERVAL_S", 0.0)
    study = drive(tiny({"a": {}}, name="tiny.watched"), settings)
    run = study.run("a seed 1")
    assert {"system/cpu_utilization_percentage", "system/disk_usage_percentage"} <= loads(run.data.metrics)
    history = study.client.get_metric_history(run.info.run_id, "system/cpu_utilization_percentage")
    assert [metric.step for metric in history] == [1, 2, 3, 4]
    assert not loads(study.run("a").data.metrics)
    assert [dict(one.metrics) for one in study.outcome.replicates] == [
        dict(one.metrics) for one in plain.outcome.replicates
    ]
    kinds = [record["kind"] for record in journals(study, "tiny.watched", "a")[0]]
    assert kinds == ["started", *["system", "metrics"] * 4, "evaluation", "state"]


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("call", WRITES)
def test_what_a_broken_connection_took_back_is_written_again(tmp_path, monkeypatch, call, is_done):
    """All of a study is there though calls failed, before or after the store did them; each run stands once."""
    failures, plain = [], getattr(MlflowClient, call)

    def failing(self, *arguments, **named):
        is_failing = threading.current_thread().name == "tracking" and len(failures) < 3
        if not is_failing or is_done:
            answer = plain(self, *arguments, **named)
        if is_failing:
            failures.append(1)
            raise ConnectionError("connection refused")
        return answer

    monkeypatch.setattr(MlflowClient, call, failing)
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.02,))
    study = drive(TWO, new_settings(tmp_path))
    assert len(failures) == 3 and study.outcome.num_unwritten == 0
    found = Tracking(study.settings).read_study("tiny.sweep").replicates
    assert [(one.condition, one.seed, one.state) for one in found] == [
        (name, seed, "complete") for name in "ab" for seed in (1, 2)
    ]
    runs = study.client.search_runs([study.experiment_id], "tags.`ponderay.kind` != 'sweep'")
    assert sorted(run.info.run_name for run in runs) == ["a", "a seed 1", "a seed 2", "b", "b seed 1", "b seed 2"]
    assert {run.info.status for run in runs} == {"FINISHED"}
    run = study.run("a seed 1")
    assert len(study.client.get_metric_history(run.info.run_id, "total")) == 4
    assert run.data.params["seed"] == "1" and run.data.tags[names.STATE] == "complete" and run.data.tags[names.HOST]


@pytest.mark.slow
def test_a_driver_that_was_killed_between_two_writes_leaves_no_run_twice(tmp_path):
    """Whatever the next driver finds of it in MLflow: it ends with each run once, and all that a run has."""
    for nth in range(7, 37, 2):
        settings = new_settings(made := tmp_path / str(nth))
        assert in_child(partial(end_behind, nth, settings)) == ENDED
        study = drive(TWO, settings)
        assert [one.state for one in study.outcome.replicates] == ["complete"] * 4, nth
        found = study.client.search_runs([study.experiment_id], "tags.`ponderay.kind` != 'sweep'")
        runs = {run.info.run_name: run for run in found}
        assert sorted(run.info.run_name for run in found) == ["a", "a seed 1", "a seed 2", "b", "b seed 1", "b seed 2"]
        assert {run.info.status for run in found} == {"FINISHED"}, nth
        for name in ("a seed 1", "b seed 2"):
            data = runs[name].data
            assert data.params["seed"] == name[-1] and data.tags[names.STATE] == "complete" and data.tags[names.HOST]
            assert len(study.client.get_metric_history(runs[name].info.run_id, "total")) == 4
        assert runs["a"].data.metrics["error/plain.n"] == 2 and runs["a"].data.params["x"]
        check_mirror(made, made / "replicates" / "tiny.sweep")


def end_behind(nth: int, settings: Settings) -> None:
    """Runs the sweep in a process that ends behind its nth write to MLflow."""
    calls = itertools.count(1)

    def ending(plain):
        def call(self, *arguments, **named):
            answer = plain(self, *arguments, **named)
            if next(calls) == nth:
                os._exit(ENDED)
            return answer

        return call

    for name in WRITES:
        setattr(MlflowClient, name, ending(getattr(MlflowClient, name)))
    drive(TWO, settings)
