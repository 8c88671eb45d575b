"""A cluster's capacity, for which a thread of its own waits, and the folder of one made here.

Sockets lie in that folder, and their paths may have 107 bytes: TMPDIR may have a long name.
"""

import signal
import socket
import subprocess
import sys
import threading

import pytest

from orchestrator.cluster import session
from orchestrator.cluster.session import ClusterCapacity, session_folder
from orchestrator.scheduler.capacity import Capacity
from tests.waiting import LIMIT_S
from trainables.errors import InputError

NODE = {"Alive": True, "NodeID": "a", "Resources": {"CPU": 2.0}}


@pytest.fixture
def answers(monkeypatch):
    """Ray's answer, or an event to wait for as Ray does where nobody answers."""
    given = [[NODE, {"Alive": False, "NodeID": "b", "Resources": {}}]]

    def nodes():
        if isinstance(given[-1], threading.Event):
            given[-1].wait(60)
        return given[0]

    monkeypatch.setattr(session.ray, "nodes", nodes)
    monkeypatch.setattr(session, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(session, "ASK_S", 0.05)
    return given


def test_what_is_known_stays_while_the_head_is_away(answers):
    capacity, is_back = ClusterCapacity(), threading.Event()
    assert capacity() == Capacity(2.0, 0.0, 2.0, 0.0, ((2.0, 0.0),))
    assert capacity.nodes == {"a"}
    answers.append(is_back)
    assert [capacity().num_cpus for _ in range(3)] == [2.0] * 3
    is_back.set()


def test_what_was_never_known_is_said(answers, monkeypatch):
    monkeypatch.setattr(session, "FIRST_ASK_S", 0.05)
    answers.append(threading.Event())
    with pytest.raises(InputError, match="does not say what it has"):
        ClusterCapacity()()
    answers[-1].set()


def test_several_threads_may_ask(answers):
    capacity, found = ClusterCapacity(), []
    threads = [threading.Thread(target=lambda: found.extend(capacity() for _ in range(50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.num_cpus for one in found} == {2.0} and len(found) == 400


def test_a_start_that_fails_leaves_no_process_behind(monkeypatch):
    """Where a node does not come up in time, Ray leaves its GCS server, monitor and dashboard behind."""
    left = []

    def come_up(**_):
        left.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        raise TimeoutError("The node did not come up.")

    monkeypatch.setattr(session.ray, "init", come_up)
    monkeypatch.setattr(session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(session.ray_token, "prepare", lambda address: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match=r"did not start on this machine: The node did not come up\. Run"):
        session.Connection(1, is_verbose=False)
    assert left[0].wait(LIMIT_S) == -signal.SIGKILL


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
