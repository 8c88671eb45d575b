"""Checkpoints that are what was written, and that the trainable cannot read: training goes back, and says so."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from orchestrator.journal.file_names import digest_of
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.worker.execute import _train, execute
from orchestrator.worker.failure import is_unreadable
from tests.orchestrator.worker.cut_off import cut_off, go_on, reported, undisturbed
from trainables.errors import InputError


def replace(checkpoint: Path, content: object) -> Path:
    """Puts `content` in a checkpoint, under the digest that it has."""
    if isinstance(content, bytes):
        checkpoint.write_bytes(content)
    else:
        torch.save(content, checkpoint)
    step, _, end = checkpoint.name.split(".")
    return checkpoint.rename(checkpoint.with_name(f"{step}.{digest_of(checkpoint)}.{end}"))


BAD = {
    "no checkpoint": b"garbage of no format",
    "empty": b"",
    "a torn archive": b"PK\x03\x04" + bytes(300),
    "objects": {"total": np.float64(1.0)},
    "no state of a model": {"model": [1, 2], "total": 0.0, "step": 3},
    "other shapes": {"model": {"weight": torch.zeros(3, 1), "bias": torch.zeros(3)}, "total": 0.0, "step": 3},
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_training_goes_back_to_the_one_before_and_says_so_in_other_words_than_torch(work, content):
    cut_off(work, after=4)
    _, newest = ReplicateFolder(work.folder, {}).checkpoints().values()
    bad = replace(newest, content)
    records = go_on(work)
    (said,) = [record["said"] for record in records if record["kind"] == "set_aside"]
    assert f"{bad} cannot be read (" in said
    assert said.endswith(f"It is set aside as unreadable.{bad.name}, and training goes on after step 3.")
    assert (work.folder / f"unreadable.{bad.name}").is_file()
    assert records[-1]["state"] == "complete"
    assert reported(work) == undisturbed(work)
    assert "weights_only" not in json.dumps(ReplicateFolder(work.folder, {}).records())


def test_where_none_can_be_read_training_starts_anew(work):
    cut_off(work, after=4)
    for checkpoint in ReplicateFolder(work.folder, {}).checkpoints().values():
        replace(checkpoint, b"garbage")
    records = go_on(work)
    first, second = [record["said"] for record in records if record["kind"] == "set_aside"]
    assert first.endswith("goes on after step 3.") and second.endswith("starts anew.")
    assert reported(work) == undisturbed(work)


@pytest.mark.parametrize(
    "work",
    [
        "RuntimeError('shapes differ')",
        "ZeroDivisionError()",
        "AssertionError()",
        "OSError(5, 'away')",
        "KeyError('scheduler')",
        "TypeError('none')",
        "AttributeError('scheduler')",
        "ImportError('scheduler')",
    ],
    indirect=True,
)
def test_a_fault_of_its_own_after_a_checkpoint_takes_none_away(work):
    cut_off(work, after=4)
    Path("own_fault").touch()
    kept = ReplicateFolder(work.folder, {}).checkpoints()
    final = go_on(work)[-1]
    assert final["state"] == "failed" and "in train\n" in final["traceback"]
    assert ReplicateFolder(work.folder, {}).checkpoints() == kept


@pytest.mark.parametrize("content", [{"something": 1}, [1, 2]])
def test_a_key_that_training_misses_in_what_was_read_is_its_own_fault(work, content):
    """Else a mistake in going on would cost every checkpoint, and hide behind a new start."""
    cut_off(work, after=4)
    replace(list(ReplicateFolder(work.folder, {}).checkpoints().values())[-1], content)
    kept = ReplicateFolder(work.folder, {}).checkpoints()
    final = go_on(work)[-1]
    assert final["state"] == "failed" and 'state["model"]' in final["traceback"]
    assert ReplicateFolder(work.folder, {}).checkpoints() == kept


def test_what_fails_without_the_checkpoint_too_was_no_fault_of_it(work, monkeypatch):
    cut_off(work, after=4)
    kept = ReplicateFolder(work.folder, {}).checkpoints()

    def unpicklable(*_, **__):
        raise EOFError("the corpus ended")

    monkeypatch.setattr(torch, "rand", unpicklable)
    records = go_on(work)
    assert records[-1]["state"] == "failed" and records[-1]["error"] == "EOFError: the corpus ended"
    assert ReplicateFolder(work.folder, {}).checkpoints() == kept
    monkeypatch.undo()
    execute(work.model_copy(update={"attempt": "third"}), records.append)
    assert reported(work) == undisturbed(work)


@pytest.mark.parametrize("work", ["EOFError('the corpus ended')"], indirect=True)
def test_a_failure_that_was_there_before_the_checkpoint_was_read_is_no_fault_of_it(work):
    cut_off(work, after=4)
    folder = ReplicateFolder(work.folder, {})
    folder.append({"kind": "state", "state": "failed", "attempt": "first", "error": "EOFError: the corpus ended"})
    Path("own_fault").touch()
    kept = folder.checkpoints()
    assert go_on(work)[-1]["state"] == "failed"
    assert folder.checkpoints() == kept


@pytest.mark.parametrize("work", ["RuntimeError('shapes differ')"], indirect=True)
def test_a_fault_beside_the_writer_is_not_hidden_by_what_was_set_aside_before(work):
    """A checkpoint that could not be read was made again with the same bytes, and so under the same name."""
    cut_off(work, after=4)
    Path("own_fault").touch()
    folder, trainable = ReplicateFolder(work.folder, {}), work.loaded()
    newest = folder.newest()
    shutil.copyfile(newest, newest.with_name(f"unreadable.{newest.name}"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        _train(work, trainable, work.typed_config(), folder, lambda _: None, is_writer=False)


def test_an_evaluation_that_cannot_read_its_checkpoint_fails_in_other_words_than_torch(work):
    cut_off(work, after=6)
    newest = list(ReplicateFolder(work.folder, {}).checkpoints().values())[-1]
    bad = replace(newest, {"total": np.float64(1.0)})
    final = go_on(work)[-1]
    assert final["error"] == (
        f"UnreadableError: {bad.name} cannot be read: it holds numpy._core.multiarray.scalar, which is no plain data. "
        "Keep tensors, numbers, texts, lists and dicts in a checkpoint."
    )
    assert "False" not in final["traceback"]


@pytest.mark.parametrize(
    "error", [InputError("x"), OSError(5, "Input/output error"), ZeroDivisionError(), MemoryError()]
)
def test_other_causes_say_nothing_of_a_checkpoint(error):
    assert not is_unreadable(error)
