"""Secrets of a tracking server."""

import pytest

from orchestrator.environment.credentials import administrator, credentials_file
from trainables.errors import InputError


def test_the_administrator_stays_who_was_made_first(tmp_path):
    made = administrator(tmp_path)
    assert made.user == "ponderay" and len(made.password) > 30 and administrator(tmp_path) == made
    assert credentials_file(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password =\n"])
def test_a_file_without_a_password_is_no_administrator(tmp_path, text):
    credentials_file(tmp_path).write_text(text)
    with pytest.raises(InputError, match=r"credentials must hold a user and a password .*; correct it, or move"):
        administrator(tmp_path)
