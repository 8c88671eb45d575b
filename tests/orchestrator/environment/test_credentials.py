"""Secrets of a tracking server."""

import pytest
from mlflow.utils.credentials import read_mlflow_creds

from orchestrator.environment.credentials import administrator, credentials_file, hand_to_client, secret_in
from trainables.errors import InputError


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    made = administrator(tmp_path)
    assert made.user == "ponderay" and len(made.password) > 30 and administrator(tmp_path) == made
    assert made.password not in repr(made)
    assert secret_in(tmp_path / "x") == secret_in(tmp_path / "x") != made.password
    assert "other machines need a copy" in hand_to_client(tmp_path)
    files = [credentials_file(tmp_path), tmp_path / "x", home / ".mlflow" / "credentials"]
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3
    assert tuple(read_mlflow_creds()) == (made.user, made.password)
    files[2].write_text("[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = own\n")
    sentence = hand_to_client(tmp_path)
    assert "left as it is" in sentence and made.password not in sentence
    assert tuple(read_mlflow_creds()) == ("me", "own")


@pytest.mark.parametrize("text", ["", "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password =\n"])
def test_a_file_without_a_password_is_no_administrator(tmp_path, text):
    credentials_file(tmp_path).write_text(text)
    with pytest.raises(InputError, match=r"credentials must hold a user and a password .*; correct it, or move"):
        administrator(tmp_path)
