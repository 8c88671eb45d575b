"""What `archive`, `rm`, `restore` and `rename` promise, wherever journals and records are kept."""

import shutil

import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.put_away import archive, remove, rename, restore
from orchestrator.tracking.load import load_study
from search_spaces.sweep import Sweep
from tests.integration.sweeps import run_quietly
from trainables.errors import InputError


def put_away_and_bring_back(sweep: Sweep) -> None:
    """A complete sweep of conditions a and b: each thing that is put away comes back equal; it ends as tiny.renamed."""
    name, settings = sweep.name, read_settings()

    def answers(called: str = name) -> list[tuple[str, int, str, dict[str, float]]]:
        found = load_study(called, settings).replicates
        return sorted((one.condition, one.seed, one.state, dict(one.metrics)) for one in found)

    whole, file = answers(), archive(name, settings)
    one, number = remove(name, settings, lambda replicate: replicate.condition == "a")
    assert number == 2 and answers() == [row for row in whole if row[0] == "b"]
    assert restore(one, settings) == (name, 2, 2) and answers() == whole
    gone, number = remove(name, settings, lambda _: True)
    assert number == len(whole)
    with pytest.raises(InputError, match="has not run here yet"):
        load_study(name, settings)
    assert restore(file, settings) == (name, number, number) and answers() == whole
    assert restore(gone, settings) == (name, 0, number)
    assert [one.state for one in run_quietly(sweep).replicates] == ["complete"] * number and answers() == whole
    rename(name, "tiny.renamed", settings)
    assert answers("tiny.renamed") == whole
    with pytest.raises(InputError, match="has not run here yet"):
        load_study(name, settings)
    (begun := settings.replicates(name) / "0123").mkdir(parents=True, exist_ok=True)
    (begun / "journal.jsonl").touch()
    with pytest.raises(RefusedError, match="is a study already"):
        rename("tiny.renamed", name, settings)
    shutil.rmtree(begun)
