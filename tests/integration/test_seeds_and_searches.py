"""Seeds by need, samplers and constraints, on the tiny trainable without Ray."""

import optuna
import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from search_spaces.distributions import Choice, Integer, Real
from search_spaces.sweep import Constraint, Search, Sequential
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import starts


def by_need(**changes):
    """Its error falls with x: "far" differs much from "low", "near" hardly."""
    conditions = {"low": {"x": 0.1}, "near": {"x": 0.11}, "far": {"x": 1.0}}
    return tiny(conditions, seeds=tuple(range(1, 8)), sequential=Sequential(minimum=3), reference="low", **changes)


def numbers(study) -> dict[str, int]:
    return {name: len(study.of(name)) for name in study.conditions}


def test_only_undecided_conditions_get_more_seeds_and_go_on_where_a_driver_was_stopped(workplace):
    run_quietly(by_need())
    study = Tracking(read_settings()).read_study("tiny.sweep")
    assert numbers(study)["near"] == numbers(study)["low"] == 7
    assert 3 <= numbers(study)["far"] < 7
    experiment = Tracking(read_settings()).find_experiment("tiny.sweep").experiment_id
    client = Tracking(read_settings())._client
    runs = client.search_runs([experiment], "tags.`ponderay.kind` = 'condition'")
    decisions = {run.info.run_name: run.data.tags["ponderay.decision"] for run in runs}
    assert decisions["far"].startswith("lower than low (p = ")
    assert (decisions["near"], decisions["low"]) == ("undecided", "reference")
    assert {run.data.metrics["error/plain.n"] for run in runs} == {7.0, float(numbers(study)["far"])}
    before = starts()
    run_quietly(by_need())
    assert starts() == before
    stopped = by_need(name="tiny.stopped")
    run_quietly(stopped.only("near", 1))
    run_quietly(stopped.only("far", 2))
    run_quietly(stopped)
    found = Tracking(read_settings()).read_study("tiny.stopped")
    assert numbers(found) == numbers(study)
    for name in study.conditions:
        assert found.values(name, "error@plain") == study.values(name, "error@plain")


def drawn(search: Search, **changes):
    sweep = tiny((), name="tiny.search", search=search, seeds=(1,), **changes)
    outcome = run_quietly(sweep)
    storage = read_settings().search_store
    names = optuna.get_all_study_names(storage)
    trials = [trial for name in names for trial in optuna.load_study(study_name=name, storage=storage).trials]
    assert {r.state for r in outcome.replicates} == {"complete"}
    return trials


@pytest.mark.parametrize("sampler", ["random", "qmc", "tpe", "nsga2", "gp"])
def test_every_sampler_draws_other_points_and_hears_of_them(workplace, sampler):
    number = 12 if sampler in ("tpe", "gp") else 4  # the first ten of these two are random
    trials = drawn(Search({"x": Real(0.1, 1.0)}, num_trials=number, sampler=sampler))
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * number
    assert len({trial.params["x"] for trial in trials}) == number


def test_a_grid_draws_each_point_once_and_ends(workplace):
    space = {"x": Choice((0.25, 0.5)), "num_epochs": Integer(1, 3)}
    trials = drawn(Search(space, num_trials=100, sampler="grid"))
    points = {(trial.params["x"], trial.params["num_epochs"]) for trial in trials}
    assert points == {(x, n) for x in (0.25, 0.5) for n in (1, 2, 3)}
    assert len(trials) == 6


def test_a_grid_lists_no_real_numbers():
    with pytest.raises(ValueError, match="list its values as a Choice"):
        tiny((), search=Search({"x": Real(0.1, 1.0)}, num_trials=3, sampler="grid"))


def test_optuna_hears_how_far_a_constraint_is_missed(workplace):
    search = Search({"x": Real(0.1, 1.0)}, num_trials=8, constraints=(Constraint("cost", 0.5),))
    trials = drawn(search)
    for trial in trials:
        assert trial.constraints["cost"] == pytest.approx(trial.params["x"] - 0.5)
    kept = sum(trial.params["x"] <= 0.5 for trial in trials)
    assert 0 < kept < 8
    storage = read_settings().search_store
    (name,) = optuna.get_all_study_names(storage)
    best = optuna.load_study(study_name=name, storage=storage).best_trials
    assert best and all(trial.params["x"] <= 0.5 for trial in best)


def test_results_that_only_the_journals_hold_are_told_as_means_over_all_seeds(workplace, monkeypatch):
    """As when a driver died before it could write or tell anything."""
    sweep = tiny((), name="tiny.search", search=Search({"x": Real(0.1, 1.0)}, num_trials=3))
    with monkeypatch.context() as patch:
        patch.setattr(
            "orchestrator.scheduler.optuna_search.SearchedConditions.tell",
            lambda self, c, *_: self._open.pop(c.name),
        )
        outcome = run_quietly(sweep)
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{workplace}/runs/another.db")
    before = starts()
    run_quietly(sweep)
    assert starts() == before
    storage = read_settings().search_store
    (name,) = optuna.get_all_study_names(storage)
    for trial in optuna.load_study(study_name=name, storage=storage).trials:
        errors = [r.metrics["error@plain"] for r in outcome.replicates if r.condition.startswith(f"{trial.number:04d}")]
        assert len(errors) == 2
        assert trial.values[0] == pytest.approx(sum(errors) / 2)
