"""Links that somebody puts into a replicate's folder: what they lead to stays as it is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open, pack
from orchestrator.machine.durable_files import LinkError
from orchestrator.machine.process_lock import Lease
from orchestrator.worker.execute import execute
from orchestrator.worker.template import traceable
from tests.orchestrator.worker.cut_off import cut_off, go_on, reported, undisturbed


@pytest.fixture
def outside(tmp_path):
    """Files of somebody else's, which this user may write."""
    folder = tmp_path / "outside"
    (folder / "step_000001").mkdir(parents=True)
    for name in ("file", "in_use", "threads.txt", "checkpoint.partial", "figure", "step_000001/weights"):
        (folder / name).write_text(f"not ours: {name}")
    return folder


@pytest.fixture(autouse=True)
def _unchanged(outside):
    before = contents(outside)
    yield
    assert contents(outside) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["checkpoint.partial", "journal.partial", "unpacked.x", "artifacts/.figure.partial"])
@pytest.mark.parametrize("target", ["file", "", "nowhere"])
def test_one_in_place_of_what_is_not_whole_yet_is_written_over(work, outside, name, target):
    cut_off(work, after=2)
    link = work.folder / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside / target)
    with (work.folder / "journal.jsonl").open("ab") as journal:
        journal.write(b"damage\n")
    assert go_on(work)[-1]["state"] == "complete"
    ReplicateFolder(work.folder, {}).keep_artifacts({"figure": b"drawn"})
    assert reported(work) == undisturbed(work) and not link.is_symlink()


def test_one_in_place_of_a_checkpoint_that_is_written_next_is_written_over(work, outside):
    partial = work.folder / "checkpoint.partial"
    execute(work, lambda record: record.get("step") == 3 and partial.symlink_to(outside / "file"))
    assert reported(work) == undisturbed(work) and not partial.is_symlink()


def test_one_in_place_of_the_journal_is_set_aside_and_its_lines_are_kept(work, outside):
    cut_off(work, after=3)
    journal, moved = work.folder / "journal.jsonl", outside.with_name("moved")
    content = journal.read_bytes()
    journal.rename(moved)
    journal.symlink_to(moved)
    (said,) = [record["said"] for record in go_on(work) if record["kind"] == "set_aside"]
    assert said == (
        f"The journal {journal} is a link. It is set aside as journal.damaged-1.jsonl; its 4 lines are kept; training "
        "goes on after step 3."
    )
    assert moved.read_bytes() == content and not journal.is_symlink()
    assert reported(work) == undisturbed(work)


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a lease": (lambda folder: folder / "in_use", "in_use"),
    "the folder": (lambda folder: folder, ""),
}


@pytest.mark.parametrize(("place", "name"), REFUSED.values(), ids=REFUSED)
def test_one_in_place_of_the_lease_or_the_folder_is_named(work, outside, place, name):
    link = place(work.folder)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / name)
    with pytest.raises(
        LinkError, match=rf"^{link} is a link, and nothing is written or removed through one: remove it"
    ):
        execute(work, lambda record: None)
    if name:
        assert not Lease(link).is_held()


@pytest.mark.parametrize("name", ["", "journal.jsonl"], ids=["the folder", "the journal"])
@pytest.mark.parametrize("kind", ["metrics", "evaluation"])
def test_one_that_leads_to_an_equal_copy_is_noticed_and_nothing_is_removed(work, name, kind):
    path, copy, records = work.folder / name, work.folder.with_name("copy"), []

    def send(record):
        records.append(record)
        if record["kind"] == kind and record["step"] >= 4 and not path.is_symlink():
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
            path.rename(path.with_name("mine"))
            path.symlink_to(copy)
            before.update(contents(copy.parent))

    before: dict[str, bytes] = {}
    execute(work, send)
    final = records[-1]
    assert (final["state"], final["is_lost"]) == ("failed", True)
    assert " is a link" in final["error"] and str(path) in final["error"]
    assert contents(copy.parent) == before


def test_one_in_place_of_the_folder_for_artifacts_is_named(work, outside):
    folder = ReplicateFolder(work.folder, {})
    folder.append({"kind": "metrics", "step": 1, "metrics": {}})
    folder.artifacts.symlink_to(outside)
    with pytest.raises(LinkError, match="artifacts is a link"):
        folder.keep_artifacts({"figure": b"drawn"})


def test_one_among_the_artifacts_is_replaced(work, outside):
    folder = ReplicateFolder(work.folder, {})
    folder.keep_artifacts({"table": b"1"})
    for name in ("figure", "nowhere"):
        (folder.artifacts / name).symlink_to(outside / name)
    folder.keep_artifacts({"figure": b"drawn"})
    assert (folder.artifacts / "figure").read_bytes() == b"drawn" and not (folder.artifacts / "figure").is_symlink()


def test_one_in_place_of_an_unpacked_checkpoint_is_replaced(work, outside, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "weights").write_text("ours")
    pack(tmp_path / "given", tmp_path / "step_000001.zip")
    (tmp_path / "step_000001").symlink_to(outside / "step_000001")
    assert (kept_open(tmp_path / "step_000001.zip") / "weights").read_text() == "ours"


@pytest.mark.parametrize("name", ["", "threads.txt"])
def test_one_in_place_of_where_a_hanging_process_writes_is_named(work, outside, name):
    link = work.folder / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / name)
    with pytest.raises(LinkError), traceable(work.folder):
        pass
