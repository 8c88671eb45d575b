"""What the cluster has is asked for by a thread of its own, so that a head that is gone holds nobody up."""

import signal
import subprocess
import sys
import threading

import pytest

from orchestrator.cluster import session
from orchestrator.cluster.session import ClusterCapacity
from orchestrator.scheduler.capacity import Capacity
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
    assert left[0].wait(60) == -signal.SIGKILL
