"""The one loop that waits."""

import pytest

from orchestrator.machine import waiting
from orchestrator.machine.waiting import wait_until


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that were made, by a clock that only they move."""
    made: list[float] = []
    monkeypatch.setattr(waiting.time, "monotonic", lambda: sum(made))
    monkeypatch.setattr(waiting.time, "sleep", made.append)
    return made


def test_the_first_true_answer_ends_it(pauses):
    answers = iter(["", 0, "found", "later"])
    assert wait_until(lambda: next(answers), 10.0, 1.0) == "found"
    assert pauses == [1.0, 1.0]


def test_at_the_limit_the_last_answer_counts(pauses):
    assert wait_until(lambda: [], 2.0, 0.5) == []
    assert pauses == [0.5] * 4


def test_what_is_so_already_is_not_waited_for(pauses):
    assert wait_until(lambda: True, 0.0) is True
    assert pauses == []
