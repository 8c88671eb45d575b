"""Reports on a sweep's own run: it is the same run each time, and what cannot be stored is told."""

import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.environment.settings import Settings
from orchestrator.tracking.client import Tracking
from tests.orchestrator.driven import new_settings
from trainables.errors import InputError

SWEEP = "lab x+y ü.smoke"


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "ü").mkdir()
    return new_settings(tmp_path / "ü")


@pytest.fixture
def files(tmp_path):
    for name in ("page.html", "table.csv"):
        (tmp_path / name).write_text(f"{name} ü")
    return [tmp_path / "page.html", tmp_path / "table.csv"]


def own_run(settings: Settings):
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    experiment_id = client.get_experiment_by_name(SWEEP).experiment_id
    (run,) = client.search_runs([experiment_id], "tags.`ponderay.kind` = 'sweep'")
    return client, run


def test_what_is_stored_is_read_as_it_was(settings, files, tmp_path):
    Tracking(settings).store_report(SWEEP, files)
    client, run = own_run(settings)
    assert (run.info.run_name, run.info.status, run.data.tags["ponderay.state"]) == (SWEEP, "FINISHED", "complete")
    listed = [file.path for file in client.list_artifacts(run.info.run_id, "report")]
    assert listed == ["report/page.html", "report/table.csv"]
    read = client.download_artifacts(run.info.run_id, "report/page.html", str(tmp_path))
    assert Path(read).read_text(encoding="utf-8") == "page.html ü"


def test_a_run_that_is_there_is_kept_with_all_it_has(settings, files):
    Tracking(settings).store_front(SWEEP, files[:1], {"hypervolume": 0.5}, {"ponderay.front_objectives": "e"})
    before = own_run(settings)[1]
    for _ in range(2):
        Tracking(settings).store_report(SWEEP, files)
    client, run = own_run(settings)
    assert run.info.run_id == before.info.run_id
    assert (run.info.status, run.info.start_time) == ("FINISHED", before.info.start_time)
    assert run.info.end_time > before.info.end_time
    assert (run.data.metrics, run.data.tags) == (before.data.metrics, before.data.tags)
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["figures", "report"]


def test_a_run_that_was_removed_for_good_is_made_again(settings, files):
    Tracking(settings).store_report(SWEEP, files)
    gone = own_run(settings)[1].info.run_id
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        for table in ("tags", "runs"):
            database.execute(f"DELETE FROM {table} WHERE run_uuid = ?", (gone,))
    Tracking(settings).store_report(SWEEP, files)
    made = own_run(settings)[1].info.run_id
    assert made != gone and Tracking(settings).sweep_run(SWEEP) == made


def test_where_the_files_cannot_be_written_that_is_told_and_the_run_has_ended(settings, files):
    (settings.runs / "artifacts").write_text("no folder")
    with pytest.raises(InputError, match="must be a place that can be written to"):
        Tracking(settings).store_report(SWEEP, files)
    assert own_run(settings)[1].info.status == "FINISHED"


def test_files_that_lie_there_already_are_stored(settings, files):
    Tracking(settings).store_report(SWEEP, files[:1])
    stored = list(settings.artifacts.rglob("page.html"))
    Tracking(settings).store_report(SWEEP, stored)
    assert own_run(settings)[1].info.status == "FINISHED"
    assert stored[0].read_text(encoding="utf-8") == "page.html ü"
