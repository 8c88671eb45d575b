"""Folders that a user names, before anything is made."""

import os
from pathlib import Path

import pytest

from orchestrator.environment.places import folder_at, folder_fault
from orchestrator.environment.settings import read_settings
from trainables.errors import InputError


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/nonexistent-ponderay", "is not there, and folders are not made directly below /"),
        ("/nonexistent-ponderay/lab/runs", "is not there, and neither is /nonexistent-ponderay/lab"),
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
    with pytest.raises(InputError) as raised:
        folder_at(place, "PONDERAY_RUNS")
    assert str(raised.value).startswith("PONDERAY_RUNS must name a folder that is there, or a new one in a folder ")
    assert said in str(raised.value) and len(str(raised.value)) < 400


def test_a_new_folder_is_made_in_one_that_is_there(workplace, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("lab")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(workplace))
    monkeypatch.setenv("HOME", str(workplace))
    assert folder_at(other, "it") == other
    assert folder_at(other / "runs", "it") == other / "runs"
    assert folder_fault(other / "deep" / "runs").endswith(f"is not there, and neither is {other / 'deep'}")


@pytest.mark.parametrize("base", ["working folder", "home", "temporary folder"])
def test_any_number_of_folders_are_made_below_those_of_the_user(workplace, tmp_path_factory, monkeypatch, base):
    others = [tmp_path_factory.mktemp("other") for _ in range(2)]
    places = dict(zip(["working folder", "home", "temporary folder"], [workplace, *others], strict=True))
    monkeypatch.setenv("HOME", str(places["home"]))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(places["temporary folder"]))
    assert folder_fault(places[base] / "a" / "b" / "c") == ""


@pytest.mark.parametrize("name", ["runs", "cache"])
def test_a_setting_that_is_no_folder_is_refused_and_nothing_is_made(workplace, monkeypatch, name):
    for given in ("/nonexistent-ponderay", "/dev/null/x"):
        monkeypatch.setenv(f"PONDERAY_{name.upper()}", given)
        with pytest.raises(InputError, match=rf"`{name}` \(PONDERAY_{name.upper()}, or {name} in ponderay.toml\)"):
            read_settings()
    assert not Path("/nonexistent-ponderay").exists() and list(workplace.iterdir()) == []


def test_the_cache_in_new_runs_is_no_fault(workplace, tmp_path_factory, monkeypatch):
    lab = tmp_path_factory.mktemp("lab")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(workplace))
    monkeypatch.setenv("HOME", str(workplace))
    monkeypatch.setenv("PONDERAY_RUNS", str(lab / "runs"))
    assert read_settings() == read_settings()
    assert os.environ["PONDERAY_CACHE"] == str(lab / "runs" / "cache")
