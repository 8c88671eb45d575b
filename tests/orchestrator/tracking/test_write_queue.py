"""The spool: order, one write for many changes, and patience while the store is away."""

import threading
import time

import pytest

from orchestrator.tracking.write_queue import Spool
from tests.waiting import until
from trainables.errors import InputError


class AwayError(Exception):
    pass


@pytest.fixture
def told():
    return []


@pytest.fixture
def spool(told, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.02,))
    spool = Spool(lambda error: isinstance(error, AwayError), told.append)
    yield spool
    spool.close()


def test_jobs_are_done_in_order_and_the_last_of_a_name_only(spool):
    done, gate = [], threading.Event()
    spool.put("gate", gate.wait)
    for number in range(5):
        spool.put("same", lambda number=number: done.append(("same", number)))
        spool.put(number, lambda number=number: done.append(number))
    gate.set()
    assert spool.drain(5) == 0
    assert done == [0, 1, 2, 3, ("same", 4), 4]


def test_while_the_store_is_away_everything_waits_and_nothing_is_lost(spool, told):
    done, is_back = [], threading.Event()

    def write(name):
        if not is_back.is_set():
            raise AwayError("no answer of http://me:hunter2@lab:5000\nand a long story")
        done.append(name)

    for name in "abc":
        spool.put(name, lambda name=name: write(name))
    until(lambda: spool.is_away)
    assert spool.drain(0.1) == 3 and not done
    is_back.set()
    assert spool.drain(5) == 0
    assert done == ["a", "b", "c"]
    assert not spool.is_away
    assert told[0].endswith(" meanwhile (no answer of http://me:***@lab:5000).")
    assert [text.split(" (")[0][:30] for text in told] == [
        "The tracking store is away; wh",
        "The tracking store is back aft",
    ]
    assert "story" not in told[0]


def test_after_an_absence_what_others_may_have_written_since_is_dropped(told, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.02,))
    done, is_back, asked = [], threading.Event(), []

    def may_write() -> bool:
        asked.append(is_back.is_set())
        if len(asked) > 2 and not is_back.is_set():
            raise AwayError("neither does the lease answer")
        return not is_back.is_set()

    def write(name: str) -> None:
        if asked[1:]:
            raise AwayError("connection refused")
        done.append(name)

    spool = Spool(lambda error: isinstance(error, AwayError), told.append, may_write)
    spool.put("before", lambda: write("before"))
    assert spool.drain(5) == 0
    for name in "abc":
        spool.put(name, lambda name=name: write(name))
    until(lambda: len(asked) > 3)
    assert spool.drain(0.1) == 3 and len(told) == 1
    is_back.set()
    assert spool.drain(5) == 0
    spool.put("d", lambda: write("d"))
    assert spool.drain(5) == 0
    assert done == ["before"]
    spool.close()


def test_a_write_refused_because_another_writes_by_now_is_dropped(told):
    """A machine that slept through its lease, in the middle of a write."""
    is_ours, done = [True], []

    def refused() -> None:
        is_ours[0] = False
        raise ValueError("The run was deleted")

    spool = Spool(lambda error: isinstance(error, AwayError), told.append, lambda: is_ours[0])
    spool.put("x", refused)
    spool.put("y", lambda: done.append("y"))
    assert spool.drain(5) == 0
    spool.put("z", lambda: done.append("z"))
    assert spool.drain(5) == 0 and not done
    spool.close()


def test_what_is_wrong_for_good_is_raised_to_whoever_writes_next(spool):
    def broken():
        raise ValueError("no such experiment")

    spool.put("x", broken)
    with pytest.raises(InputError, match="refuses a write: no such experiment"):
        spool.drain(5)
    with pytest.raises(InputError, match="refuses a write: no such experiment"):
        spool.put("y", broken)


def test_closing_ends_a_wait_for_a_store_that_does_not_come_back(told):
    spool = Spool(lambda error: True, told.append)

    def write():
        raise AwayError

    spool.put("x", write)
    assert spool.drain(0.3) == 1
    began = time.monotonic()
    spool.close()
    assert time.monotonic() - began < 2
