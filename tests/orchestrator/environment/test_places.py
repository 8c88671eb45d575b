"""Folders that a user names, before anything is made."""

import errno
import os
from pathlib import Path

import pytest

from orchestrator.environment.places import file_at, folder_at, folder_fault, refused_write
from orchestrator.environment.settings import read_settings
from trainables.errors import InputError


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/nonexistent-ponderay", "/nonexistent-ponderay is not there, and folders are not made directly below /"),
        ("/nonexistent-ponderay/lab/runs", "/nonexistent-ponderay is not there, and folders are not made directly"),
        ("unmounted", "is a link to what is not there"),
        ("/proc/x", "belongs to the system"),
        ("/sys/kernel/runs", "belongs to the system"),
        ("/dev/null/x", "lies in /dev/null, which is a file"),
        ("/etc/passwd", "is a file"),
        ("file", "is a file"),
        ("file/runs", "is a file"),
        ("loop", "cannot be used: Too many levels of symbolic links"),
        ("x" * 300, "cannot be used: File name too long"),
        ("a\0b", "has characters that cannot be printed"),
        ("a\nb", "has characters that cannot be printed"),
    ],
)
def test_what_can_be_no_folder_is_one_sentence_with_the_setting(workplace, place, said):
    (workplace / "file").touch()
    (workplace / "loop").symlink_to("loop")
    (workplace / "unmounted").symlink_to("/nonexistent-ponderay/disk")
    with pytest.raises(InputError) as raised:
        folder_at(place, "PONDERAY_RUNS")
    assert str(raised.value).startswith("PONDERAY_RUNS must name a folder that is there, or a new one below a folder ")
    assert said in str(raised.value) and len(str(raised.value)) < 400


def test_a_new_folder_is_made_with_those_above_it(workplace, monkeypatch):
    assert folder_at(workplace, "it") == workplace
    assert folder_at(workplace / "deep" / "runs", "it") == workplace / "deep" / "runs"
    assert folder_fault(workplace / "a" / "b" / "c") == ""
    monkeypatch.setenv("HOME", str(workplace))
    assert folder_at("~/runs", "it") == workplace / "runs"


def test_a_file_is_no_folder_and_may_be_in_a_new_one(workplace, monkeypatch):
    monkeypatch.setenv("HOME", str(workplace))
    assert file_at(Path("~/new/a.csv"), "--to") == workplace / "new" / "a.csv"
    assert file_at(Path("a.csv"), "--to") == Path("a.csv") and not (workplace / "new").exists()
    (workplace / "folder.csv").mkdir()
    for given in ("folder.csv", "~/folder.csv", ".", ".."):
        with pytest.raises(InputError, match=r"^--to must be a file, but .* is a folder; name a file in it"):
            file_at(Path(given), "--to")
    (workplace / "file").touch()
    with pytest.raises(InputError, match=r"^--to must name a folder that is there, .* is a file"):
        file_at(Path("file/a.csv"), "--to")


@pytest.mark.parametrize("name", ["runs", "cache"])
def test_a_setting_that_is_no_folder_is_refused_and_nothing_is_made(workplace, monkeypatch, name):
    for given in ("/nonexistent-ponderay", "/dev/null/x"):
        monkeypatch.setenv(f"PONDERAY_{name.upper()}", given)
        with pytest.raises(InputError, match=rf"`{name}` \(PONDERAY_{name.upper()}, or {name} in ponderay.toml\)"):
            read_settings()
    assert not Path("/nonexistent-ponderay").exists() and list(workplace.iterdir()) == []


def test_the_cache_in_new_runs_is_no_fault(workplace, monkeypatch):
    monkeypatch.setenv("HOME", str(workplace))
    monkeypatch.setenv("PONDERAY_RUNS", "~/lab/runs")
    assert read_settings() == read_settings()
    assert os.environ["PONDERAY_CACHE"] == str(workplace / "lab" / "runs" / "cache")


def test_the_home_of_nobody_is_no_folder_called_by_a_tilde(workplace):
    with pytest.raises(InputError, match="PONDERAY_RUNS must name a folder, but ~nosuchuser/runs is below the home of"):
        folder_at("~nosuchuser/runs", "PONDERAY_RUNS")


def test_a_full_disk_keeps_no_trace_of_the_question_whether_it_can_be_written(workplace, monkeypatch):
    def refuse(file: Path, content: bytes) -> None:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert refused_write(workplace) == "No space left on device"
    assert list(workplace.iterdir()) == []
