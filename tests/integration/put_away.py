"""What `archive`, `rm`, `restore` and `rename` promise, wherever journals and records are kept."""

import shutil

import pytest

from orchestrator.audit.record import record_audit, recorded_audit
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.journal.first_name import name_in_keys
from orchestrator.results.audit import Audited, Finding
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
    found = Audited("a", "", Finding("later inputs"))
    record_audit(name, (found,), settings)
    gone, number = remove(name, settings, lambda _: True)
    assert number == len(whole) and recorded_audit(name, settings) == ()
    with pytest.raises(InputError, match="has not run here yet"):
        load_study(name, settings)
    assert restore(file, settings) == (name, number, number) and answers() == whole
    assert restore(gone, settings) == (name, 0, number)
    assert [one.state for one in run_quietly(sweep).replicates] == ["complete"] * number and answers() == whole
    record_audit(name, (found,), settings)
    rename(name, "tiny.renamed", settings)
    assert answers("tiny.renamed") == whole
    assert recorded_audit("tiny.renamed", settings) == (found,) and recorded_audit(name, settings) == ()
    gone, number = remove("tiny.renamed", settings, lambda _: True)
    assert name_in_keys(settings, "tiny.renamed") == "tiny.renamed"
    assert restore(gone, settings) == ("tiny.renamed", number, number) and answers("tiny.renamed") == whole
    assert name_in_keys(settings, "tiny.renamed") == name
    with pytest.raises(InputError, match="has not run here yet"):
        load_study(name, settings)
    (begun := settings.replicates(name) / "0123").mkdir(parents=True, exist_ok=True)
    (begun / "journal.jsonl").touch()
    with pytest.raises(RefusedError, match="is a study already"):
        rename("tiny.renamed", name, settings)
    shutil.rmtree(begun)
