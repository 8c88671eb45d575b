"""A journal that loses lines under its writer: the session fails, removes nothing, and the next comes to the same."""

from pathlib import Path

import pytest

from orchestrator.worker.execute import execute
from tests.orchestrator.worker.cut_off import go_on, reported, undisturbed


def replaced(journal: Path, content: bytes) -> None:
    other = journal.with_name("other")
    other.write_bytes(content)
    other.replace(journal)


def without_last_line(content: bytes) -> bytes:
    return content[: content.rfind(b"\n", 0, -1) + 1]


def folder_in_its_place(journal: Path) -> None:
    journal.unlink()
    journal.mkdir()


def truncated(journal: Path) -> None:
    journal.write_bytes(without_last_line(journal.read_bytes()))


def flipped(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes().replace(b'"step": 1', b'"step": 3'))


LOSSES = {
    "gone": (Path.unlink, "it is gone"),
    "no bytes": (lambda journal: journal.write_bytes(b""), "it has 0 bytes of "),
    "truncated": (truncated, " bytes of "),
    "an earlier copy": (lambda journal: replaced(journal, without_last_line(journal.read_bytes())), " bytes of "),
    "a longer one": (lambda journal: replaced(journal, b'{"kind": "x", "time_ms": 1}\n' * 99), "its lines are others"),
    "a bit": (flipped, "does not match its checksum"),
    "a folder": (folder_in_its_place, "Is a directory"),
}


@pytest.mark.parametrize(("lose", "fault"), LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("kind", ["metrics", "evaluation"])
def test_the_session_fails_and_removes_nothing_and_the_next_comes_to_the_same(work, lose, fault, kind):
    journal, records, checkpoints = work.folder / "journal.jsonl", [], []

    def send(record):
        records.append(record)
        if record["kind"] == kind and record["step"] >= 4 and not checkpoints:
            checkpoints.extend(sorted(work.folder.glob("step_*")))
            lose(journal)

    execute(work, send)
    final = records[-1]
    assert (final["kind"], final["state"], final["is_lost"]) == ("state", "failed", True)
    assert fault in final["error"] and str(journal) in final["error"]
    assert checkpoints and set(checkpoints) <= set(work.folder.glob("step_*"))
    if journal.is_dir():
        journal.rmdir()
    assert go_on(work)[-1]["state"] == "complete"
    assert reported(work) == undisturbed(work)


def test_an_equal_copy_in_its_place_does_no_harm(work):
    journal, records = work.folder / "journal.jsonl", []

    def send(record):
        records.append(record)
        if record["kind"] == "metrics":
            replaced(journal, journal.read_bytes())

    execute(work, send)
    assert records[-1]["state"] == "complete" and reported(work) == undisturbed(work)
