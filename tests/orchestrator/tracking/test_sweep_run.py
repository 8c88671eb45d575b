"""A report is stored as rows of an SQLite store: MLflow's client reads the same that it would have written."""

import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.environment.settings import Settings
from orchestrator.tracking import client, sweep_run
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.sweep_run import store_report
from tests.orchestrator.driven import new_settings
from trainables.errors import InputError

SWEEP = "lab x+y ü.smoke"


@pytest.fixture
def settings(tmp_path):
    """With a store in which a driver has opened the sweep: its registry is there, its own run is not."""
    (tmp_path / "ü").mkdir()
    found = new_settings(tmp_path / "ü")
    tracking = Tracking(found)
    tracking.open_run(tracking.open_experiment(SWEEP), "condition", "a", "a", {})
    return found


@pytest.fixture
def files(tmp_path):
    for name in ("page.html", "table.csv"):
        (tmp_path / name).write_text(f"{name} ü")
    return [tmp_path / "page.html", tmp_path / "table.csv"]


@pytest.fixture
def without_mlflow(monkeypatch):
    """Nothing is left to MLflow's client."""
    monkeypatch.setattr(Tracking, "store_report", lambda *_: pytest.fail("it was left to MLflow"))


def own_run(settings: Settings):
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    experiment_id = client.get_experiment_by_name(SWEEP).experiment_id
    (run,) = client.search_runs([experiment_id], "tags.`ponderay.kind` = 'sweep'")
    return client, run


def rows_of(settings: Settings, run_id: str) -> dict[str, object]:
    """All that is in the tables of a run, without its times."""
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        database.row_factory = sqlite3.Row
        run = dict(database.execute("SELECT * FROM runs WHERE run_uuid = ?", (run_id,)).fetchone())
        tags = {tuple(row) for row in database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run_id,))}
        entries = {tuple(row) for row in database.execute("SELECT key FROM params WHERE value = ?", (run_id,))}
    assert run["start_time"] <= run.pop("end_time")
    del run["start_time"]
    return {"run": {name: str(value).replace(run_id, "ID") for name, value in run.items()}, "tags": tags, "in": entries}


def test_the_rows_are_those_of_mlflows_client(settings, files, tmp_path, without_mlflow):
    store_report(SWEEP, settings, files)
    client, ours = own_run(settings)
    found = rows_of(settings, ours.info.run_id)
    by_client = Tracking(settings)
    assert by_client.sweep_run(SWEEP) == ours.info.run_id, "it is entered in the registry"
    others = new_settings(tmp_path)
    tracking = Tracking(others)
    tracking._store(SWEEP, "report", files, {}, {})
    theirs = rows_of(others, tracking.sweep_run(SWEEP))
    del found["run"]["artifact_uri"], theirs["run"]["artifact_uri"]
    assert found == theirs | {
        "run": theirs["run"] | {"status": "FINISHED", "experiment_id": found["run"]["experiment_id"]}
    }
    listed = [file.path for file in client.list_artifacts(ours.info.run_id, "report")]
    assert listed == ["report/page.html", "report/table.csv"]
    read = client.download_artifacts(ours.info.run_id, "report/page.html", str(tmp_path))
    assert Path(read).read_text(encoding="utf-8") == "page.html ü"


def test_a_run_that_is_there_is_kept_with_all_it_has(settings, files, without_mlflow):
    Tracking(settings).store_front(SWEEP, files[:1], {"hypervolume": 0.5}, {"ponderay.front_objectives": "e"})
    before = own_run(settings)[1]
    for _ in range(2):
        store_report(SWEEP, settings, files)
    client, run = own_run(settings)
    assert (run.info.run_id, run.info.status, run.info.start_time) == (
        before.info.run_id,
        "FINISHED",
        before.info.start_time,
    )
    assert run.info.end_time > before.info.end_time
    assert (run.data.metrics, run.data.tags) == (before.data.metrics, before.data.tags)
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["figures", "report"]


def test_what_only_mlflow_can_do_is_left_to_it(settings, files, monkeypatch):
    left = []

    class Other:
        def __init__(self, _: Settings) -> None: ...

        def store_report(self, sweep, listed):
            left.append((sweep, listed))

    monkeypatch.setattr(client, "Tracking", Other)
    store_report(SWEEP, settings, files[:1])
    run_id = own_run(settings)[1].info.run_id
    MlflowClient(tracking_uri=settings.tracking_uri).delete_run(run_id)
    store_report(SWEEP, settings, files)  # the run is in the bin, out of which MLflow takes it
    assert left == [(SWEEP, files)]
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'another'")
    store_report(SWEEP, settings, files)  # tables of another version
    store_report(SWEEP, Settings(settings.runs, settings.tracking_uri + "?timeout=5"), files)
    assert left == [(SWEEP, files)] * 3


def test_a_run_that_was_removed_for_good_is_made_again(settings, files, without_mlflow):
    store_report(SWEEP, settings, files)
    gone = own_run(settings)[1].info.run_id
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        for table in ("tags", "runs"):
            database.execute(f"DELETE FROM {table} WHERE run_uuid = ?", (gone,))
    store_report(SWEEP, settings, files)
    made = own_run(settings)[1].info.run_id
    assert made != gone and Tracking(settings).sweep_run(SWEEP) == made


def test_a_store_that_another_process_holds_is_told(settings, files, monkeypatch):
    monkeypatch.setattr(sweep_run, "WAIT_S", 0.01)
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///"), isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="cannot be opened: database is locked"):
            store_report(SWEEP, settings, files)
        database.execute("ROLLBACK")


def test_where_the_files_cannot_be_written_nothing_is_said_to_be_stored(settings, files, without_mlflow):
    (settings.runs / "artifacts").write_text("no folder")
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        before = database.execute("SELECT run_uuid, status FROM runs").fetchall()
        with pytest.raises(InputError, match="must be a place that can be written to"):
            store_report(SWEEP, settings, files)
        assert database.execute("SELECT run_uuid, status FROM runs").fetchall() == before


def test_a_file_that_cannot_be_copied_whole_leaves_the_one_before(settings, files, monkeypatch, without_mlflow):
    store_report(SWEEP, settings, files[:1])
    (stored,) = settings.artifacts.rglob("page.html")
    files[0].write_text("another")

    def fill_the_disk(_, place):
        Path(place).write_text("ano")
        raise OSError("no space left")

    monkeypatch.setattr(sweep_run.shutil, "copy2", fill_the_disk)
    with pytest.raises(InputError, match="no space left"):
        store_report(SWEEP, settings, files[:1])
    assert stored.read_text(encoding="utf-8") == "page.html ü"
    assert list(stored.parent.iterdir()) == [stored], "nothing else is left"


def test_files_that_lie_there_already_are_stored(settings, files, without_mlflow):
    store_report(SWEEP, settings, files[:1])
    stored = list(settings.artifacts.rglob("page.html"))
    store_report(SWEEP, settings, stored)
    assert own_run(settings)[1].info.status == "FINISHED"
    assert stored[0].read_text(encoding="utf-8") == "page.html ü"


def test_what_stopped_the_writing_is_told_where_sqlite_took_it_back_itself(settings, files):
    """As it does on a full disk."""
    with sqlite3.connect(settings.tracking_uri.removeprefix("sqlite:///")) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END"
        )
    with pytest.raises(InputError, match="cannot be opened: the disk is full"):
        store_report(SWEEP, settings, files)
