"""The tables of a new store are those that MLflow itself makes."""

import contextlib
import sqlite3

from mlflow import MlflowClient

from orchestrator.environment.settings import Settings
from orchestrator.tracking import empty_store
from orchestrator.tracking.client import Tracking
from tests.orchestrator.recorded import empty_store as made_by_mlflow


def parts(script):
    """Every column, constraint, index and row, in no order: MLflow makes some of them in that of a set."""
    lines = [line for line in script if not line.startswith(('INSERT INTO "experiments"', "--"))]
    return sorted(sorted(part.strip(" \n\t)") for part in line.split(", \n")) for line in lines)


def content(file):
    """What a store holds, but for the default experiment's place and times."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        return parts(database.iterdump())


def test_it_is_what_mlflow_leaves_in_a_new_store(tmp_path):
    (tmp_path / "theirs.db").write_bytes(made_by_mlflow())
    Tracking(Settings(tmp_path, f"sqlite:///{tmp_path / 'ours.db'}"))
    assert content(tmp_path / "ours.db") == content(tmp_path / "theirs.db")
    (default,) = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'ours.db'}").search_experiments()
    assert (default.experiment_id, default.name) == ("0", "Default")


def test_the_file_was_written_with_the_mlflow_that_is_installed():
    written, made = empty_store.TABLES.read_text(encoding="utf-8"), empty_store.dumped()
    assert written.partition("\n")[0] == made.partition("\n")[0], "run `python -m orchestrator.tracking.empty_store`"


def test_with_another_mlflow_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(empty_store, "installed_version", lambda: "3.99.0")
    empty_store.make_store(tmp_path / "store.db")
    assert not (tmp_path / "store.db").exists()


def test_what_a_store_holds_stays(tmp_path):
    client = MlflowClient(
        tracking_uri=Tracking(Settings(tmp_path, f"sqlite:///{tmp_path / 's.db'}"))._client.tracking_uri
    )
    client.create_experiment("mine")
    before = content(tmp_path / "s.db")
    empty_store.make_store(tmp_path / "s.db")
    assert content(tmp_path / "s.db") == before
    (tmp_path / "other.db").write_text("no database")
    empty_store.make_store(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_text() == "no database"
