"""What is there after a loss of power, right after a function has returned."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.environment.credentials import administrator, secret_in, write_secret
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open, pack
from orchestrator.machine.durable_files import create_atomically, make_folder, replace_durably, sync
from orchestrator.machine.shared_folder_check import ensure_mark
from orchestrator.server.folder import ServerFolder
from tests.faults.disk import Disk

RECORD = {"kind": "metrics", "step": 1, "metrics": {"loss": 1.0}, "kept": True}


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpacked(place: Path) -> None:
    (place / "given").mkdir()
    (place / "given" / "weights").write_bytes(b"of a folder")
    pack(place / "given", place / "step_000001.zip")
    kept_open(place / "step_000001.zip")


def replaced(place: Path) -> None:
    write_secret(place / "secret", "first")
    write_secret(place / "secret", "second")


def damaged_journal(place: Path) -> None:
    (place / "journal.jsonl").write_text("no record\n")
    sync(place / "journal.jsonl")
    ReplicateFolder(place, {}).begin("driver.1")


WRITES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "journal": (lambda place: ReplicateFolder(place / "new/key", {}).append(RECORD), {"new/key/journal.jsonl"}),
    "artifact": (
        lambda place: ReplicateFolder(place / "new/key", {}).keep_artifacts({"figure": b"drawn"}),
        {"new/key/artifacts/figure"},
    ),
    "damaged journal": (damaged_journal, {"journal.jsonl", "journal.damaged-1.jsonl"}),
    "unpacked checkpoint": (unpacked, {"step_000001/weights"}),
    "secret": (replaced, {"secret"}),
    "random secret": (lambda place: secret_in(place / "key"), {"key"}),
    "administrator": (administrator, {"credentials"}),
    "server": (
        lambda place: (ServerFolder(place / "new/server").make(), administrator(place / "new/server")),
        {"new/server/credentials"},
    ),
    "mark": (lambda place: ensure_mark(place / "new"), {"new/.mark"}),
}


@pytest.mark.parametrize(("write", "names"), WRITES.values(), ids=WRITES.keys())
def test_what_was_written_is_there_after_a_loss_of_power(tmp_path, write, names):
    """Whether that takes all that was not synced, or contents alone."""
    place = tmp_path / "disk"
    place.mkdir()
    with Disk(place).watched() as disk:
        write(place)
    written = contents(place)
    for with_names in (False, True):
        disk.surviving(left := tmp_path / f"left-{with_names}", with_names)
        found = contents(left)
        assert {name: found.get(name) for name in names} == {name: written[name] for name in names}


def test_a_checkpoint_is_there_before_the_ones_it_replaces_go(tmp_path):
    place, source = tmp_path / "disk", tmp_path / "source"
    place.mkdir()
    folder, removed = ReplicateFolder(place / "key", {}), []

    def look(disk: Disk, tear: object) -> None:
        if disk.operations[-1].startswith("unlink"):
            disk.surviving(left := tmp_path / f"left-{len(removed)}")
            removed.append([path.name.partition(".")[0] for path in sorted(left.glob("key/step_*"))])

    with Disk(place, look).watched():
        for step in (1, 2, 3, 4):
            folder.append(RECORD | {"step": step})
            source.write_text(f"of step {step}")
            folder.keep(source, step)
    assert removed == [
        ["step_000001", "step_000002", "step_000003"],
        ["step_000002", "step_000003", "step_000004"],
    ]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES])
def test_a_folder_that_cannot_be_synced_is_used_as_it_is(tmp_path, monkeypatch, number):
    def fsync(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").is_dir():
            raise OSError(number, "not of a folder")

    monkeypatch.setattr(os, "fsync", fsync)
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "partial").write_text("content")
    replace_durably(tmp_path / "partial", tmp_path / "a" / "b" / "file")
    assert (tmp_path / "a" / "b" / "file").read_text() == "content"
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
    for path in (tmp_path, tmp_path / "a" / "b" / "file"):
        with pytest.raises(OSError, match="Input/output"):
            sync(path)


def test_of_two_that_create_a_file_the_first_one_stays(tmp_path):
    for text in ("first", "second"):
        create_atomically(tmp_path / "file", text, 0o600)
    assert contents(tmp_path) == {"file": b"first"}
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
