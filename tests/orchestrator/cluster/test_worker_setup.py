"""What a process of Ray's begins with: the working folder of the command, and where a trainable records by itself."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.cluster import worker_setup
from orchestrator.cluster.worker_setup import enter, runtime_environment


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder in which Ray has started this process, and the one that it has changed to, removed later."""
    for name in ("began", "trial"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(worker_setup, "_began_in", [tmp_path / "began"])
    monkeypatch.chdir(tmp_path / "trial")
    return tmp_path


def test_a_worker_changes_to_the_folder_of_the_command_or_where_it_is_not_to_its_own(place):
    (place / "command").mkdir()
    enter(place / "command")
    assert Path.cwd() == place / "command"
    enter(place / "of another machine")
    assert Path.cwd() == place / "began"
    (place / "a file").touch()
    os.chdir(place / "trial")
    enter(place / "a file")
    assert Path.cwd() == place / "began"


def test_a_process_on_a_cluster_that_was_there_begins_with_its_own_clusters_address(place, monkeypatch):
    """In real ones in tests/integration/test_small_nodes.py."""
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(gcs_address="10.0.0.2:6379"))
    runtime_environment()["worker_process_setup_hook"]()
    assert os.environ["RAY_ADDRESS"] == "10.0.0.2:6379"


@pytest.mark.parametrize(
    ("uri", "is_passed_on"),
    [
        ("http://127.0.0.1:5000", True),
        ("sqlite:///mine.db", True),
        ("https://ann:secret@lab.example", False),
        ("https://ghp_0123456789012345678901@lab.example", False),
    ],
)
def test_a_password_of_the_users_own_store_is_not_shown_to_who_sees_the_job(monkeypatch, uri, is_passed_on):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert runtime_environment()["env_vars"].get("MLFLOW_TRACKING_URI") == (uri if is_passed_on else None)
