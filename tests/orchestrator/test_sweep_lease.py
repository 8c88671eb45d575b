"""Leases in the tracking store: one holder, whoever asks, and an end when the holder is gone."""

import os
import subprocess
import sys
import threading
import time

import pytest

from orchestrator.settings import read_settings
from orchestrator.sweep_lease import LeaseKeeper, StoreLease
from orchestrator.tracking import Tracking
from tests.orchestrator.recorded import empty_store

EVERY_ASK = {"expires_s": 0.3, "poll_s": 0.0}
CHILD = """
import sys, time
from orchestrator.settings import read_settings
from orchestrator.sweep_lease import StoreLease
from orchestrator.tracking import Tracking
lease = StoreLease(Tracking(read_settings()), "x")
print("ready", flush=True)
sys.stdin.readline()
print(lease.acquire(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def tracking(workplace):
    (workplace / "runs").mkdir()
    (workplace / "runs" / "mlflow.db").write_bytes(empty_store())
    return Tracking(read_settings())


def child() -> subprocess.Popen[str]:
    """A process that takes the lease at the first line it reads and ends at the next."""
    return subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def foreign(lease: StoreLease, monkeypatch) -> None:
    """Has `lease` taken as if by a process of another machine."""
    monkeypatch.setattr("orchestrator.sweep_lease.process_space", lambda: "another machine")
    assert lease.acquire()
    monkeypatch.undo()


def test_one_holds_it_until_it_is_given_back(tracking):
    first, second = (StoreLease(tracking, "x", **EVERY_ASK) for _ in range(2))
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    assert second.holder() == f"process {os.getpid()} on {os.uname().nodename}"
    assert not second.acquire_or_wait()
    first.release()
    assert second.acquire()
    assert not first.acquire()


def test_a_lease_whose_beat_stands_still_expires_and_its_holder_learns_of_it(tracking, monkeypatch):
    first, second = (StoreLease(tracking, "x", **EVERY_ASK) for _ in range(2))
    foreign(first, monkeypatch)
    assert first.beat()
    assert not second.acquire()
    time.sleep(0.2)
    assert first.beat()
    assert not second.acquire()
    time.sleep(0.2)
    assert not second.acquire()
    time.sleep(0.35)
    assert second.acquire()
    assert not first.beat()
    assert not first.is_held()
    first.release()
    assert second.beat()


def test_waiting_ends_with_the_first_beat_of_a_live_holder(tracking, monkeypatch):
    first = StoreLease(tracking, "x")
    foreign(first, monkeypatch)
    second = StoreLease(tracking, "x", expires_s=60.0, poll_s=0.05)
    threading.Timer(0.3, first.beat).start()
    began = time.monotonic()
    assert not second.acquire_or_wait()
    assert 0.3 <= time.monotonic() - began < 10


def test_a_dead_holder_of_this_machine_is_not_waited_for(tracking):
    process = child()
    tell(process)
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "True\n"]
    lease = StoreLease(tracking, "x", poll_s=0.0)
    assert not lease.acquire()
    assert lease.holder().startswith(f"process {process.pid} on ")
    process.kill()
    process.wait()
    assert lease.acquire()


def test_of_processes_that_ask_at_the_same_moment_one_gets_it(workplace):
    processes = [child() for _ in range(2)]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for process in processes:
        tell(process)
    assert sorted(process.stdout.readline() for process in processes) == ["False\n", "True\n"]
    for process in processes:
        process.communicate()


def test_a_keeper_keeps_leases_alive_and_says_when_one_was_taken(tracking, monkeypatch):
    lost = []
    keeper = LeaseKeeper(tracking, lost.append, beat_s=0.05)
    kept = keeper.lease("x")
    foreign(kept, monkeypatch)
    other = StoreLease(tracking, "x", expires_s=0.5, poll_s=0.0)
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        assert not other.acquire()
    book = tracking.book("lease x")
    book.claim(str(1 + max(map(int, book.claims()))), book.claims()["1"])
    deadline = time.monotonic() + 5
    while not lost and time.monotonic() < deadline:
        time.sleep(0.02)
    assert lost == ["The lease of x cannot be kept: Another driver has taken it."]
    keeper.close()


def test_a_keeper_gives_everything_back_when_it_closes(tracking):
    keeper = LeaseKeeper(tracking, lambda name: None)
    assert keeper.lease("x").acquire()
    keeper.close()
    assert StoreLease(tracking, "x").acquire()


def test_a_lease_that_could_not_be_given_back_is_free_for_the_process_that_had_it(tracking, monkeypatch):
    """As in a notebook, which lives on."""
    first = StoreLease(tracking, "x", **EVERY_ASK)
    assert first.acquire()

    def away(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.tracking_books.Book.note", away)
        with pytest.raises(ConnectionError):
            first.release()
    assert StoreLease(tracking, "x", **EVERY_ASK).acquire()


def test_a_process_that_cannot_be_seen_is_not_taken_for_dead(tracking, monkeypatch):
    """As with another user's, where /proc hides them."""
    process = child()
    tell(process)
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "True\n"]
    lease = StoreLease(tracking, "x", poll_s=0.0)
    monkeypatch.setattr("orchestrator.processes.start_time", lambda pid: "")
    assert not lease.acquire()
    process.kill()
    process.wait()
    assert lease.acquire()
