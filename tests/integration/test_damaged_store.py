"""Damaged databases: one sentence says what to do, and what it says brings everything back."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.repair import repair
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.tracking.damage import fault
from orchestrator.tracking.load import load_study
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts
from trainables.errors import InputError

ROOT = Path(__file__).parents[2]
CONDITIONS = {"a": {}, "b": {"nan_at": 2}}


def swept() -> dict[tuple[str, int], tuple[str, dict[str, float], str]]:
    """What the store says of the sweep."""
    found = load_study("tiny.sweep", read_settings()).replicates
    return {(r.condition, r.seed): (r.state, dict(r.metrics), r.error) for r in found}


def write(start: int, content: bytes) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        with file.open("r+b") as opened:
            opened.seek(start)
            opened.write(content)

    return damage


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "garbage": (lambda file: file.write_bytes(os.urandom(file.stat().st_size)), "file is not a database"),
    "no header": (write(0, bytes(100)), "file is not a database"),
    "truncated": (lambda file: os.truncate(file, file.stat().st_size // 2), "malformed"),
    "a folder": (folder, "it is a folder"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES.keys())
def test_every_command_names_the_file_and_the_remedy_and_changes_nothing(workplace, damage, reason):
    file = Path("runs/mlflow.db").absolute()
    if reason == "malformed":
        run_quietly(tiny({"a": {}}, seeds=(1,)))  # else there is nothing in its second half
    damage(file)
    content = file.is_file() and file.read_bytes()
    said = (
        rf"^The tracking store {file} is damaged \(.*{reason}.*\)\. The journals keep every result: `ponderay repair` "
    )
    if reason == "malformed":  # a study that has run answers from its study file, whatever became of MLflow's
        assert [one.state for one in load_study("tiny.sweep", read_settings()).replicates] == ["complete"]
    else:
        with pytest.raises(InputError, match=said):
            load_study("tiny.sweep", read_settings())
    with pytest.raises(InputError, match=said):
        run_quietly(tiny({"a": {}}))
    assert (file.is_file() and file.read_bytes()) == content


@pytest.mark.slow  # it makes all tables, as the command that is advised does
def test_what_repair_says_brings_the_study_back_without_training(workplace, capsys):
    run_quietly(tiny(CONDITIONS))
    before, database = swept(), Path("runs/mlflow.db")
    damaged = os.urandom(5000)
    database.write_bytes(damaged)
    Path("runs/mlflow.db-journal").write_bytes(b"of the old one")
    with pytest.raises(RefusedError, match="run `ponderay repair` in a terminal, or with --yes"):
        repair()
    assert database.read_bytes() == damaged
    repair(yes=True)
    shown = capsys.readouterr().out
    assert f"The tracking store {database.absolute()} is damaged: file is not a database.\n" in shown
    assert shown.endswith("  ponderay run tiny.sweep\n")
    assert Path("runs/mlflow.db.damaged-1").read_bytes() == damaged
    assert Path("runs/mlflow.db.damaged-1-journal").read_bytes() == b"of the old one"
    again = f"from tests.integration.sweeps import run_quietly, tiny; run_quietly(tiny({CONDITIONS}))"
    subprocess.run([sys.executable, "-c", again], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # noqa: S603
    assert swept() == before
    assert set(starts().values()) == {1}
    repair()
    assert f"The tracking store {database.absolute()} is whole.\n" in capsys.readouterr().out


def test_a_damaged_page_is_found_wherever_it_is(workplace):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    database = Path("runs/mlflow.db")
    whole = database.read_bytes()
    for page in range(1, len(whole) // 4096, 9):
        database.write_bytes(whole[: 4096 * page] + bytes(range(256)) * 16 + whole[4096 * (page + 1) :])
        assert fault(database)
        assert load_study("tiny.sweep", read_settings()).replicates[0].state == "complete"  # by its study file


def test_a_lost_search_draws_the_same_first_conditions_and_trains_them_not_again(workplace, capsys):
    before = run_quietly(searched(3, seeds=(1,)))
    database = Path("runs/optuna.db")
    for damage in (folder, lambda file: (file.rmdir(), file.write_bytes(b"garbage" * 1000))):
        damage(database)
        with pytest.raises(InputError, match=r"^Optuna's database .*optuna\.db is damaged \(.*`ponderay repair` moves"):
            run_quietly(searched(3, seeds=(1,)))
    repair(yes=True)
    shown = capsys.readouterr().out
    assert "The search draws again" in shown and "ponderay run tiny.search" in shown
    assert "written into MLflow by hand" not in shown, "the tracking store was not touched"
    after = run_quietly(searched(3, seeds=(1,)))
    assert [(r.condition, dict(r.metrics)) for r in after.replicates] == [
        (r.condition, dict(r.metrics)) for r in before.replicates
    ]
    assert set(starts().values()) == {1}


def test_of_a_server_it_says_that_its_backup_restores_it(workplace, monkeypatch, capsys):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://user:secret@host:5000")
    shutil.rmtree("runs", ignore_errors=True)
    repair()
    shown = capsys.readouterr().out
    assert "is on a server, where its backup restores it" in shown and "secret" not in shown
    assert not Path("runs").exists()
