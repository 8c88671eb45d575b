"""What a search draws, and what it leaves, while its database comes and goes."""

from pathlib import Path

import optuna
import pytest
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.search import SearchedConditions
from tests.integration.sweeps import searched

STORE = "sqlite:///optuna.db"


@pytest.fixture
def search(workplace) -> SearchedConditions:
    return opened()


def opened() -> SearchedConditions:
    return SearchedConditions(searched(4), "tiny", "@plain", STORE, Path("optuna.lock"), max_open=4)


def test_what_earlier_drivers_left_is_kept_where_one_that_was_cut_off_cannot_be_told_of(search, monkeypatch):
    """As on a full disk: the whole ones come once it can, and the other does not stay open."""
    names = [condition.name for _ in range(2) for condition in search.more()]
    cut_off = search._study.ask()
    again = opened()

    def away(*_, **__):
        raise SQLAlchemyError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "tell", away)
        assert [again.more() for _ in range(2)] == [[], []]
    assert [condition.name for condition in again.more()] == names
    assert again._study.trials[cut_off.number].state.name == "FAIL"
    assert len(again.more()) == 1
