"""What commands load: the heavy libraries only where they are needed."""

import subprocess
import sys

import pytest

from tests.orchestrator.recorded import Store, replicate

HEAVY = {"torch", "ray", "mlflow", "optuna", "numpy", "pandas", "scipy", "sqlalchemy"}
CODE = """
import atexit, sys
sys.argv = ["ponderay", *sys.argv[1:]]
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from orchestrator.cli.main import main
main()
"""


@pytest.mark.parametrize("arguments", [["--help"], ["sweeps"], ["show", "asr.demo"], ["status", "asr.demo"]])
def test_what_only_reads_loads_no_heavy_library(workplace, arguments):
    Store(workplace / "runs" / "mlflow.db", "asr.demo").write([replicate("random", 1)], revision=1)
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=workplace)  # noqa: S603
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert not HEAVY & loaded
