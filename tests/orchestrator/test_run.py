"""When a driver takes its sweep's lease: at once, while another thread opens the store."""

import json
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator import run
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import read_study_file
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.lease_holder import holder_file
from orchestrator.tracking.load import load_study
from orchestrator.worker.execute import execute
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings
from tests.waiting import LIMIT_S


def settings_of(folder) -> Settings:
    return Settings(folder, f"sqlite:///{folder}/mlflow.db")


def leased(settings: Settings):
    """A driver's block, as `run` enters it."""
    return run._leased(TaskFactory(tiny({"a": {}}), settings, num_gpus=0), Console(quiet=True))


def test_replicates_are_done_before_the_tables_of_a_new_store_are_made(tmp_path, monkeypatch):
    may_go_on, plain, seen = threading.Event(), Tracking, []

    def slow(settings):
        assert may_go_on.wait(LIMIT_S)
        return plain(settings)

    def ended(work, send):
        execute(work, send)
        study = read_study_file(settings.replicates("tiny.sweep")).study("tiny.sweep")
        seen.append([(one.condition, one.state) for one in study.replicates])
        if len(seen) == 3:
            may_go_on.set()

    settings = settings_of(tmp_path)
    monkeypatch.setattr("orchestrator.tracking.client.Tracking", slow)
    monkeypatch.setattr("orchestrator.worker.execute.execute", ended)
    sweep = tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1,))
    outcome = run.run_here(sweep, settings, Console(quiet=True))
    assert [one.state for one in outcome.replicates] == ["complete"] * 2
    assert seen == [[], [("a", "running")], [("a", "complete"), ("b", "running")]]


def test_of_two_drivers_one_is_refused_before_anything_else(tmp_path):
    settings = settings_of(tmp_path)
    with leased(settings), pytest.raises(RefusedError, match="is already run by process"), leased(settings):
        pass
    with leased(settings) as third:
        assert third.lease.is_held()
    assert holder_file(settings, "sweep tiny.sweep").holder().is_gone


def test_a_driver_of_an_earlier_version_which_has_its_lease_in_the_store_is_not_joined(tmp_path, monkeypatch):
    settings = new_settings(tmp_path)
    older = StoreLease(Tracking(settings), "sweep tiny.sweep")
    assert older.acquire()
    with pytest.raises(RefusedError, match="is already run by process"):
        drive(tiny({"a": {}}, seeds=(1,)), settings)
    older.release()
    assert drive(tiny({"a": {}}, seeds=(1,)), settings).outcome.num_failed == 0


def test_what_an_earlier_version_has_noted_under_a_lease_of_the_store_counts(tmp_path):
    settings, sweep = new_settings(tmp_path), tiny({"a": {}}, seeds=(1,))
    drive(sweep, settings)
    study, file = load_study(sweep.name, settings), holder_file(settings, "sweep tiny.sweep").path
    token = json.loads(json.loads(file.read_text())["claims"]["1"])["token"]
    file.unlink()
    older = StoreLease(Tracking(settings), "sweep tiny.sweep")
    older.token = token
    assert older.acquire()
    older.release()
    assert load_study(sweep.name, settings).origins == study.origins  # which only the file has at once
    drive(replace(sweep, seeds=(1, 2)), settings)
    assert load_study(sweep.name, settings).of("a")[0] == study.of("a")[0]
