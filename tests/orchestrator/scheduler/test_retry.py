"""How a task ends whose journal does not say all, and when it is tried again."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.journal.summary import JournalSummary
from orchestrator.scheduler.retry import MAX_TRIES, WAITS_S, unwritten
from tests.orchestrator.scheduler.parts import lost, parts

FAILED = {"attempt": "driver.1", "state": "failed", "error": "ZeroDivisionError: said"}
COMPLETE = {"attempt": "driver.1", "state": "complete"}


def task(last, lost_because=""):
    work = SimpleNamespace(attempt="driver.1", folder=Path("runs/replicates/sweep/0123"))
    return SimpleNamespace(work=work, last=last, lost_because=lost_because, summary=JournalSummary())


@pytest.mark.parametrize(
    ("last", "lost", "error"),
    [
        (FAILED, "", "ZeroDivisionError: said"),
        (COMPLETE, "", "it reported to be complete, but its journal is not in runs/replicates/sweep/0123"),
        (COMPLETE, "its worker was lost", "its worker was lost"),
        ({**FAILED, "attempt": "driver.0"}, "", "ended without a result"),
        ({}, "its worker was lost", "its worker was lost"),
    ],
)
def test_only_a_failure_is_believed_without_a_journal(last, lost, error):
    final = unwritten(task(last), lost)
    assert (final["state"], final["error"]) == ("failed", error)
    assert final.get("is_lost", False) is (error != "ZeroDivisionError: said")


def test_what_was_ended_for_its_silence_says_so():
    assert unwritten(task({}, "it reported nothing for 2 s"), "killed")["error"] == "it reported nothing for 2 s"


def test_a_lost_worker_is_tried_again_after_a_while_and_not_for_ever(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    for tries in range(1, MAX_TRIES):
        before_s = time.monotonic()
        made.end(task, **lost())
        assert (task.state, task.tries, task.work.attempt) == ("waiting", tries, f"driver.{tries}")
        assert task.not_before_s >= before_s + WAITS_S[tries]
        assert made.scheduler.next() is None and not made.scheduler.is_finished()
        task.not_before_s = 0.0
        assert made.start() is task
    made.end(task, **lost("its worker was lost again"))
    assert (task.state, task.is_lost, task.error) == ("failed", True, "its worker was lost again")
    assert made.runs.is_stalled and made.scheduler.is_finished()
    assert [call[2:] for call in made.view.named("retry")] == [(n, MAX_TRIES) for n in range(1, MAX_TRIES)]
    assert len(made.recorder.named("end")) == 1


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
    made.end(task, **lost())
    assert made.view.named("retry") == [(task.work.key, "its worker was lost", 1, MAX_TRIES)]
