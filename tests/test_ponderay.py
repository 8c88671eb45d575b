"""The public names: all there, documented, and cheap to import."""

import ast
import inspect
import subprocess
import sys
import textwrap

import pytest

import ponderay as public
from tests.door import ponderay, write

HEAVY = ("torch", "ray", "mlflow", "optuna", "pandas", "scipy")


def test_importing_them_loads_nothing_heavy():
    code = f"import sys, ponderay; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


def test_every_name_is_there_and_says_what_it_is():
    for name in public.__all__:
        value = getattr(public, name)
        assert name == "NOT_IN_KEY" or inspect.getdoc(value), name


@pytest.mark.slow
def test_the_example_of_the_package_runs(tmp_path):
    lines = (public.__doc__ or "").splitlines()
    indented = [line for line in lines if not line or line.startswith("    ")]
    source = textwrap.dedent("\n".join(indented)).strip()
    ast.parse(source)
    done = ponderay(write(tmp_path, source), "train", "toy.py:toy", "--condition", "width=4")
    assert done.returncode == 0 and "toy: 1 complete, 0 failed" in done.stdout, done
