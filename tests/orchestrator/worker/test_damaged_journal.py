"""A damaged journal: what is whole before the damage is kept, and training comes to the same digits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.orchestrator.worker.cut_off import cut_off, go_on, reported, undisturbed

STEP = b'"step": 5'


def in_the_middle(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Changes the line of the last step."""

    def damage(journal: Path) -> None:
        lines = journal.read_bytes().splitlines()
        (number,) = (i for i, line in enumerate(lines) if b'"metrics"' in line and STEP in line)
        lines[number] = change(lines[number])
        journal.write_bytes(b"\n".join(lines) + b"\n")

    return damage


def folder_in_its_place(journal: Path) -> None:
    journal.unlink()
    (journal / "inner").mkdir(parents=True)


def loop(journal: Path) -> None:
    journal.unlink()
    journal.symlink_to(journal.name)


def cut(journal: Path) -> None:
    content = journal.read_bytes()
    journal.write_bytes(content[: content.rfind(b"\n", 0, content.index(STEP)) + 1])


DAMAGES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "random bytes": (in_the_middle(lambda line: bytes(range(128, 256))), "is no JSON", "after step 4"),
    "cut in the middle": (in_the_middle(lambda line: line[:20]), "is no JSON", "after step 4"),
    "no object": (in_the_middle(lambda line: b"[1, 2]"), "is no record with a `kind`", "after step 4"),
    "no step": (
        in_the_middle(lambda line: line.replace(b"step", b"stop")),
        "does not match its checksum",
        "after step 4",
    ),
    "text for a metric": (
        in_the_middle(lambda line: b'{"kind": "metrics", "time_ms": 1, "step": 5, "metrics": {"a": "b"}}'),
        "has a metric that is no number",
        "after step 4",
    ),
    "zeros": (in_the_middle(lambda line: bytes(4096)), "is no JSON", "after step 4"),
    "deep": (in_the_middle(lambda line: b"[" * 100_000), "is no JSON", "after step 4"),
    "all garbage": (lambda journal: journal.write_bytes(bytes(range(1, 256)) * 9), "is no JSON", "from the start"),
    "a folder": (folder_in_its_place, "Is a directory", "from the start"),
    "a loop": (loop, "Too many levels of symbolic links", "from the start"),
    "no bytes": (lambda journal: journal.write_bytes(b""), "lacks step 4, though its checkpoint", "from the start"),
    "gone": (Path.unlink, "lacks step 4, though its checkpoint is there", "from the start"),
    "lines cut off": (cut, "lacks step 5, though its checkpoint is there", "after step 4"),
}


@pytest.mark.parametrize(("damage", "fault", "whence"), DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_it_is_set_aside_and_training_goes_on_from_what_is_whole(work, damage, fault, whence):
    cut_off(work, after=5)
    journal = work.folder / "journal.jsonl"
    damage(journal)
    is_there = journal.is_file()
    content = journal.read_bytes() if is_there else b""
    (said,) = [record["said"] for record in go_on(work) if record["kind"] == "set_aside"]
    assert fault in said and str(journal) in said and said.endswith(f"; training goes on {whence}.")
    aside = work.folder / "journal.damaged-1.jsonl"
    assert ("It is set aside as journal.damaged-1.jsonl" in said) == (aside.is_symlink() or aside.exists())
    assert not aside.is_file() or aside.is_symlink() or aside.read_bytes() == content
    assert reported(work) == undisturbed(work)
    assert [json.loads(line)["kind"] for line in journal.open()][-1] == "state"


def test_a_second_damage_takes_no_name_of_the_first(work):
    journal = work.folder / "journal.jsonl"
    contents = []
    for step in (2, 3):
        cut_off(work, after=step)
        contents.append(journal.read_bytes() + b"damage\n")
        journal.write_bytes(contents[-1])
    assert go_on(work)[-1]["state"] == "complete"
    assert [(work.folder / f"journal.damaged-{n}.jsonl").read_bytes() for n in (1, 2)] == contents
    assert reported(work) == undisturbed(work)
