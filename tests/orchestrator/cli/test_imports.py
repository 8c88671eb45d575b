"""What a command loads: those that only read start no engine and load none, so that they answer at once."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from search_spaces.find import find_sweep
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings
from tests.orchestrator.recorded import Store, replicate

ENGINES = {"torch", "ray", "mlflow", "optuna"}
ALL = """
import json, sys
from orchestrator.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["ponderay", *arguments]
    try:
        main()
    except SystemExit as error:
        print("code", arguments, error.code or 0)
print("loaded", *{name.partition(".")[0] for name in sys.modules})
"""
CODE = """
import atexit, sys
atexit.register(lambda: print("loaded", *{name.partition(".")[0] for name in sys.modules}))
from orchestrator.cli.main import main
main()
"""

NOTHING = """
import ponderay


class Setting(ponderay.Config):
    seed: int = 1
    width: int = 1


def train(config, trial):
    trial.report({"loss": 1.0 / config.width}, step=1)


nothing = ponderay.Sweep(
    name="nothing", description="Nothing.", trainable=__name__, base=Setting(), seeds=(1,),
    conditions=ponderay.grid({"width": [1, 2]}), objectives=(ponderay.Objective("loss"),),
)
"""


def loaded_by(*arguments: str, code: int = 0) -> set[str]:
    """The packages that `ponderay ARGUMENTS` has loaded when it ends, with the exit code `code`."""
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def loaded_by_all(*commands: Sequence[str], code: int = 0) -> set[str]:
    """The packages that commands have loaded when one process has called them all, each with this exit code."""
    command = [sys.executable, "-c", ALL, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    lines = done.stdout.splitlines()
    ended = [line for line in lines if line.startswith("code ")]
    assert ended == [f"code {list(arguments)} {code}" for arguments in commands], done.stderr
    return set(lines[-1].split()[1:])


def test_help_loads_no_library_of_numbers_either():
    assert loaded_by("--help").isdisjoint(ENGINES | {"numpy", "pandas", "scipy", "pydantic"})


def test_what_would_run_is_said_and_planned_without_an_engine(workplace):
    said = (["sweeps"], ["sources"], ["show", "asr.demo"])
    planned = ("asr.demo", "asr.demo.smoke", "act.tau_parity_laptop", "lm.laptop.smoke", "lm.equal_cost.smoke")
    assert loaded_by_all(*said, *(["plan", sweep] for sweep in planned)).isdisjoint(ENGINES | {"matplotlib", "pandas"})


@pytest.mark.slow
def test_a_study_in_a_local_store_is_read_without_an_engine_and_reported_with_mlflow_alone_which_stores_it(workplace):
    (workplace / "runs").mkdir()
    drive(tiny({"a": {}, "b": {"x": 0.75}}), new_settings(workplace / "runs"))
    status = [("status", "tiny.sweep", "--format", output) for output in ("table", "json")]
    assert loaded_by_all(*status).isdisjoint(ENGINES)
    assert loaded_by("report", "tiny.sweep") & ENGINES == {"mlflow"}


def test_a_finished_study_is_run_again_without_an_engine_or_numbers(workplace):
    (workplace / "runs").mkdir()
    (workplace / "nothing.py").write_text(NOTHING)
    drive(find_sweep("nothing.py:nothing"), new_settings(workplace / "runs"))
    assert loaded_by("run", "nothing.py:nothing").isdisjoint(ENGINES | {"numpy", "pandas"})


def test_what_is_refused_is_refused_without_an_engine(workplace):
    commands = (
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
    )
    assert loaded_by_all(*commands, code=2).isdisjoint(ENGINES)


def test_a_sweep_of_which_the_store_knows_nothing_is_answered_without_an_engine(workplace):
    Store(workplace / "runs" / "mlflow.db").write([replicate("surprisal", 1)], revision=1)
    (workplace / "runs" / "replicates" / "another").mkdir(parents=True)
    (workplace / "runs" / "replicates" / "another" / "study.jsonl").touch()
    commands = (("status", "lm.laptop"), ("report", "lm.laptop"), ("pareto", "lm.laptop"), ("compare", "lm.laptop"))
    assert loaded_by_all(*commands, code=2).isdisjoint(ENGINES)


def test_runs_that_cannot_be_kept_are_refused_without_an_engine(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "nonsense://somewhere")
    commands = (("run", "asr.demo"), ("train", "asr.demo", "--condition", "surprisal"), ("plan", "asr.demo"))
    assert loaded_by_all(*commands, code=3).isdisjoint(ENGINES)


def test_a_machine_without_a_card_is_examined_without_an_engine(workplace, monkeypatch):
    if any(Path("/dev").glob("nvidia*")):
        pytest.skip("torch is asked about the card of this machine")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("HOME", str(workplace))
    assert loaded_by("doctor", "asr.demo").isdisjoint({"torch", "mlflow", "optuna"})


def test_a_store_that_answers_is_examined_without_mlflow(workplace, monkeypatch):
    Store(workplace / "runs" / "mlflow.db").write([replicate("surprisal", 1)], revision=1)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("HOME", str(workplace))
    assert not loaded_by("doctor") & {"torch", "mlflow", "optuna", "sqlalchemy"}
