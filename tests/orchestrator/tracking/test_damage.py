"""Databases of SQLite that are damaged, that are none, and that are moved while they are in use."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.damage import fault, move_away
from orchestrator.tracking.load import load_study
from trainables.errors import InputError


def loop(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(file.name)
    return file


def test_a_link_to_itself_is_damage_that_every_reader_names_and_can_be_moved_away(workplace):
    file = loop(Path("runs/mlflow.db").absolute())
    assert fault(file) == "it is a link to itself"
    for ask in (lambda: load_study("tiny.sweep"), lambda: Tracking(read_settings())):
        with pytest.raises(InputError, match=rf"^The tracking store {file} is damaged \(it is a link to itself\)"):
            ask()
    new = move_away(file)
    assert new.is_symlink() and not file.is_symlink()
    loop(file)
    assert move_away(file).name == "mlflow.db.damaged-2"


def test_a_store_without_a_file_is_refused_by_its_setting(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "sqlite:///")
    with pytest.raises(InputError, match="PONDERAY_TRACKING_URI must be sqlite:///FILE"):
        load_study("tiny.sweep")


def test_looking_for_damage_changes_nothing(workplace):
    """Not even what a driver that was killed left half written."""
    database = sqlite3.connect("whole.db")
    database.execute("CREATE TABLE x (y)")
    database.execute("PRAGMA cache_size = 1")
    database.executemany("INSERT INTO x VALUES (?)", [("a" * 4000,)] * 20)
    for end in ("", "-journal"):
        shutil.copy(f"whole.db{end}", f"killed.db{end}")
    database.close()
    before = {file.name: file.read_bytes() for file in Path().glob("killed.db*")}
    assert len(before) == 2
    fault(Path("killed.db"))
    assert {file.name: file.read_bytes() for file in Path().glob("killed.db*")} == before


def test_a_write_into_a_store_that_was_moved_is_refused(workplace):
    """Its file goes on to be read, but what is written would be in nobody's store."""
    tracking = Tracking(read_settings())
    tracking.open_experiment("before")
    move_away(Path("runs/mlflow.db"))
    with pytest.raises(Exception, match="readonly database") as raised:
        tracking.open_experiment("after")
    assert not is_unavailable(raised.value)
