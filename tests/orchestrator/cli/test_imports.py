"""What a command loads: those that only read start no engine and load none, so that they answer at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings
from tests.orchestrator.recorded import Store, replicate

ENGINES = {"torch", "ray", "mlflow", "optuna"}
CODE = """
import atexit, sys
atexit.register(lambda: print("loaded", *{name.partition(".")[0] for name in sys.modules}))
from orchestrator.cli.main import main
main()
"""


def loaded_by(*arguments: str, code: int = 0) -> set[str]:
    """The packages that `ponderay ARGUMENTS` has loaded when it ends, with the exit code `code`."""
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_help_loads_no_library_of_numbers_either():
    assert loaded_by("--help").isdisjoint(ENGINES | {"numpy", "pandas", "scipy", "pydantic"})


@pytest.mark.parametrize("command", [["sweeps"], ["sources"], ["show", "asr.demo"]])
def test_what_would_run_is_said_without_an_engine(workplace, command):
    assert loaded_by(*command).isdisjoint(ENGINES)


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_status_of_a_study_in_a_local_store_is_read_without_an_engine(workplace, output):
    (workplace / "runs").mkdir()
    drive(tiny({"a": {}}), new_settings(workplace / "runs"))
    assert loaded_by("status", "tiny.sweep", "--format", output).isdisjoint(ENGINES)


@pytest.mark.parametrize(
    "sweep", ["asr.demo", "asr.demo.smoke", "act.tau_parity_laptop", "lm.laptop.smoke", "lm.equal_cost.smoke"]
)
def test_a_shipped_sweep_is_planned_without_an_engine(workplace, sweep):
    assert loaded_by("plan", sweep).isdisjoint(ENGINES | {"matplotlib", "pandas"})


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "asr.demo"),
        ("report", "asr.demo"),
        ("pareto", "asr.demo"),
        ("compare", "asr.demo"),
        ("verify", "asr.demo"),
        ("analyse", "lm.laptop", "lstm", "theorems"),
        ("plan", "asr.nothing"),
        ("run", "asr.demo", "--set", "training.nothing=1"),
        ("run", "asr.demo", "--retry", "surprisal"),
        ("train", "asr.demo", "--condition", "nobody"),
        ("check", "asr.nothing"),
    ],
)
def test_what_is_refused_is_refused_without_an_engine(workplace, arguments):
    assert loaded_by(*arguments, code=2).isdisjoint(ENGINES)


@pytest.mark.parametrize("command", [("run",), ("train", "--condition", "surprisal"), ("plan",)])
def test_runs_that_cannot_be_kept_are_refused_without_an_engine(workplace, monkeypatch, command):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "nonsense://somewhere")
    assert loaded_by(command[0], "asr.demo", *command[1:], code=3).isdisjoint(ENGINES)


def test_a_machine_without_a_card_is_examined_without_an_engine(workplace, monkeypatch):
    if any(Path("/dev").glob("nvidia*")):
        pytest.skip("torch is asked about the card of this machine")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("HOME", str(workplace))
    assert loaded_by("doctor", "asr.demo").isdisjoint({"torch", "mlflow", "optuna"})


def test_a_report_is_written_and_stored_in_a_local_store_without_an_engine(workplace):
    (workplace / "runs").mkdir()
    drive(tiny({"a": {}, "b": {"x": 0.75}}), new_settings(workplace / "runs"))
    assert not loaded_by("report", "tiny.sweep") & (ENGINES | {"pandas", "sqlalchemy"})


def test_a_store_that_answers_is_examined_without_mlflow(workplace, monkeypatch):
    Store(workplace / "runs" / "mlflow.db").write([replicate("surprisal", 1)], revision=1)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("HOME", str(workplace))
    assert not loaded_by("doctor") & {"torch", "mlflow", "optuna", "sqlalchemy"}
