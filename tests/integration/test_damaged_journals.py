"""Journals that are damaged: their replicate goes on from what is whole, all others stay, and nothing goes unsaid."""

import signal
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.environment.settings import read_settings
from orchestrator.forecast.remaining_work import look
from orchestrator.results.outcome import Outcome
from orchestrator.run import run_here
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import starts
from trainables.errors import DataWarning

pytestmark = pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
CONDITIONS = {"a": {}, "b": {"x": 0.25}}
STEP = b'"step": 3'


def stop_in_the_last_step(monkeypatch, conditions=CONDITIONS) -> None:
    """Runs the sweep until its first replicate is about to take its last step."""
    with monkeypatch.context() as patch:

        def stop(config, epoch):
            if epoch == 4:
                signal.raise_signal(signal.SIGINT)

        patch.setattr("tests.integration.tiny._strike", stop)
        with pytest.raises(KeyboardInterrupt):
            run_quietly(tiny(conditions))


@pytest.fixture
def cut_off(workplace, monkeypatch) -> tuple[Outcome, Path]:
    """A sweep whose first replicate was stopped at its last step, what it would have come to, and its journal."""
    whole = run_quietly(tiny(CONDITIONS, name="tiny.whole"))
    stop_in_the_last_step(monkeypatch)
    (journal,) = Path("runs/replicates/tiny.sweep").rglob("journal.jsonl")
    return whole, journal


def damage(journal: Path) -> None:
    """Changes the line of the third step."""
    lines = journal.read_bytes().splitlines()
    (number,) = (i for i, line in enumerate(lines) if b'"metrics"' in line and STEP in line)
    lines[number] = bytes(range(128, 256))
    journal.write_bytes(b"\n".join(lines) + b"\n")


def test_its_replicate_comes_to_the_same_digits_and_no_other_is_touched(cut_off):
    whole, journal = cut_off
    run_quietly(tiny(CONDITIONS, seeds=(2,)))
    damage(journal)
    screen = StringIO()
    outcome = run_here(tiny(CONDITIONS), read_settings(), Console(file=screen, width=1000), accept_code=False)
    assert [dict(r.metrics) for r in outcome.replicates] == [dict(r.metrics) for r in whole.replicates]
    assert f"a seed 1: The journal {journal.absolute()} is damaged: its line " in screen.getvalue()
    assert "It is set aside as journal.damaged-1.jsonl" in screen.getvalue()
    assert "training goes on after step 2." in screen.getvalue()
    counts = starts(Path("runs/replicates/tiny.sweep"))
    assert counts.pop(journal.parent.name) == 2 and set(counts.values()) == {1}
    assert not run_quietly(tiny(CONDITIONS)).num_failed


def test_who_only_reads_says_it_and_changes_nothing(cut_off):
    _, journal = cut_off
    damage(journal)
    before = {
        path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file() and "cache" not in str(path)
    }
    with pytest.warns(
        DataWarning, match=r"replicates/tiny\.sweep/\w+/journal\.jsonl is damaged: its line \d+ is no JSON"
    ):
        snapshot = look(tiny(CONDITIONS), read_settings(), 2, 0, accept_code=False)
    assert [one.state for one in snapshot.replicates].count("partly done") == 1
    assert {path: path.read_bytes() for path in before} == before


def test_what_is_complete_stays_so(workplace):
    before = run_quietly(tiny(CONDITIONS))
    for journal in Path("runs/replicates").rglob("journal.jsonl"):
        journal.write_bytes(b"garbage\n")
    after = run_quietly(tiny(CONDITIONS))
    assert [(r.state, dict(r.metrics)) for r in after.replicates] == [
        (r.state, dict(r.metrics)) for r in before.replicates
    ]
    assert not list(Path("runs").rglob("journal.damaged-*"))
