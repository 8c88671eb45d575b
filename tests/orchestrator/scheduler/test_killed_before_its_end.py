"""Replicates whose worker was killed between an evaluation's record and that of its end, as drivers find them later."""

import json
from dataclasses import replace

import fsspec
import pytest

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.task_factory import TaskFactory
from ponderay import notebook
from tests.integration.sweeps import tiny
from tests.integration.tiny import TinyEvaluation
from tests.orchestrator.driven import drive, new_settings
from trainables import checkpoint
from trainables.errors import InputError

FIRST = TinyEvaluation(name="worst", factor=-1.0)
"""Its lowest value is that of the first step, and the newest checkpoint is the worst under it."""


def sweep_of(*evaluations):
    return tiny({"a": {"evaluations": evaluations or (FIRST,)}}, name="tiny.killed", seeds=(1,))


@pytest.fixture
def settings(workplace, monkeypatch, request):
    """Of a sweep that is complete."""
    fsspec.filesystem("memory").store.clear()
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace))
    monkeypatch.setenv("PONDERAY_STORAGE", getattr(request, "param", ""))
    made = replace(new_settings(workplace), storage=read_settings().storage)
    drive(sweep_of(), made)
    yield made
    fsspec.filesystem("memory").store.clear()


def folder_of_it(settings: Settings) -> ReplicateFolder:
    (path,) = settings.replicates("tiny.killed").glob("*/")
    return ReplicateFolder(path, {}, settings.shared(path))


def kill_before_the_end(settings: Settings) -> list[str]:
    """Leaves the journal without its last line, and returns the kinds of its records."""
    folder = folder_of_it(settings)
    journal = folder.path / "journal.jsonl"
    content = journal.read_bytes()
    kept = content[: content.rfind(b"\n", 0, -1) + 1]
    assert b'"kind": "state"' in content[len(kept) :]
    journal.write_bytes(kept)
    if folder.shared:
        SharedFolder(folder.shared).write("journal.jsonl", kept)
    return kinds(settings)


def kinds(settings: Settings) -> list[str]:
    return [record["kind"] for record in folder_of_it(settings).records()]


def best_epoch() -> int:
    return checkpoint.load(notebook.checkpoint("tiny.killed", "a", 1))["epoch"]


def without_store(settings: Settings) -> Settings:
    """With a store that knows nothing, as where a driver was killed before it wrote anything."""
    other = settings.runs / "other"
    other.mkdir()
    return replace(settings, tracking_uri=new_settings(other).tracking_uri)


@pytest.mark.parametrize("settings", ["", "memory://bucket/killed"], ids=["folder", "bucket"], indirect=True)
@pytest.mark.parametrize("is_recorded", [False, True], ids=["nobody", "a driver of an earlier version"])
def test_only_its_own_record_completes_it_and_nothing_is_trained_or_tested_again(settings, is_recorded, monkeypatch):
    """Drivers of earlier versions wrote into the store that it was complete."""
    before = kill_before_the_end(settings)
    if not is_recorded:
        settings = without_store(settings)
        monkeypatch.setenv("PONDERAY_TRACKING_URI", settings.tracking_uri)
    else:
        assert finished_replicates(TaskFactory(sweep_of(), settings, 0), accept_code=False) == ()
        with pytest.raises(InputError, match="lacks its end, which names the best checkpoint; run the sweep again"):
            notebook.checkpoint("tiny.killed", "a", 1)
    assert drive(sweep_of(), settings).outcome.num_failed == 0
    assert kinds(settings) == [*before, "started", "state"]
    assert best_epoch() == 1
    drive(sweep_of(), settings)
    assert kinds(settings) == [*before, "started", "state"]


def test_one_that_was_killed_behind_an_evaluation_added_later_ends_again(settings):
    both = sweep_of(FIRST, TinyEvaluation(name="later"))
    drive(both, settings)
    before = kill_before_the_end(settings)
    other = without_store(settings)
    drive(both, other)
    assert kinds(settings) == [*before, "started", "state"]
    drive(sweep_of(), other)
    assert kinds(settings) == [*before, "started", "state"]


def test_its_best_checkpoint_stays_the_best_when_an_evaluation_that_is_no_longer_wanted_has_failed(settings):
    """Here two checkpoints are kept, and the newest is the other one."""
    sweep = replace(sweep_of(FIRST, TinyEvaluation()), seeds=(2,))
    (done,) = drive(sweep, settings).outcome.replicates
    folder = ReplicateFolder(settings.replicates("tiny.killed") / done.key, {})
    folder.begin("later.1")
    failed = {"kind": "state", "state": "failed", "attempt": "later.1", "evaluation": "gone.01", "error": "x"}
    folder.append(failed | {"code_version": done.code_version, "is_lost": False})
    before = folder.records()
    assert drive(sweep, settings).outcome.num_failed == 0
    assert folder.records() == before and len(folder.checkpoints()) == 2
    assert checkpoint.load(notebook.checkpoint("tiny.killed", "a", 2))["epoch"] == 1


def test_a_journal_of_an_earlier_version_is_complete_and_stays_as_it_is(settings):
    folder = folder_of_it(settings)
    lines = "".join(json.dumps(record) + "\n" for record in folder.records()).encode()
    (folder.path / "journal.jsonl").write_bytes(lines)
    if folder.shared:
        SharedFolder(folder.shared).write("journal.jsonl", lines)
    drive(sweep_of(), without_store(settings))
    assert (folder.path / "journal.jsonl").read_bytes() == lines and best_epoch() == 1
