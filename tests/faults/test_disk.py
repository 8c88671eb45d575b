"""The model of a disk that loses power, by what POSIX promises."""

import os
import shutil
from pathlib import Path

import pytest

from tests.faults.disk import Disk


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def write(path: Path, content: str, is_synced: bool = False) -> None:
    with path.open("w") as file:
        file.write(content)
        file.flush()
        if is_synced:
            os.fsync(file.fileno())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "disk" / "old").mkdir(parents=True)
    (tmp_path / "disk" / "kept").write_text("before")
    return tmp_path / "disk"


def left(disk: Disk, with_names: bool = False) -> dict[str, str]:
    into = disk.root.with_name("left")
    disk.surviving(into, with_names)
    found = {
        path.relative_to(into).as_posix(): path.read_text() if path.is_file() else "a folder"
        for path in into.rglob("*")
    }
    shutil.rmtree(into)
    return found


def test_what_was_there_before_stays_and_what_was_not_synced_goes(place):
    with Disk(place).watched() as disk:
        write(place / "kept", "after")
        write(place / "new", "unsynced")
        (place / "old").rmdir()
        assert left(disk) == {"kept": "before", "old": "a folder"}
        assert left(disk, with_names=True) == {"kept": "before", "new": ""}


def test_contents_come_with_a_sync_of_the_file_and_names_with_one_of_the_folder(place):
    with Disk(place).watched() as disk:
        write(place / "synced", "content", is_synced=True)
        write(place / "unsynced", "content")
        assert left(disk).keys() == {"kept", "old"}
        sync(place)
        assert left(disk) == {"kept": "before", "old": "a folder", "synced": "content", "unsynced": ""}
        (place / "synced").rename(place / "renamed")
        (place / "kept").unlink()
        assert left(disk) == {"kept": "before", "old": "a folder", "synced": "content", "unsynced": ""}
        sync(place)
        assert left(disk) == {"old": "a folder", "renamed": "content", "unsynced": ""}


def test_a_folder_whose_own_name_was_not_synced_goes_with_all_in_it(place):
    with Disk(place).watched() as disk:
        (place / "new").mkdir()
        write(place / "new" / "file", "content", is_synced=True)
        sync(place / "new")
        assert "new" not in left(disk)
        sync(place)
        assert left(disk)["new/file"] == "content"


def test_every_way_to_change_files_is_an_operation(place, tmp_path):
    (tmp_path / "source").write_text("elsewhere")
    (place / "old" / "inner").touch()
    with Disk(place).watched() as disk:
        shutil.copyfile(tmp_path / "source", place / "copied")
        os.link(place / "copied", place / "linked")
        os.close(handle := os.open(place / "opened", os.O_CREAT | os.O_WRONLY))
        assert handle
        (place / "copied").replace(place / "replaced")
        with (place / "replaced").open("a+b") as file:
            file.truncate(3)
            os.fsync(file)
        shutil.rmtree(place / "old")
        (place / "kept").read_text()
        (tmp_path / "outside").write_text("not seen")
    assert disk.operations == [
        *("create copied", "write copied", "link linked", "create opened", "replace replaced"),
        *("truncate replaced", "fsync replaced", "unlink old/inner", "rmdir old"),
    ]


def test_a_write_can_be_torn(place):
    class End(BaseException):
        pass

    def end(disk, tear):
        if disk.operations[-1] == "write kept":
            tear()
            raise End

    with Disk(place, end).watched(), pytest.raises(End), (place / "kept").open("r+b", 0) as file:
        file.write(b"AFTERWARDS")
    assert (place / "kept").read_text() == "AFTERe"
