"""How a task ends whose journal does not say all, and when it is tried again."""

import time
from pathlib import Path

import pytest

from orchestrator.journal.lines import Record
from orchestrator.scheduler.task import MAX_TRIES, WAITS_S, Task
from tests.orchestrator.scheduler.parts import parts

FAILED = {"kind": "state", "attempt": "driver.1", "state": "failed", "error": "ZeroDivisionError: said"}
COMPLETE = {"kind": "state", "attempt": "driver.1", "state": "complete"}


def end_without_journal(folder: Path, last: Record, lost: str, lost_because: str = "") -> Task:
    """A task whose worker has reported `last`, of which its journal has nothing."""
    made = parts(folder, {"a": {}}, seeds=(1,))
    task = made.start()
    if last:
        made.scheduler.reported(task.work.key, last)
    task.lost_because = lost_because
    task.num_excused = 1 - MAX_TRIES  # its last try
    made.scheduler.ended(task.work.key, lost)
    return task


@pytest.mark.parametrize(
    ("last", "lost", "error"),
    [
        (FAILED, "", "ZeroDivisionError: said"),
        (COMPLETE, "", "it reported to be complete, but its journal is not in {folder}"),
        (COMPLETE, "its worker was lost", "its worker was lost"),
        ({**FAILED, "attempt": "driver.0"}, "", "ended without a result"),
        ({}, "its worker was lost", "its worker was lost"),
    ],
)
def test_only_a_failure_is_believed_without_a_journal(tmp_path, last, lost, error):
    task = end_without_journal(tmp_path, last, lost)
    assert (task.state, task.error) == ("failed", error.format(folder=task.work.folder))
    assert task.is_lost is (error != "ZeroDivisionError: said")


def test_what_was_ended_for_its_silence_says_so(tmp_path):
    silent = "it reported nothing for 2 s"
    assert end_without_journal(tmp_path, {}, "killed", silent).error == silent


def test_a_lost_worker_is_tried_again_after_a_while_and_not_for_ever(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    for tries in range(1, MAX_TRIES):
        before_s = time.monotonic()
        made.lose(task)
        assert (task.state, task.tries, task.work.attempt) == ("waiting", tries, f"driver.{tries}")
        assert task.not_before_s >= before_s + WAITS_S[tries]
        assert made.scheduler.next() is None and not made.scheduler.is_finished()
        task.not_before_s = 0.0
        assert made.start() is task
    made.source.is_exhausted = lambda: False  # it would give more, which is now for another run
    made.lose(task, "its worker was lost again")
    assert (task.state, task.is_lost, task.error) == ("failed", True, "its worker was lost again")
    assert made.scheduler.is_finished() and made.scheduler.next() is None
    assert [call[2:] for call in made.view.named("retry")] == [(n, MAX_TRIES) for n in range(1, MAX_TRIES)]
    assert len(made.recorder.named("end")) == 1


def test_one_that_waits_for_its_next_try_holds_up_no_other(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1, 2))
    both = [made.start(), made.start()]
    for task in both:
        made.lose(task)
    both[1].not_before_s = 0.0
    assert made.start() is both[1] and made.scheduler.next() is None


@pytest.mark.parametrize(
    "final", [{"error": "ZeroDivisionError"}, {"error": "no such file", "is_input_error": True, "is_lost": True}]
)
def test_a_fault_of_its_own_is_not_tried_again(tmp_path, final):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    made.end(task, state="failed", **final)
    assert (task.state, task.tries) == ("failed", 1)
    assert made.scheduler.input_errors == ([final["error"]] if "is_input_error" in final else [])
    assert not made.view.named("retry")


def test_what_was_lost_with_the_whole_cluster_counts_against_no_replicate(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    for tries in range(2, 2 * MAX_TRIES):
        made.scheduler.lose_all("the cluster that ran it was lost")
        assert (task.state, task.counted_tries) == ("waiting", 0)
        task.not_before_s = 0.0
        assert made.start() is task
        assert task.work.attempt == f"driver.{tries}"
    assert not made.view.named("retry")
    made.lose(task)
    assert made.view.named("retry") == [(task.work.key, "its worker was lost", 1, MAX_TRIES)]
