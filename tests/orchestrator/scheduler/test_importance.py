"""Importance of a search's parameters, against the shares of variance that made-up objectives have in closed form."""

import dataclasses
import math
import random
from pathlib import Path

import optuna
import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.scheduler import importance as scheduler_importance
from orchestrator.scheduler.importance import importance
from orchestrator.scheduler.optuna_search import SearchedConditions, to_optuna
from orchestrator.scheduler.search_store import DECLARED, declared, read_trials
from ponderay import notebook
from search_spaces.distributions import Choice, Exponential, Integer, Real
from search_spaces.sweep import Objective, Search
from tests.integration.sweeps import tiny
from tests.integration.tiny import TinyConfig
from tests.orchestrator.made_searches import made_trials, make_search
from trainables.errors import InputError

SPACE = {"x": Real(0.1, 1.0), "sleep_s": Real(1e-4, 1e2, log=True), "first.level": Choice((0.25, 0.5, 0.75))}
METRICS = ("error", "cost")


def search(objectives, num_trials, name="tiny.search", number=0):
    make_search(objectives, num_trials, SPACE, name, number)


@pytest.fixture(autouse=True)
def few_forests(monkeypatch):
    """Twenty of 64 trees for each search, and 256 that judge them, take seconds."""
    monkeypatch.setattr(scheduler_importance, "NUM_GROUPS", 2)
    monkeypatch.setattr(scheduler_importance, "NUM_TREES", 16)
    monkeypatch.setattr(scheduler_importance, "NUM_JUDGES", 64)


def shares(search=None):
    found = importance(search or told())
    return dict(zip(found.parameters, found.shares, strict=True)), found


def trials(objectives, num_trials, space=SPACE):
    return made_trials(objectives, num_trials, space, "tiny.search")


def told(settings=None, *objectives, **changes):
    objectives = objectives or (Objective("error"), Objective("cost"))
    search = Search(SPACE, 20, sampler="random")
    sweep = tiny((), name="tiny.search", objectives=objectives, **{"search": search} | changes)
    return read_trials(sweep, settings or read_settings())


def test_an_objective_of_one_parameter_gives_it_nearly_all():
    made = trials(lambda v: (v["x"] ** 2, {0.25: 1.0, 0.5: 5.0, 0.75: 2.0}[v["first.level"]]), 40)
    by_path, found = shares(made)
    assert by_path["x"][0] > 0.95 and by_path["first.level"][1] > 0.95
    for i in range(2):
        assert sum(row[i] for row in by_path.values()) == pytest.approx(1.0)
    assert (found.objectives, found.num_trials, found.notes) == (METRICS, 40, ())
    assert shares(made)[1] == found


@pytest.mark.parametrize("factor", [1e-310, 1e308])
def test_the_size_of_an_objective_changes_no_share(factor):
    made = trials(lambda v: (factor * v["x"] ** 2, factor * (1 + 1e-15 * v["x"])), 40)
    found = importance(made)
    assert dict(zip(found.parameters, found.shares, strict=True))["x"][0] > 0.95
    assert found.notes == ("cost does not vary, so nothing matters for it.",)


def test_shares_of_a_sum_are_those_of_the_variances_in_the_scale_that_is_drawn_from():
    """Of a x + b log(s), both drawn evenly, x has the variance (a 0.9)^2 / 12 and log(s) (b log(1e6))^2 / 12."""
    a, b = 1.0, 0.9 / math.log(1e6) / 2

    def objectives(values):
        total = a * values["x"] + b * math.log(values["sleep_s"])
        return total, -3.0 * total

    expected = {"x": 0.8, "sleep_s": 0.2, "first.level": 0.0}
    by_path, _ = shares(trials(objectives, 100))
    for path, row in by_path.items():
        assert row == pytest.approx((expected[path],) * 2, abs=0.05)


def test_an_exponential_range_counts_as_it_is_drawn():
    """It is drawn by quantiles, so half of all draws lie below its median."""
    space = {"sleep_s": Exponential(0.0, 1.0), "x": Real(0.1, 1.0)}
    median = space["sleep_s"].quantile(0.5)
    made = trials(
        lambda v: (float(v["sleep_s"] < median), float(v["x"] > 0.55) + float(v["sleep_s"] < median)), 100, space
    )
    by_path, _ = shares(made)
    assert by_path["sleep_s"][0] > 0.95 and by_path["sleep_s"][1] == pytest.approx(0.5, abs=0.1)


def test_the_ends_of_a_range_of_integers_count_as_often_as_they_are_drawn(workplace):
    """Of 1 to 50 in the logarithm Optuna draws 1 with the probability log 3 / log 101, and of 1 to 3 with a third."""
    space = {"x": Real(0.1, 1.0), "num_epochs": Integer(1, 50, log=True), "first.level": Integer(1, 3)}
    drawn = optuna.create_study(directions=["minimize"] * 2, sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(100):
        trial = drawn.ask({path: to_optuna(values) for path, values in space.items()})
        steps = (
            (trial.params[path] == 1) / math.sqrt(p * (1 - p))
            for path, p in (("num_epochs", math.log(3) / math.log(101)), ("first.level", 1 / 3))
        )
        drawn.tell(trial, [trial.params["x"] * math.sqrt(12) / 0.9 + step for step in steps])
    storage = read_settings().search_store
    Path("runs").mkdir()
    kept = optuna.create_study(study_name=f"tiny.search-{0:016x}", storage=storage, directions=["minimize"] * 2)
    kept.add_trials(drawn.trials)
    by_path, _ = shares(told(search=Search(space, 20, sampler="random")))
    assert by_path["num_epochs"][0] == pytest.approx(0.5, abs=0.02)
    assert by_path["first.level"][1] == pytest.approx(0.5, abs=0.02)


def test_a_share_that_hangs_on_one_trial_has_a_wide_range(monkeypatch):
    """The error follows x, but where the logarithm of s is largest it is 1.2 more: without that trial x has all."""
    monkeypatch.setattr(scheduler_importance, "NUM_GROUPS", 20)
    made = trials(lambda v: (v["x"] + 1.2 * (v["sleep_s"] > 90.0), v["x"]), 20)
    assert sum(trial.drawn["sleep_s"] > 90.0 for trial in made.trials) == 1
    by_path, found = shares(made)
    at = found.parameters.index("x")
    low, high = found.ranges[at][0]
    assert low < 0.6 < by_path["x"][0] < 0.8 and high > 0.95 and found.num_groups == 20
    assert found.ranges[at][1][0] > 0.9, "of the other objective it has all, whatever is left out"


def test_of_noise_nothing_is_important():
    numbers = random.Random(1)
    made = trials(lambda v: (numbers.gauss(0, 1), v["x"] + 0.1 * numbers.gauss(0, 1)), 40)
    by_path, found = shares(made)
    assert {row[0] for row in by_path.values()} == {None} and by_path["x"][1] > 0.9
    assert found.explained[0] is None and 0.5 < found.explained[1] < 1
    (note,) = found.notes
    assert note.startswith("The parameters do not predict error of trials that a forest has not seen (R² = -0.")


def test_what_cannot_be_said_is_said_instead(workplace):
    by_path, found = shares()
    assert by_path == {} and found.notes == (
        f"Optuna's database {read_settings().search_store} holds no search of tiny.search.",
    )
    assert not Path("runs").exists()
    search(lambda v: None if v["x"] > 0.9 else (v["x"], math.inf if v["x"] < 0.2 else 1.0), 22)
    by_path, found = shares()
    (note,) = found.notes
    assert by_path == {} and note.startswith("Importance needs 20 complete trials, but there are ")
    assert 0 < int(note.partition("there are ")[2].partition(";")[0]) < 20


def test_an_objective_that_does_not_vary_has_no_shares():
    made = trials(lambda v: (v["x"], 7.0), 20)
    by_path, found = shares(made)
    assert {row[1] for row in by_path.values()} == {None} and by_path["x"][0] > 0.9
    assert found.notes == ("cost does not vary, so nothing matters for it.",)


def test_searches_of_other_names_or_data_are_not_mixed_in(workplace):
    search(lambda v: (v["first.level"], v["x"]), 25, name="tiny.search.smoke")
    search(lambda v: (v["first.level"], v["x"]), 21, number=1)
    search(lambda v: (v["x"], v["first.level"]), 22)
    by_path, found = shares()
    assert by_path["x"][0] > 0.9 and found.num_trials == 22
    assert found.notes == ("2 searches have this name; this is the one of most trials.",)


def test_values_are_read_as_those_of_the_objectives_that_the_search_had(workplace):
    """Of an older version's search, which does not say them, the directions have to do."""
    search(lambda v: (v["x"], v["first.level"]), 21)
    for other in ((Objective("error"),), (Objective("error"), Objective("cost", "maximize"))):
        assert "holds no search of tiny.search for error" in told(None, *other).notes[0]
    (storage, (name,)) = read_settings().search_store, optuna.get_all_study_names(read_settings().search_store)
    now = tiny((), name="tiny.search", search=Search(SPACE, 20), objectives=(Objective("a"), Objective("b")))
    optuna.load_study(study_name=name, storage=storage).set_user_attr(DECLARED, declared(now))
    assert len(told(None, *now.objectives).trials) == 21
    swapped = told(None, Objective("b"), Objective("a"))
    assert swapped.trials == () and swapped.notes[0].endswith("holds no search of tiny.search for b, a.")


def test_of_several_searches_the_one_that_is_declared_is_read(workplace):
    search(lambda v: (v["x"], v["first.level"]), 25, number=1)
    search(lambda v: (v["x"], v["first.level"]), 21, number=2)
    storage, objectives = read_settings().search_store, (Objective("error"), Objective("cost"))
    for number, base in ((1, TinyConfig(num_epochs=9)), (2, TinyConfig())):
        sweep = tiny(
            (), name="tiny.search", search=Search(SPACE, 20, sampler="random"), objectives=objectives, base=base
        )
        study = optuna.load_study(study_name=f"tiny.search-{number:016x}", storage=storage)
        study.set_user_attr(DECLARED, declared(sweep))
    assert [len(told(base=base).trials) for base in (TinyConfig(), TinyConfig(num_epochs=9))] == [21, 25]
    assert told().notes == ("2 searches have this name; this is the one that the sweep declares.",)
    assert told(base=TinyConfig(num_epochs=7)).notes == ("2 searches have this name; this is the one of most trials.",)


def test_of_very_many_trials_some_are_used(monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.importance.MOST_TRIALS", 25)
    monkeypatch.setattr("orchestrator.scheduler.importance.MOST_LEFT_OUT", 24)
    made = trials(lambda v: (v["x"], v["x"]), 40)
    by_path, found = shares(made)
    assert by_path["x"][0] > 0.9 and (found.num_trials, found.notes) == (25, ("25 of 40 trials were used.",))
    assert found.num_groups == 0 and set(found.ranges) == {(None, None)}


def test_a_database_that_is_none_or_away_is_named(workplace):
    Path("optuna.db").write_text("no database")
    settings = dataclasses.replace(read_settings(), search_uri="sqlite:///optuna.db")
    (note,) = told(settings).notes
    assert note == "Optuna's database sqlite:///optuna.db cannot be read: file is not a database"
    uri = "postgresql+psycopg2://me:sesame@127.0.0.1:9/optuna"
    (note,) = told(dataclasses.replace(settings, search_uri=uri)).notes
    assert "cannot be read" in note and "sesame" not in note


def test_a_notebook_asks_by_name_or_with_the_sweep(workplace):
    """Of trials that a driver would draw and tell."""
    sweep = tiny((), name="tiny.search", search=Search(SPACE, 20, sampler="random"))
    Path("runs").mkdir()
    source = SearchedConditions(sweep, "tiny", "", read_settings().search_store, Path("runs/optuna.lock"), 1, print)
    for _ in range(20):
        (condition,) = source.more()
        source.tell(condition, dict.fromkeys(METRICS, condition.values["x"]))
    by_path, found = shares(told(None, *sweep.objectives))
    assert by_path["x"] == pytest.approx((1.0, 1.0), abs=0.05)
    assert notebook.importance(sweep) == found
    assert notebook.importance("lm.search").objectives and not notebook.importance("lm.search").parameters
    with pytest.raises(InputError, match=r"asr\.demo must be a search to have parameters"):
        notebook.importance("asr.demo")
