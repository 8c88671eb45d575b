"""What the watch says and does of a cluster that is gone, silent, or another one; each made without Ray."""

import re
import time
from types import SimpleNamespace

import pytest

from orchestrator.cluster import cluster_watch
from orchestrator.cluster.cluster_watch import ClusterWatch
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.stop_request import Stopping, stop_on_sigterm
from tests.waiting import until


class Nodes:
    def __init__(self):
        self.nodes = frozenset({"node"})

    def __call__(self):
        return Capacity(2, 0)


@pytest.fixture
def cluster(monkeypatch):
    """A connection whose cluster answers what the test says."""
    monkeypatch.setattr(cluster_watch, "LOOK_S", 0.01)
    monkeypatch.setattr(cluster_watch, "ASK_S", 0.0)
    monkeypatch.setattr(cluster_watch, "SILENT_S", 0.1)
    made = SimpleNamespace(
        address="10.0.0.1:6379", node="node", identity=b"1", is_local=False, capacity=Nodes(), dead="", answer=b"1"
    )
    made.dead_process = lambda: made.dead
    made.is_answering = lambda: not made.dead and made.answer == made.identity
    monkeypatch.setattr("orchestrator.cluster.token.identity", lambda *_: made.answer)
    return made


def interrupted(watch, strike):
    """What becomes of the main thread once `strike` was called."""
    with stop_on_sigterm(), pytest.raises(KeyboardInterrupt), watch:
        strike()
        time.sleep(60)


def test_a_process_that_has_ended_interrupts_at_once(cluster):
    cluster.is_local = True
    watch = ClusterWatch(cluster, 600.0, 30.0, print, Stopping())
    interrupted(watch, lambda: setattr(cluster, "dead", "raylet"))
    assert watch.lost == "Ray on this machine has lost its process raylet"
    assert watch.room() == ""


def test_a_node_that_the_head_counts_as_dead_is_lost(cluster):
    watch = ClusterWatch(cluster, 600.0, 30.0, print, Stopping())
    interrupted(watch, lambda: setattr(cluster.capacity, "nodes", frozenset({"another"})))
    assert watch.lost == "The Ray cluster at 10.0.0.1:6379 counts the node of this machine as dead"


def test_a_head_that_was_started_anew_is_another_cluster(cluster):
    watch = ClusterWatch(cluster, 600.0, 30.0, print, Stopping())
    interrupted(watch, lambda: setattr(cluster, "answer", b"2"))
    assert watch.lost == "The Ray cluster at 10.0.0.1:6379 has been started anew"


def test_silence_is_told_and_its_end_too(cluster):
    told: list[str] = []
    watch = ClusterWatch(cluster, 600.0, 30.0, told.append, Stopping())
    with watch:
        assert watch.room().startswith(
            "the cluster has 1 node with 2 CPUs in all; `ray status --address 10.0.0.1:6379`"
        )
        cluster.answer = None
        until(lambda: len(told) == 1)
        assert watch.room() == ""
        cluster.answer = b"1"
        until(lambda: len(told) == 2)
    assert not watch.lost
    silent = r"The Ray cluster at 10\.0\.0\.1:6379 has not answered for \d+ s; the sweep waits for up to 10"
    assert re.match(silent, told[0])
    assert told[1] == "The Ray cluster at 10.0.0.1:6379 answers again; the work goes on."


def test_silence_beyond_the_limit_stops_the_sweep(cluster):
    stopping = Stopping()
    watch = ClusterWatch(cluster, 0.2, 30.0, lambda _: None, stopping)
    interrupted(watch, lambda: setattr(cluster, "answer", None))
    assert re.fullmatch(r"The Ray cluster at 10\.0\.0\.1:6379 has not answered for \d+ s\.", stopping.reason)
    assert not watch.lost


def test_a_local_ray_that_is_silent_for_too_long_is_lost(cluster):
    cluster.is_local = True
    watch = ClusterWatch(cluster, 600.0, 0.2, lambda _: None, Stopping())
    interrupted(watch, lambda: setattr(cluster, "answer", None))
    assert re.fullmatch(r"Ray on this machine has not answered for \d+ s", watch.lost)


def test_what_failed_has_its_cause_in_the_cluster_only_where_that_is_away(cluster):
    watch = ClusterWatch(cluster, 600.0, 30.0, print, Stopping())
    assert watch.cause() == ""
    cluster.answer = None
    assert watch.cause() == "The Ray cluster at 10.0.0.1:6379 does not answer"


def test_a_main_thread_that_nothing_gets_out_of_ray_ends_with_its_process(cluster, monkeypatch, capsys):
    ended: list[int] = []
    monkeypatch.setattr(cluster_watch, "STUCK_S", 0.1)
    monkeypatch.setattr(cluster_watch.sys, "argv", ["ponderay", "run", "toy.py:toy"])
    monkeypatch.setattr(cluster_watch.os, "kill", lambda *_: None)
    monkeypatch.setattr(cluster_watch.os, "_exit", ended.append)
    cluster.dead, cluster.is_local, left = "gcs_server", True, ["agent"]
    cluster.end_processes = left.clear
    with ClusterWatch(cluster, 600.0, 30.0, print, Stopping()):
        until(lambda: ended)
    assert ended[0] == 1 and not left
    said = capsys.readouterr().err
    assert "has lost its process gcs_server. Ray does not let go of this process." in said
    assert "`ponderay run toy.py:toy` continues from here." in said


def test_a_process_that_was_stopped_itself_asks_before_it_says_silence(cluster, monkeypatch):
    """As by Ctrl-Z: on going on, the last answer is old."""
    cluster.is_local = True
    with ClusterWatch(cluster, 600.0, 0.3, print, Stopping()) as watch:
        asked: list[float] = []

        def answer(*_):
            time.sleep(0.4)
            asked.append(watch.silent_s)
            return b"1"

        monkeypatch.setattr("orchestrator.cluster.token.identity", answer)
        until(lambda: len(asked) > 2)
    assert max(asked) > 0.3 and not watch.lost


def test_a_ray_that_cannot_be_asked_is_not_silent(cluster):
    cluster.is_local, cluster.identity = True, b""
    with ClusterWatch(cluster, 600.0, 0.3, print, Stopping()) as watch:
        until(lambda: watch.silent_s > 0.6)
        assert not watch.lost


def test_an_ordinary_stop_of_a_cluster_that_answers_is_not_cut_short(cluster, monkeypatch):
    signals: list[int] = []
    monkeypatch.setattr(cluster_watch.os, "kill", lambda _, number: signals.append(number))
    stopping = Stopping()
    with ClusterWatch(cluster, 600.0, 30.0, print, stopping):
        stopping.stop("Stopped at the limit of 1 device hours.")
        time.sleep(0.2)
    assert len(signals) == 1
