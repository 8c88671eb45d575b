"""What a search draws, and what it leaves, while its database comes and goes."""

import math
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.scheduler.optuna_search import SearchedConditions
from orchestrator.scheduler.pruning import decision_on
from orchestrator.scheduler.stop_request import LIMIT_S, Outage, StoppedError
from search_spaces.distributions import Choice, Integer, Real
from search_spaces.halving import Halving
from search_spaces.sweep import Condition, Constraint, Objective, Search
from tests.integration.sweeps import searched

STORE = "sqlite:///optuna.db"
BETTER_BY_BOTH = (Objective("error"), Objective("cost", "maximize"))


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


@pytest.mark.parametrize("space", [{"x": Choice((0.5,))}, {"sleep_s": Real(0.0, 1.0)}], ids=["values", "keys"])
def test_of_equal_draws_one_is_open_at_a_time(workplace, told, space):
    """They are the same work; together one of them would never end."""
    sweep = replace(searched(3), search=Search(space, num_trials=3, sampler="random"))

    def opened() -> SearchedConditions:
        return SearchedConditions(sweep, "tiny", "@plain", STORE, Path("optuna.lock"), 2, told.append)

    search = opened()
    (first,) = search.more()
    assert [search.more() for _ in range(3)] == [[], [], []] and search.num_undrawn() == 2
    search.tell(first, {"error": 0.5, "cost": 1.0})
    (second,) = search.more()
    assert (second.values == first.values) == ("x" in space) and second.name != first.name and not search.is_exhausted()
    again = opened()
    assert [one.name for one in again.more()] == [first.name], "first as complete, and then what was open"
    again.tell(first, {"error": 0.5, "cost": 1.0})
    assert [one.name for one in again.more()] == [second.name]
    again.tell(second, None)
    (third,) = again.more()
    assert again.is_exhausted() and again.num_undrawn() == 0 and third.name.startswith("0002")


def test_a_grid_has_each_point_once_also_where_a_driver_was_killed_while_it_drew(workplace, told, monkeypatch):
    space = {"x": Choice((0.25, 0.5)), "num_epochs": Integer(3, 4)}
    sweep = replace(searched(4), search=Search(space, num_trials=100, sampler="grid"))

    def opened() -> SearchedConditions:
        return SearchedConditions(sweep, "tiny", "@plain", STORE, Path("optuna.lock"), 4, told.append)

    (first,) = opened().more()
    killed, suggest = opened(), optuna.trial.Trial._suggest
    killed.more()

    def killing(self, name, distribution):
        if name == "num_epochs":
            raise KeyboardInterrupt
        return suggest(self, name, distribution)

    with monkeypatch.context() as patch:
        patch.setattr(optuna.trial.Trial, "_suggest", killing)
        with pytest.raises(KeyboardInterrupt):
            killed.more()
    again = opened()
    found = [condition for _ in range(8) for condition in again.more()]
    assert found[0] == first and again.is_exhausted()
    points = sorted(tuple(condition.values.values()) for condition in found)
    assert points == [(0.25, 3), (0.25, 4), (0.5, 3), (0.5, 4)]


def test_a_database_that_is_away_does_not_stop_a_search_at_work(search, told, monkeypatch):
    def away(*_, **__):
        raise SQLAlchemyError("gone")

    assert len(search.more()) == 1
    monkeypatch.setattr(optuna.Study, "ask", away)
    now = [0.0]
    search._outage = Outage(told.append, lambda: now[0])
    for now[0] in range(0, 10_000, 100):
        assert search.more() == []
    assert len(told) == 1


def test_a_search_whose_database_does_not_come_back_is_stopped(search, told, monkeypatch):
    def away(*_, **__):
        raise SQLAlchemyError("permission denied for table trials")

    monkeypatch.setattr(optuna.Study, "ask", away)
    now = [0.0]
    search._outage = Outage(told.append, lambda: now[0])
    for now[0] in range(0, int(LIMIT_S) + 100, 100):
        assert search.more() == []
    assert len(told) == 1
    now[0] += 100
    with pytest.raises(StoppedError, match=r"does not answer: permission denied for table trials\.$"):
        search.more()


def opened_pruned(told: list[str], objectives=BETTER_BY_BOTH, constraints=(), pruned=True) -> SearchedConditions:
    sweep = searched(4, objectives=objectives, seeds=(1, 2, 3))
    search = replace(sweep.search, pruned=pruned, constraints=constraints)
    return SearchedConditions(
        replace(sweep, search=search), "tiny", "@plain", STORE, Path("optuna.lock"), 4, told.append
    )


def values(error: float, cost: float) -> dict[str, float]:
    return {"error@plain": error, "cost@plain": cost}


def test_only_a_whole_condition_that_is_nowhere_worse_and_somewhere_better_prunes(workplace, told):
    """Error is to be small, cost to be large."""
    search = opened_pruned(told)
    (whole,), (early,), (worse,), (other,) = (search.more() for _ in range(4))
    assert search.decided(early) == "" and search.decide(early, values(9.0, 0.1), False) == "kept"
    assert search.decide(whole, values(0.5, 0.5), False) == "kept"
    search.tell(whole, values(0.5, 0.5))
    for not_worse in (values(0.5, 0.5), values(0.4, 0.1), values(0.9, 0.6), values(math.nan, 0.1)):
        assert decided_anew(search, not_worse) == "kept"
    said = f"pruned: {whole.name} is no worse in every objective and better in one"
    assert decided_anew(search, values(0.5, 0.4)) == decided_anew(search, values(0.6, 0.5)) == said
    assert search.decide(worse, values(0.6, 0.4), False) == said
    search.tell(worse, values(0.1, 0.9))  # one seed alone, however good
    assert search.decide(other, values(0.2, 0.8), False) == "kept"


def decided_anew(search, first) -> str:
    """What would be decided, nothing of it stored."""
    return decision_on(search._row(first), search._whole)


def test_what_is_better_by_rounding_only_prunes_nothing():
    """.1 * 3 is more than .3 by 6e-17."""
    assert decision_on([0.1 * 3, 1.0], {"whole": [0.3, 1.0]}) == "kept"
    assert decision_on([0.3, 1.0], {"whole": [0.1 * 3, 0.9]}).startswith("pruned")


def test_a_decision_is_made_once_and_a_restart_finds_it(workplace, told):
    search = opened_pruned(told)
    (whole,), (worse,), (open_one,) = (search.more() for _ in range(3))
    search.decide(whole, values(0.5, 0.5), False)
    search.tell(whole, values(0.5, 0.5))
    pruned = search.decide(worse, values(0.6, 0.4), False)
    assert search.decide(worse, values(0.1, 0.9), False) == pruned
    again = opened_pruned(told)
    found = again.more()
    assert [again.decided(condition) for condition in found] == ["kept", pruned, ""]
    assert again.decide(worse, values(0.1, 0.9), False) == pruned
    again.tell(whole, values(0.5, 0.5))
    assert again.decide(open_one, values(0.6, 0.4), True) == "kept"  # for others of its seeds have begun
    assert opened_pruned(told, pruned=False).more() and told == []
    unpruned = opened_pruned(told, pruned=False)
    unpruned.more()
    assert unpruned.decided(worse) == pruned


def test_a_condition_told_of_as_failed_that_was_mended_gets_all_its_seeds(workplace, told):
    search = opened_pruned(told)
    (whole,), (failed,) = (search.more() for _ in range(2))
    search.decide(whole, values(0.5, 0.5), False)
    search.tell(whole, values(0.5, 0.5))
    search.tell(failed, None)
    again = opened_pruned(told)
    again.more()
    again.tell(whole, values(0.5, 0.5))
    assert again.decided(failed) == "" and again.decide(failed, values(0.6, 0.4), False) == "kept"


def test_by_how_much_a_constraint_is_missed_counts_as_an_objective(workplace, told):
    search = opened_pruned(told, constraints=(Constraint("cost", 0.5),))
    (dear,), (_,) = search.more(), search.more()
    search.decide(dear, values(0.1, 0.8), False)
    search.tell(dear, values(0.1, 0.8))
    assert decided_anew(search, values(0.9, 0.4)) == "kept"
    assert decided_anew(search, values(0.9, 0.7)) == "kept"
    assert decided_anew(search, values(0.9, 0.8)).startswith(f"pruned: {dear.name} ")


def test_a_constraint_that_is_no_number_fails_its_trial_and_the_search_goes_on(workplace, told):
    sweep = replace(searched(4), search=replace(searched(4).search, constraints=(Constraint("rate", 0.5),)))

    def again():
        return SearchedConditions(sweep, "tiny", "@plain", STORE, Path("optuna.lock"), 4, told.append)

    search = again()
    (first,), (second,) = search.more(), search.more()
    search.tell(first, values(0.5, 0.5) | {"rate": math.nan})
    search.tell(second, values(0.5, 0.5) | {"rate": 0.1})
    assert [trial.state.name for trial in search._study.trials] == ["FAIL", "COMPLETE"]
    assert [one.name for one in again().more()] == [first.name, second.name]


def test_a_decision_waits_while_the_database_is_away_and_stops_a_search_that_has_nothing_else(
    workplace, told, monkeypatch
):
    search = opened_pruned(told)
    (whole,), (first,) = (search.more() for _ in range(2))

    def away(*_, **__):
        raise SQLAlchemyError("gone")

    now = [0.0]
    search._outage = Outage(told.append, lambda: now[0])
    with monkeypatch.context() as patch:
        patch.setattr(optuna.trial.Trial, "set_user_attr", away)
        for now[0] in range(0, 10_000, 100):  # the other one is still at work
            assert search.decide(first, values(0.5, 0.5), False) == ""
        with pytest.raises(StoppedError, match="does not answer: gone"):
            search.decide(whole, values(0.5, 0.5), False)
    assert len(told) == 1
    assert search.decided(first) == "" and search.decide(first, values(0.5, 0.5), False) == "kept"


def test_values_at_a_rung_are_held_against_those_of_the_same_metric_alone(workplace, told):
    """A search goes on where it is to stop by another metric, and by none that grows where the first had to fall."""

    def judged(halving: Halving, num_trials: int, curve: list[float]) -> list[str]:
        sweep = replace(searched(num_trials), search=replace(searched(num_trials).search, halving=halving))
        search = SearchedConditions(sweep, "tiny", "@plain", STORE, Path("optuna.lock"), 9, told.append)
        while len(found := [*search._numbers]) < num_trials:
            search.more()
        return [
            search.halve(Condition(name), rung, 90)
            for name, value in zip(found[-len(curve) :], curve, strict=True)
            for rung in halving.reached({10: value}, 90)
        ]

    loss, accuracy = Halving("loss", first=10), Halving("accuracy", first=10, direction="maximize")
    assert judged(loss, 3, [2.3, 2.1, 2.0]) == [""] * 3
    *first, last = judged(accuracy, 7, [0.5, 0.9, 0.95, 0.7])
    assert first == [""] * 3 and last.endswith("accuracy 0.7 is not among the best 1 of 4")
    (last,) = judged(loss, 8, [2.2])
    assert last.endswith("loss 2.2 is not among the best 1 of 4")


def test_pruning_is_no_part_of_a_studys_name(workplace, told):
    """So that a search of earlier versions goes on, and one that is to prune from now on too."""
    names = {opened_pruned(told, pruned=pruned)._study.study_name for pruned in (False, True)}
    assert len(names) == 1
