"""The public names: all there, documented, and cheap to import."""

import ast
import inspect
import os
import subprocess
import sys
import textwrap

import pytest

import ponderay as public
from tests.door import PLAIN, ROOT, ponderay, write

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
def test_a_program_that_declares_a_sweep_runs_it(tmp_path):
    source = PLAIN.replace("seeds=(1, 2, 3)", "seeds=(1,)")
    program = f'{source}\nif __name__ == "__main__":\n    print(len(ponderay.run(toy, cpus=1).replicates))\n'
    write(tmp_path, program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PONDERAY_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, "toy.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0 and done.stdout.endswith("\n2\n"), done
    again = program.replace("ponderay.run(toy, ", 'ponderay.run(replace(toy, name="other"), ')
    write(tmp_path, again.replace("import dataclasses", "import dataclasses\nfrom dataclasses import replace"))
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert "so `train` must stand in a file, and this sweep at its top; " in done.stderr


@pytest.mark.slow
def test_the_example_of_the_package_runs(tmp_path):
    lines = (public.__doc__ or "").splitlines()
    indented = [line for line in lines if not line or line.startswith("    ")]
    source = textwrap.dedent("\n".join(indented)).strip()
    ast.parse(source)
    done = ponderay(write(tmp_path, source), "train", "toy.py:toy", "--condition", "width=4")
    assert done.returncode == 0 and "toy: 1 complete, 0 failed" in done.stdout, done
