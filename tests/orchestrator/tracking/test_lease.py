"""Leases in the tracking store: one holder, whoever asks, and an end when the holder is gone."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import LeaseKeeper, StoreLease
from orchestrator.tracking.registry import Registry
from tests.waiting import LIMIT_S, until

EVERY_ASK = {"expires_s": 0.3, "poll_s": 0.0}
PROCESSES = multiprocessing.get_context("forkserver")  # which loads MLflow once for all of them
PROCESSES.set_forkserver_preload(["orchestrator.tracking.client", "mlflow.store.tracking.sqlalchemy_store"])


class Child:
    """A process that takes the lease when it is told to, and ends when it is told again or its parent has gone."""

    def __init__(self) -> None:
        self._line, far = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=take_lease, args=(read_settings(), far), daemon=True)
        self._process.start()
        far.close()
        self.pid = self._process.pid
        assert self._line.recv() == "ready"

    def tell(self) -> None:
        self._line.send("go on")

    def has_it(self) -> bool:
        return self._line.recv()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def take_lease(settings: Settings, line: Connection) -> None:
    lease = StoreLease(Tracking(settings), "x")
    line.send("ready")
    line.recv()
    line.send(lease.acquire())
    line.recv()


@pytest.fixture
def child(tracking) -> Iterator[Callable[[], Child]]:
    """Makes one; all are gone afterwards."""
    made: list[Child] = []
    yield lambda: made.append(Child()) or made[-1]
    for one in made:
        one.kill()


def clock(monotonic: Callable[[], float], sleep: Callable[[float], None] = time.sleep) -> SimpleNamespace:
    """A module `time` of which only `monotonic` and `sleep` are not as they are."""
    return SimpleNamespace(**vars(time) | {"monotonic": monotonic, "sleep": sleep})


def foreign(lease: StoreLease, monkeypatch) -> None:
    """Has `lease` taken as if by a process of another machine."""
    monkeypatch.setattr("orchestrator.tracking.lease_holder.process_space", lambda: "another machine")
    assert lease.acquire()
    monkeypatch.undo()


def test_one_holds_it_until_it_is_given_back(tracking):
    first, second = (StoreLease(tracking, "x", poll_s=0.0) for _ in range(2))
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    assert second.holder() == f"process {os.getpid()} on {os.uname().nodename}"
    assert not second.acquire_or_wait()
    first.release()
    assert second.acquire()
    assert not first.acquire()


@pytest.mark.every_store
def test_a_lease_whose_beat_stands_still_expires_and_its_holder_learns_of_it(tracking, monkeypatch):
    first, second = (StoreLease(tracking, "x", **EVERY_ASK) for _ in range(2))
    foreign(first, monkeypatch)
    now_s = [0.0]
    monkeypatch.setattr("orchestrator.tracking.lease.time", clock(lambda: now_s[0]))
    assert first.heartbeat()
    assert not second.acquire()
    now_s[0] = 0.2
    assert first.heartbeat()
    assert not second.acquire()
    for now_s[0] in (0.3, 0.4):
        assert not second.acquire()
    now_s[0] = 0.52
    assert second.acquire()
    assert not first.heartbeat()
    assert not first.is_held()
    first.release()
    assert second.heartbeat()


def test_a_lease_does_not_expire_while_the_store_is_away(tracking, monkeypatch):
    """Its holder could not beat in that time; it can now."""
    first, second = (StoreLease(tracking, "x", **EVERY_ASK) for _ in range(2))
    foreign(first, monkeypatch)
    now_s = [0.0]
    monkeypatch.setattr("orchestrator.tracking.lease.time", clock(lambda: now_s[0]))
    assert first.heartbeat() and not second.acquire()
    for now_s[0] in (9.0, 9.1, 9.2):
        assert not second.acquire()
    assert first.heartbeat() and not second.acquire()
    assert first.is_held()


def test_waiting_ends_with_the_first_beat_of_a_live_holder(tracking, monkeypatch):
    first = StoreLease(tracking, "x")
    foreign(first, monkeypatch)
    slept_s: list[float] = []

    def sleep(seconds: float) -> None:
        slept_s.append(seconds)
        if sum(slept_s) > 0.3 and not is_beaten:
            is_beaten.append(first.heartbeat())

    is_beaten: list[bool] = []
    for module in ("orchestrator.tracking.lease", "orchestrator.machine.waiting"):
        monkeypatch.setattr(f"{module}.time", clock(lambda: sum(slept_s), sleep))
    second = StoreLease(tracking, "x", expires_s=60.0, poll_s=0.05)
    assert not second.acquire()
    assert not second.acquire_or_wait()
    assert is_beaten == [True] and sum(slept_s) < 0.3 + 2 * 0.05


def test_a_dead_holder_of_this_machine_is_not_waited_for(tracking, child):
    process = child()
    process.tell()
    assert process.has_it()
    lease = StoreLease(tracking, "x", poll_s=0.0)
    assert not lease.acquire()
    assert lease.holder().startswith(f"process {process.pid} on ")
    process.kill()
    assert lease.acquire()


@pytest.mark.every_store
def test_of_processes_that_ask_at_the_same_moment_one_gets_it(child):
    processes = [child() for _ in range(2)]
    for process in processes:
        process.tell()
    assert sorted(process.has_it() for process in processes) == [False, True]


def test_a_keeper_keeps_leases_alive_and_says_when_one_was_taken(tracking, monkeypatch):
    lost = []
    keeper = LeaseKeeper(tracking, lost.append, heartbeat_s=0.05)
    kept = keeper.lease("x")
    foreign(kept, monkeypatch)
    registry = tracking.registry("lease x")
    other = StoreLease(tracking, "x", poll_s=0.0)
    for _ in range(3):  # each heartbeat has the other one wait anew
        seen = other._seen[0]
        until(lambda seen=seen: other.acquire() or other._seen[0] != seen)
        assert not other.acquire()
    registry.enter(str(1 + max(map(int, registry.entries()))), registry.entries()["1"])
    until(lambda: lost)
    assert lost == ["The lease of x cannot be kept: Another driver has taken it."]
    keeper.close()


def test_a_driver_that_stood_still_is_not_sure_of_its_lease_though_the_clock_was_set_back_meanwhile(
    tracking, monkeypatch
):
    lease, since_boot_s, of_day_s = StoreLease(tracking, "x"), [1000.0], [1e9]
    monkeypatch.setattr("orchestrator.tracking.lease.time.clock_gettime", lambda _: since_boot_s[0])
    monkeypatch.setattr("orchestrator.tracking.lease.time.time", lambda: of_day_s[0])
    assert lease.acquire() and lease.is_sure()
    since_boot_s[0] += 60.0
    of_day_s[0] += 60.0 - 50.0
    assert not lease.is_sure()


def test_a_keeper_asks_whether_it_holds_all_only_where_no_beat_was_lately_and_says_once_that_it_does_not(
    tracking, monkeypatch
):
    lost, now_s, beats = [], [1000.0], []
    monkeypatch.setattr("orchestrator.tracking.lease.time.clock_gettime", lambda _: now_s[0])
    keeper, heartbeat = LeaseKeeper(tracking, lost.append, heartbeat_s=60.0), StoreLease.heartbeat
    monkeypatch.setattr(StoreLease, "heartbeat", lambda lease: beats.append(lease.name) or heartbeat(lease))
    kept, registry = keeper.lease("x"), tracking.registry("lease x")
    keeper.lease("not taken")
    assert kept.acquire()
    assert keeper.holds_all() and not beats
    for later_s in (40.0, 0.0, 40.0):
        now_s[0] += later_s
        assert keeper.holds_all()
    assert beats == ["x", "x"]
    registry.enter("2", registry.entries()["1"])
    assert keeper.holds_all()
    now_s[0] += 40.0
    assert [keeper.holds_all() for _ in range(2)] == [False, False]
    assert beats == ["x", "x", "x"] and len(lost) == 1
    keeper.close()


def test_whether_a_lease_is_held_is_not_known_while_the_store_is_away(tracking, monkeypatch):
    lost = []
    keeper = LeaseKeeper(tracking, lost.append, heartbeat_s=60.0)
    lease = keeper.lease("x")
    assert lease.acquire()

    def away(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "read", away)
        patch.setattr(lease, "_expires_s", 0.0)
        with pytest.raises(ConnectionError):
            keeper.holds_all()
    assert keeper.holds_all() and lost == []
    keeper.close()


def test_a_keeper_gives_everything_back_when_it_closes(tracking):
    keeper = LeaseKeeper(tracking, lambda name: None)
    assert keeper.lease("x").acquire() and keeper.holds_all()
    keeper.close()
    assert StoreLease(tracking, "x").acquire() and not keeper.holds_all()


def test_a_lease_that_could_not_be_given_back_is_free_for_the_process_that_had_it(tracking, monkeypatch):
    """As in a notebook, which lives on."""
    first = StoreLease(tracking, "x", **EVERY_ASK)
    assert first.acquire()

    def away(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.tracking.registry.Registry.note", away)
        with pytest.raises(ConnectionError):
            first.release()
    assert StoreLease(tracking, "x", **EVERY_ASK).acquire()


@pytest.mark.every_store
def test_a_beat_under_way_is_over_before_the_lease_is_given_back(tracking, monkeypatch):
    """Else it would be held again, by nobody; or both notes are the first and the database refuses one."""
    lease, note, is_beating = StoreLease(tracking, "x"), Registry.note, threading.Event()

    def slow(self, name, value):
        if value != "released":
            is_beating.set()
            time.sleep(0.2)
        note(self, name, value)

    monkeypatch.setattr(Registry, "note", slow)
    assert lease.acquire()
    beating = threading.Thread(target=lease.heartbeat)
    beating.start()
    assert is_beating.wait(LIMIT_S)
    lease.release()
    beating.join()
    assert tracking.registry("lease x").read()[1]["beat.1"] == "released"


def test_a_process_that_cannot_be_seen_is_not_taken_for_dead(tracking, child, monkeypatch):
    """As with another user's, where /proc hides them."""
    process = child()
    process.tell()
    assert process.has_it()
    lease = StoreLease(tracking, "x", poll_s=0.0)
    monkeypatch.setattr("orchestrator.machine.processes.start_time", lambda pid: "")
    assert not lease.acquire()
    process.kill()
    until(lambda: not Path(f"/proc/{process.pid}").exists())  # another process buries it
    assert lease.acquire()
