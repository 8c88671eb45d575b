"""A checkpoint that is a folder: kept as one file, given back as it was, and never unpacked elsewhere."""

import os
import zipfile
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open, opened, pack, remove_unpacked


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def read(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


FILES = {"model.safetensors": bytes(range(256)) * 300, "trainer/state.json": b"{}", "trainer/deep/empty": b""}


def test_what_was_packed_comes_back_for_as_long_as_it_is_used(tmp_path):
    given = write(tmp_path / "given", FILES)
    (given / "nothing").mkdir()
    folder = ReplicateFolder(tmp_path / "replicate", {})
    folder.append({"kind": "metrics", "step": 7, "metrics": {}})
    folder.keep(given, 7)
    with opened(folder.newest(), folder.path) as found:
        assert read(found) == FILES
        assert (found / "nothing").is_dir()
        assert found.parent == folder.path
    assert sorted(path.suffix for path in folder.path.iterdir()) == [".jsonl", ".zip"]


def test_a_file_is_given_as_it_is(tmp_path):
    folder = ReplicateFolder(tmp_path / "replicate", {})
    with zipfile.ZipFile(tmp_path / "state", "w") as archive:  # as torch's own files are
        archive.writestr("data", b"weights")
    folder.append({"kind": "metrics", "step": 1, "metrics": {}})
    folder.keep(tmp_path / "state", 1)
    with opened(folder.newest(), folder.path) as found:
        assert found == folder.newest()
        assert found.read_bytes() == (tmp_path / "state").read_bytes()


def test_equal_contents_make_equal_files_whatever_their_age_and_order(tmp_path):
    one, two = write(tmp_path / "one", FILES), write(tmp_path / "two", dict(reversed(FILES.items())))
    for at, file in enumerate(two.rglob("*")):
        os.utime(file, (at * 1e8, at * 1e8))
        file.chmod(0o700)
    pack(one, tmp_path / "one.zip")
    pack(two, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    write(two, {"trainer/state.json": b"[]"})
    pack(two, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() != (tmp_path / "two.zip").read_bytes()


def test_a_link_to_a_folder_is_refused_and_nothing_is_kept(tmp_path):
    given = write(tmp_path / "given", FILES)
    (given / "other").symlink_to(tmp_path)
    folder = ReplicateFolder(tmp_path / "replicate", {})
    with pytest.raises(ValueError, match="other in it is neither"):
        folder.keep(given, 1)
    assert list(folder.path.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "..", "a\\..\\outside"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"content")
    with pytest.raises(ValueError, match="out of its folder"), opened(tmp_path / "made.zip", tmp_path / "a" / "b"):
        pass
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["made.zip"]


def test_what_a_killed_process_left_unpacked_is_removed_and_nothing_else(tmp_path):
    write(tmp_path, {"unpacked.1a2b/model": b"", "journal.jsonl": b"", "artifacts/unpacked.html": b""})
    remove_unpacked(tmp_path)
    assert set(read(tmp_path)) == {"journal.jsonl", "artifacts/unpacked.html"}


def test_a_folder_that_is_asked_for_from_outside_stays_and_is_no_checkpoint_of_its_own(tmp_path):
    given, folder = write(tmp_path / "given", FILES), ReplicateFolder(tmp_path / "replicate", {})
    folder.append({"kind": "metrics", "step": 1, "metrics": {}, "kept": True})
    folder.keep(given, 1)
    (archive,) = folder.checkpoints().values()
    assert read(kept_open(archive)) == read(kept_open(archive)) == FILES
    assert list(folder.checkpoints().values()) == [archive] and folder.newest() == archive
    assert kept_open(given / "model.safetensors") == given / "model.safetensors"
