"""The page about models of one's own does what it says: its files and its commands, in its order, in a fresh folder."""

import re
from pathlib import Path

import pytest

from tests.door import ROOT, of_a_page
from trainables.errors import InputError

PAGE = (ROOT / "docs/own-model.md").read_text()
PART = re.compile(r"`(\w+\.py)`[^`\n]*:[^\n]*\n\n```python\n(.*?)^```|^ponderay ([^\n]+)", re.DOTALL | re.MULTILINE)
SOURCES = [found[2] for found in PART.finditer(PAGE) if found[1]]


def test_every_block_of_python_is_one_of_its_files():
    assert re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) == SOURCES
    assert len([line for line in SOURCES[0].splitlines() if line]) <= 20


@pytest.mark.slow
@pytest.mark.usefixtures("ray_instance")
def test_the_page_does_what_it_says(workplace):
    printed = {}
    for file, source, words in (found.groups() for found in PART.finditer(PAGE)):
        if file:
            fewer = source.replace("[4, 16]", "[4]")  # each starts a group of workers, of 4 processes
            Path(file).write_text(fewer.replace("num_trials=20", "num_trials=2"))
            continue
        if words.startswith("importance"):  # of fewer trials than it needs
            with pytest.raises(InputError, match="needs 20 complete trials, but there are 2"):
                of_a_page(words)
            continue
        command, said = of_a_page(words)
        printed[command] = said
    assert list(printed) == [
        *(f"{command} toy.py:toy" for command in ("check", "run", "pareto", "compare", "report")),
        "train tested.py:tested",
        "audit audited.py:audited",
        "run drawn.py:drawn",
        "run ddp.py:widths",
        "train fit.py:degrees",
    ]
    assert "toy: 6 complete, 0 failed" in printed["run toy.py:toy"]
    assert "width=16" in printed["pareto toy.py:toy"]
    assert list(Path("runs/reports/toy").glob("*.html"))
    assert "accuracy@test" in printed["train tested.py:tested"]
    assert re.search(r"audited: \d+ ok, 0 finding", printed["audit audited.py:audited"])
    assert "drawn: 4 complete, 0 failed" in printed["run drawn.py:drawn"]
    assert "ddp: 1 complete, 0 failed" in printed["run ddp.py:widths"]
    assert "error" in printed["train fit.py:degrees"]
