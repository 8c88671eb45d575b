"""The page about models of one's own does what it says: its files and its commands, in its order, in a fresh folder."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/own-model.md").read_text()
PART = re.compile(r"`(\w+\.py)`[^`\n]*:[^\n]*\n\n```python\n(.*?)^```|^ponderay ([^\n]+)", re.DOTALL | re.MULTILINE)
SOURCES = [found[2] for found in PART.finditer(PAGE) if found[1]]


def test_every_block_of_python_is_one_of_its_files():
    assert re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) == SOURCES
    assert len([line for line in SOURCES[0].splitlines() if line]) <= 20


def test_the_block_for_another_library_parses():
    (block,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert [node.name for node in ast.parse(block).body] == ["ReportToTrial", "train"]
    assert len([line for line in block.splitlines() if line]) <= 16


@pytest.mark.slow
def test_the_page_does_what_it_says(workplace):
    printed = {}
    for file, source, words in (found.groups() for found in PART.finditer(PAGE)):
        if file:
            Path(file).write_text(source)
            continue
        arguments = shlex.split(words, comments=True)
        command, environment = (
            [sys.executable, "-m", "orchestrator", *arguments],
            os.environ | {"PYTHONPATH": str(ROOT)},
        )
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        printed[" ".join(arguments[:2])] = done.stdout
    assert list(printed) == [
        *(f"{command} toy.py:toy" for command in ("check", "run", "pareto", "compare", "report")),
        "train tested.py:tested",
        "train fit.py:degrees",
    ]
    assert "toy: 15 complete, 0 failed" in printed["run toy.py:toy"]
    assert "width=16" in printed["pareto toy.py:toy"]
    assert list(Path("runs/reports/toy").glob("*.html"))
    assert "accuracy@test" in printed["train tested.py:tested"]
    assert "error" in printed["train fit.py:degrees"]
