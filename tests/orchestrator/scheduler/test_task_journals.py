"""What a driver makes of journals that do not say all."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.scheduler.task_journals import unwritten

FAILED = {"attempt": "driver.1", "state": "failed", "error": "ZeroDivisionError: said"}
COMPLETE = {"attempt": "driver.1", "state": "complete"}


def task(last, lost_because=""):
    work = SimpleNamespace(attempt="driver.1", folder=Path("runs/replicates/sweep/0123"))
    return SimpleNamespace(work=work, last=last, lost_because=lost_because)


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
