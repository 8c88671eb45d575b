"""A cluster made here has sockets, whose paths may have 107 bytes: where it keeps them when TMPDIR has a long name."""

import socket

import pytest

from orchestrator.cluster.session_folder import session_folder

SOCKETS = "session_2026-11-27_03-10-36_123456_4194303/sockets"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Names a new folder below the test's, and returns its path."""
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.delenv("TMPDIR", raising=False)

    def place(variable, name, is_there=True):
        folder = tmp_path / name
        if is_there:
            folder.mkdir(parents=True)
        monkeypatch.setenv(variable, str(folder))
        return folder

    return place


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
@pytest.mark.parametrize("name", ["job" * 20, "é" * 60])
def test_a_folder_that_is_too_long_for_sockets_is_not_used(place, variable, name):
    folder = place(variable, name)
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(OSError, match="too long"):
        one.bind(f"{folder}/ray/{SOCKETS}/plasma_store")
    chosen = session_folder()
    assert chosen == "/tmp/ray"
    assert len(f"{chosen}/{SOCKETS}/plasma_store.10".encode()) <= 107


def test_a_short_one_is_rays_own_choice(place, monkeypatch):
    assert session_folder() is None
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert session_folder() is None
    monkeypatch.setenv("RAY_TMPDIR", "/tmp/not-there-yet")  # Ray makes it
    assert session_folder() is None


@pytest.mark.parametrize("named", ["", "tmp", "/nonexistent-ponderay", "/dev/null/x", "/etc/passwd"])
def test_a_name_of_no_folder_is_not_used(place, monkeypatch, named):
    monkeypatch.setenv("TMPDIR", named)
    assert session_folder() == "/tmp/ray"
