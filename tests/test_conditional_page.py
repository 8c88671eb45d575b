"""The page about conditional computation does what it says: its file, its commands, and its table of blocks."""

import pkgutil
import re
from pathlib import Path

import pytest

from tests.door import ROOT, of_a_page
from tests.trainables.conditional.test_examples import PARTS
from trainables import conditional

PAGE = (ROOT / "docs/conditional.md").read_text()
(SOURCE,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^ponderay ([^\n]+)", PAGE, re.MULTILINE)


def test_two_tables_name_every_block_with_an_example_and_their_parts():
    blocks, parts = (
        re.findall(r"^\| `trainables\.conditional\.(\w+)` \|", table, re.MULTILINE)
        for table in PAGE.partition("\n## The blocks\n")[2].split("\n## Parts of the blocks\n")
    )
    assert set(parts) == PARTS and len(parts) == len(PARTS)
    assert sorted(blocks + parts) == sorted(one.name for one in pkgutil.iter_modules(conditional.__path__))


def test_the_file_reports_the_cost_that_paper_says(tmp_path, monkeypatch):
    """A convolution over 8 letters, 32 x 32 where small and 2 x 32 x 512 where big, and the output."""
    (tmp_path / "routed.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    import routed

    class Trial:
        def report(self, metrics, step):
            self.metrics = metrics

    trial = Trial()
    routed.train(routed.Setting(), trial)
    rate, letters = trial.metrics["rate"], len(set(Path(routed.argparse.__file__).read_text()))
    paper = 8 * 32 * 32 + (1 - rate) * 32 * 32 + rate * 2 * 32 * 512 + 32 * letters
    assert trial.metrics["macs"] == pytest.approx(paper, rel=1e-6)
    assert 0.2 < rate < 0.4
    assert trial.metrics["bits"] < 2.5  # a letter of pairs costs more than 3


@pytest.mark.slow
@pytest.mark.long  # the page about own models gives the same commands to Ray
@pytest.mark.usefixtures("ray_instance")
def test_the_page_does_what_it_says(workplace):
    Path("routed.py").write_text(SOURCE)
    printed = dict(of_a_page(line) for line in COMMANDS)
    assert list(printed) == [f"{command} routed.py:routed" for command in ("run", "pareto", "compare")]
    assert "routed: 8 complete, 0 failed" in printed["run routed.py:routed"]
    assert "always_big" in printed["pareto routed.py:routed"]
    assert "surprisal" in printed["compare routed.py:routed"]
