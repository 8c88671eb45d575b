"""The public names: all there, documented, and cheap to import."""

import inspect
import os
import subprocess
import sys
import textwrap

import pytest

import ponderay as public
from tests.door import ROOT, write

HEAVY = ("torch", "ray", "mlflow", "optuna", "pandas", "scipy")


def test_importing_them_loads_nothing_heavy():
    code = f"import sys, ponderay; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


def test_every_name_is_there_and_says_what_it_is():
    for name in (*public.__all__, *public.NOTEBOOK, "Study"):
        value = getattr(public, name)
        assert name == "NOT_IN_KEY" or inspect.getdoc(value), name


@pytest.mark.slow
def test_the_packages_example_runs_as_a_program(tmp_path):
    lines = (public.__doc__ or "").splitlines()
    indented = [line for line in lines if not line or line.startswith("    ")]
    source = textwrap.dedent("\n".join(indented)).strip().replace("[4, 8, 16]", "[4, 8]")
    program = f'{source}\nif __name__ == "__main__":\n    print(len(ponderay.run(toy, cpus=1).replicates))\n'
    write(tmp_path, program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PONDERAY_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, "toy.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0 and done.stdout.endswith("\n10\n"), done
    again = program.replace("ponderay.run(toy, ", 'ponderay.run(replace(toy, name="other"), ')
    write(tmp_path, again.replace("import dataclasses", "import dataclasses\nfrom dataclasses import replace"))
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert "so `train` must stand in a file, and this sweep at its top; " in done.stderr
