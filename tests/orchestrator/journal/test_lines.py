"""What of a journal is damage, and what is not."""

import errno
import json
import os
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import mend, parse
from trainables.errors import DataWarning, InputError


def one_step(folder: ReplicateFolder, step: int) -> None:
    source = Path("source")
    source.write_text(f"state {step}")
    folder.append({"kind": "metrics", "step": step, "metrics": {"loss": 1.0}, "kept": True})
    folder.keep(source, step)


def of_another_user(monkeypatch, journal: Path, number: int = errno.EACCES) -> None:
    """As one of mode 0600 is to others, where root could read it; or one that the system refuses for another reason."""

    def refuse(opener):
        def opened(path, *arguments, **named):
            if path == journal:
                raise OSError(number, os.strerror(number))
            return opener(path, *arguments, **named)

        return opened

    for name in ("read_bytes", "open"):
        monkeypatch.setattr(Path, name, refuse(getattr(Path, name)))


def test_a_journal_of_another_user_is_refused_and_stays(workplace, monkeypatch):
    folder = ReplicateFolder(Path("replicate").absolute(), {})
    one_step(folder, 1)
    before, journal = sorted(folder.path.iterdir()), folder.path / "journal.jsonl"
    with monkeypatch.context() as patch:
        of_another_user(patch, journal)
        with pytest.raises(InputError, match=f"^The journal {journal} cannot be read by this user"):
            folder.begin("second")
        with pytest.warns(DataWarning, match=f"^The journal {journal} cannot be read.*Let this user read and write it"):
            assert ReplicateFolder(folder.path, {}).records() == []
    assert sorted(folder.path.iterdir()) == before
    assert folder.last_step() == 1


def test_a_disk_that_does_not_answer_now_loses_nothing(workplace, monkeypatch):
    """A stale handle of NFS: `run` sets nothing aside, so nothing says that it does."""
    folder = ReplicateFolder(Path("replicate").absolute(), {})
    one_step(folder, 1)
    with monkeypatch.context() as patch:
        of_another_user(patch, folder.path / "journal.jsonl", errno.ESTALE)
        with pytest.warns(DataWarning, match="cannot be read .*Nothing of it is lost by that: try again when"):
            assert ReplicateFolder(folder.path, {}).records() == []
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):  # its writer decides nothing by that
            folder.records()
    assert folder.last_step() == 1


def test_whole_checkpoints_of_steps_that_the_journal_lost_are_set_aside(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    for step in (1, 2):
        one_step(folder, step)
    (folder.path / "journal.jsonl").write_bytes(b"garbage\n")
    names = [path.name for path in folder.checkpoints().values()]
    folder.checkpoints()[1].write_bytes(b"of no such digest")
    folder.begin("second")
    folder.remove_behind(folder.newest())
    assert folder.checkpoints() == {}
    (aside,) = folder.path.glob("unreadable.*")
    assert (aside.name, aside.read_text()) == (f"unreadable.{names[1]}", "state 2")


WRITTEN = {
    "a step that was a float": {"kind": "metrics", "step": 6.0, "metrics": {}},
    "an evaluation's": {"kind": "evaluation", "step": 6.0, "metrics": {"loss@plain": 1.0}},
    "no finite metric": {"kind": "metrics", "step": 6, "metrics": {"a": float("nan"), "b": float("-inf")}},
    "a kind of another version": {"kind": "something", "step": "text"},
    "fields of another version": {"kind": "something", "step": 1, "error": {}, "size_bytes": "large"},
    "a large step": {"kind": "metrics", "step": 10**12, "metrics": {}},
}


@pytest.mark.parametrize("record", WRITTEN.values(), ids=WRITTEN.keys())
def test_what_a_session_writes_is_no_damage(workplace, record):
    folder = ReplicateFolder(Path("replicate"), {})
    folder.append(record)
    assert folder.begin("second") == ""
    (found,) = folder.records()
    assert json.dumps(found["step"]) == json.dumps(record["step"]).removesuffix(".0")


@pytest.mark.parametrize("step", [6.5, float("nan"), float("inf"), True, "6", None])
def test_a_step_that_is_no_number_of_steps_is_damage(step):
    line = json.dumps({"kind": "metrics", "step": step, "metrics": {}, "time_ms": 1}).encode()
    assert parse(line + b"\n").fault == "has no right `step`"


def test_a_folder_in_the_place_of_a_journal_is_set_aside(workplace):
    Path("replicate/journal.jsonl").mkdir(parents=True)
    assert "It is set aside as journal.damaged-1.jsonl" in mend(Path("replicate/journal.jsonl"))


@pytest.mark.parametrize(
    "record", [{"kind": "set_aside", "said": "x"}, {"kind": "something"}, {"kind": "something", "time_ms": "now"}]
)
def test_a_record_of_any_kind_has_its_time(record):
    assert parse(json.dumps(record).encode() + b"\n").fault == "has no right `time_ms`"
