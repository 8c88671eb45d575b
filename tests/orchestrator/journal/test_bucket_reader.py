"""What is seen of a journal that another session may put in place of the one before."""

import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.folder import ReplicateFolder, looked_at

URL = "memory://bucket/replicates/sweep/key"


@pytest.fixture
def folder() -> Iterator[ReplicateFolder]:
    """As drivers see it; empty at first."""
    store = fsspec.filesystem("memory").store
    store.clear()
    yield ReplicateFolder(Path("not used"), {}, URL)
    store.clear()


def put(*notes: str) -> None:
    """Puts a journal in place of the one before."""
    lines = "".join(json.dumps({"kind": "note", "note": note, "time_ms": 1}) + "\n" for note in notes)
    SharedFolder(URL).write("journal.jsonl", lines.encode())


@pytest.mark.parametrize("has_looked", [False, True])
def test_where_another_journal_lies_there_by_now_all_of_it_is_read(folder, has_looked):
    """As when the last request of a session comes after another one had begun."""

    def notes_after(offset: int) -> tuple[list[str], int]:
        if has_looked:
            folder.look()
        records, end = folder.records_after(offset)
        return [record["note"] for record in records], end

    put("first", "second")
    notes, end = notes_after(0)
    assert (notes, notes_after(end)) == (["first", "second"], ([], end))
    put("first")
    notes, shorter = notes_after(end)
    assert notes == ["first"] and 0 < shorter < end
    put("another of other length", "and one more")
    assert notes_after(end)[0] == ["another of other length", "and one more"]
    put("another of other length", "and one more", "new")
    assert notes_after(notes_after(end)[1])[0] == []


def test_folders_of_several_places_are_looked_at_together(folder):
    urls = [URL, *(f"memory://bucket/replicates/other/{key}" for key in ("a", "b"))]
    for url in urls:
        SharedFolder(url).write(
            "journal.jsonl", json.dumps({"kind": "note", "note": url, "time_ms": 1}).encode() + b"\n"
        )
    seen = list(looked_at([ReplicateFolder(Path("not used"), {}, url) for url in urls]))
    assert [one.records()[0]["note"] for one in seen] == urls
