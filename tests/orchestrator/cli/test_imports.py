"""What a command loads: those that only read start no engine and load none, so that they answer at once."""

import subprocess
import sys

import pytest

from tests.orchestrator.recorded import Store, replicate

ENGINES = {"torch", "ray", "mlflow", "optuna"}
CODE = """
import atexit, sys
atexit.register(lambda: print("loaded", *{name.partition(".")[0] for name in sys.modules}))
from orchestrator.cli.main import main
main()
"""


def loaded_by(*arguments: str) -> set[str]:
    """The packages that `ponderay ARGUMENTS` has loaded when it ends."""
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_help_loads_no_library_of_numbers_either():
    assert loaded_by("--help").isdisjoint(ENGINES | {"numpy", "pandas", "scipy", "pydantic"})


@pytest.mark.parametrize("command", [["sweeps"], ["show", "asr.demo"]])
def test_what_would_run_is_said_without_an_engine(workplace, command):
    assert loaded_by(*command).isdisjoint(ENGINES)


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_status_of_a_study_in_a_local_store_is_read_without_an_engine(workplace, output):
    Store(workplace / "runs" / "mlflow.db").write([replicate("surprisal", seed) for seed in (1, 2)], revision=1)
    assert loaded_by("status", "asr.demo", "--format", output).isdisjoint(ENGINES)
