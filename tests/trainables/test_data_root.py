"""Where data lies: what is given, else the user's setting, else a clear word."""

import pytest

from trainables.data_root import data_root, find_folder
from trainables.errors import InputError

REMEDY = "give `--set data.root=PATH` or set PONDERAY_DATA."


def test_what_is_given_goes_before_the_users_setting(tmp_path, monkeypatch):
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("PONDERAY_DATA", str(tmp_path))
    assert data_root(tmp_path / "given", "data.root") == tmp_path / "given"
    assert data_root(None, "data.root") == tmp_path


def test_a_closed_folder_does_not_hide_what_lies_behind_it(tmp_path):
    """Such as lost+found of a disk."""
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()

    def is_wanted(folder):
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return folder.name == "open"

    assert find_folder(tmp_path, is_wanted) == tmp_path / "open"


@pytest.mark.parametrize("setting", [None, ""])
def test_without_either_both_remedies_are_named(monkeypatch, setting):
    monkeypatch.delenv("PONDERAY_DATA", raising=False)
    if setting is not None:
        monkeypatch.setenv("PONDERAY_DATA", setting)
    with pytest.raises(InputError) as raised:
        data_root(None, "data.root")
    assert str(raised.value) == f"No data folder is set; {REMEDY}"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError) as raised:
        data_root(tmp_path / "none", "data.root")
    assert str(raised.value) == f"The data folder {tmp_path}/none does not exist; {REMEDY}"
