"""The queue: order, one write for many changes, and patience while the store is away."""

import errno
import threading

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST

from orchestrator.journal.bucket import UnavailableError
from orchestrator.tracking.write_queue import WriteQueue
from tests.waiting import until
from trainables.errors import InputError


def refusal(text):
    """What MLflow raises where it will not write."""
    return MlflowException(text, RESOURCE_DOES_NOT_EXIST)


@pytest.fixture
def told():
    return []


@pytest.fixture
def queue(told, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.02,))
    queue = WriteQueue(told.append)
    yield queue
    queue.close()


def test_jobs_are_done_in_order_and_the_last_of_a_name_only(queue):
    done, gate = [], threading.Event()
    queue.put("gate", gate.wait)
    for number in range(5):
        queue.put("same", lambda number=number: done.append(("same", number)))
        queue.put(number, lambda number=number: done.append(number))
    gate.set()
    assert queue.drain(5) == 0
    assert done == [0, 1, 2, 3, ("same", 4), 4]


def test_a_job_may_keep_the_place_of_the_one_that_it_replaces(queue):
    done, gate = [], threading.Event()
    queue.put("gate", gate.wait)
    for number in range(3):
        queue.put("same", lambda number=number: done.append(("same", number)), keeps_place=True)
        queue.put(number, lambda number=number: done.append(number))
    gate.set()
    assert queue.drain(5) == 0
    assert done == [("same", 2), 0, 1, 2]


def test_while_the_store_is_away_everything_waits_and_nothing_is_lost(queue, told):
    done, is_back = [], threading.Event()

    def write(name):
        if not is_back.is_set():
            raise ConnectionError("no answer of http://me:hunter2@lab:5000\nand a long story")
        done.append(name)

    for name in "abc":
        queue.put(name, lambda name=name: write(name))
    until(lambda: told)
    assert queue.drain(0.1) == 3 and not done
    is_back.set()
    assert queue.drain(5) == 0
    assert done == ["a", "b", "c"]
    assert told[0].endswith(" keep all results (no answer of http://me:***@lab:5000).")
    assert [text.partition(";")[0].partition(" after")[0] for text in told] == [
        "The tracking store is unavailable",
        "The tracking store is available again",
    ]
    assert "story" not in told[0]


@pytest.mark.parametrize(
    ("error", "away", "back"),
    [
        (UnavailableError("s3://lab"), "The bucket is unavailable; meanwhile the journals keep", "The bucket is"),
        (OSError(errno.EIO, "Input/output error"), "A disk is unavailable; writing is tried again", "A disk is"),
        (PermissionError(errno.EACCES, "no", "journal.jsonl"), "A disk is unavailable; writing is", "A disk is"),
        (ConnectionError("refused"), "The tracking store is unavailable; meanwhile", "The tracking store is"),
    ],
)
def test_it_is_said_what_is_away_and_what_is_back(queue, told, error, away, back):
    tries = []

    def write():
        tries.append(1)
        if len(tries) < 3:
            raise error

    queue.put("a", write)
    assert queue.drain(5) == 0
    assert told[0].startswith(away) and told[1].startswith(f"{back} available again after ")


def test_after_an_absence_what_others_may_have_written_since_is_dropped(told, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.02,))
    done, is_back, asked = [], threading.Event(), []

    def may_write() -> bool:
        asked.append(is_back.is_set())
        if len(asked) > 2 and not is_back.is_set():
            raise ConnectionError("neither does the lease answer")
        return not is_back.is_set()

    def write(name: str) -> None:
        if asked[1:]:
            raise ConnectionError("connection refused")
        done.append(name)

    queue = WriteQueue(told.append, may_write)
    queue.put("before", lambda: write("before"))
    assert queue.drain(5) == 0
    for name in "abc":
        queue.put(name, lambda name=name: write(name))
    until(lambda: len(asked) > 3)
    assert queue.drain(0.1) == 3 and len(told) == 1
    is_back.set()
    assert queue.drain(5) == 0
    queue.put("d", lambda: write("d"))
    assert queue.drain(5) == 0
    assert done == ["before"]
    queue.close()


def test_a_write_refused_because_another_writes_by_now_is_dropped(told):
    """A machine that slept through its lease, in the middle of a write."""
    is_ours, done = [True], []

    def refused() -> None:
        is_ours[0] = False
        raise refusal("The run was deleted")

    queue = WriteQueue(told.append, lambda: is_ours[0])
    queue.put("x", refused)
    queue.put("y", lambda: done.append("y"))
    assert queue.drain(5) == 0
    queue.put("z", lambda: done.append("z"))
    assert queue.drain(5) == 0 and not done
    queue.close()


def test_what_is_wrong_for_good_is_raised_to_whoever_writes_next(queue):
    def broken():
        raise refusal("no such experiment")

    queue.put("x", broken)
    with pytest.raises(InputError, match="refuses a write: no such experiment"):
        queue.drain(5)
    with pytest.raises(InputError, match="refuses a write: no such experiment"):
        queue.put("y", broken)


@pytest.mark.parametrize("error", [OverflowError("intermediate overflow in fsum"), ValueError("no"), KeyError("loss")])
def test_an_error_of_ours_is_not_called_the_stores(queue, error):
    def broken():
        raise error

    queue.put("x", broken)
    with pytest.raises(type(error)) as raised:
        queue.drain(5)
    assert raised.value is error


def test_closing_ends_a_wait_for_a_store_that_does_not_come_back(told, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (3600.0,))
    queue = WriteQueue(told.append)

    def write():
        raise ConnectionError

    queue.put("x", write)
    assert queue.drain(0.3) == 1
    queue.close()
    assert not queue._thread.is_alive()


def test_it_is_said_what_the_store_lacks_and_not_what_sqlalchemy_was_about(queue, told):
    from sqlalchemy.exc import OperationalError

    full = OperationalError("INSERT", {}, Exception("database or disk is full"))
    full.add_detail("raised as a result of Query-invoked autoflush; consider using a session.no_autoflush block")
    is_back = threading.Event()

    def write():
        if not is_back.is_set():
            raise full

    queue.put("a", write)
    until(lambda: told)
    is_back.set()
    assert told[0].endswith(" keep all results ((builtins.Exception) database or disk is full).")


def test_one_failure_in_ten_holds_up_no_other_job(queue):
    done, calls = [], []

    def flaky(number):
        calls.append(number)
        if len(calls) % 10 == 0:
            raise ConnectionError("connection refused")
        done.append(number)

    with queue._changed:
        for number in range(200):
            queue.put(number, lambda number=number: flaky(number))
    assert queue.drain(20) == 0
    assert sorted(set(done)) == list(range(200)) and len(calls) < 500


def test_a_write_that_another_process_came_before_is_tried_once_more(queue):
    tries = []

    def entered():
        tries.append(1)
        if len(tries) == 1:
            raise refusal("UNIQUE constraint failed")

    queue.put("a", entered)
    assert queue.drain(5) == 0 and len(tries) == 2


def test_the_job_that_is_refused_keeps_no_other_from_being_done(queue):
    done, gate = [], threading.Event()

    def refused():
        raise refusal("no such run")

    queue.put("gate", gate.wait)
    queue.put("a", lambda: done.append("a"))
    queue.put("b", refused)
    queue.put("c", lambda: done.append("c"))
    gate.set()
    with pytest.raises(InputError, match="no such run"):
        queue.drain(5)
    until(lambda: done == ["a", "c"])
