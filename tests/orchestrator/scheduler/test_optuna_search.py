"""What a search draws, and what it leaves, while its database comes and goes."""

from pathlib import Path

import optuna
import pytest
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.scheduler import outage as outage
from orchestrator.scheduler.optuna_search import SearchedConditions
from orchestrator.scheduler.stop_request import StoppedError
from tests.integration.sweeps import searched

STORE = "sqlite:///optuna.db"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def search(workplace, told) -> SearchedConditions:
    return opened(told)


def opened(told: list[str]) -> SearchedConditions:
    return SearchedConditions(searched(4), "tiny", "@plain", STORE, Path("optuna.lock"), 4, told.append)


def test_what_earlier_drivers_left_is_kept_where_one_that_was_cut_off_cannot_be_told_of(search, told, monkeypatch):
    """As on a full disk: the whole ones come once it can, and the other does not stay open."""
    names = [condition.name for _ in range(2) for condition in search.more()]
    cut_off = search._study.ask()
    again = opened(told)

    def away(*_, **__):
        raise SQLAlchemyError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "tell", away)
        assert [again.more() for _ in range(2)] == [[], []]
    assert [condition.name for condition in again.more()] == names
    assert again._study.trials[cut_off.number].state.name == "FAIL"
    assert len(again.more()) == 1
    assert told == [
        "Optuna's database sqlite:///optuna.db does not answer: database or disk is full; the work that needs it waits."
    ]


def test_a_database_that_is_away_does_not_stop_a_search_at_work(search, told, monkeypatch):
    def away(*_, **__):
        raise SQLAlchemyError("gone")

    assert len(search.more()) == 1
    monkeypatch.setattr(optuna.Study, "ask", away)
    now = [0.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    for now[0] in range(0, 10_000, 100):
        assert search.more() == []
    assert len(told) == 1


def test_a_search_whose_database_does_not_come_back_is_stopped(search, told, monkeypatch):
    def away(*_, **__):
        raise SQLAlchemyError("permission denied for table trials")

    monkeypatch.setattr(optuna.Study, "ask", away)
    now = [0.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    for now[0] in range(0, int(outage.LIMIT_S) + 100, 100):
        assert search.more() == []
    assert len(told) == 1
    now[0] += 100
    with pytest.raises(StoppedError, match=r"does not answer: permission denied for table trials\.$"):
        search.more()
