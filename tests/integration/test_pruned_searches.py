"""Pruned searches on the tiny trainable without Ray: who gets a second seed, also after an interruption."""

import csv
import io
import itertools
from collections.abc import Sequence

import optuna
import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.results.study import Study
from orchestrator.run import run_here
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.conditions import source_of
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from search_spaces.distributions import Real
from search_spaces.sweep import Constraint, Objective, Search, Sweep
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import starts
from tests.integration.tiny import TinyConfig

ERROR, COST = Objective("error"), Objective("cost")
BETTER_BY_X = (ERROR, Objective("cost", "maximize"))
"""Both are better with a larger x, so that whatever is drawn below the largest x so far is dominated."""


def pruned(objectives=BETTER_BY_X, num_trials=5, seeds=(1, 2), name="tiny.search", **changes) -> Sweep:
    search = Search({"x": Real(0.1, 1.0)}, num_trials, **{"sampler": "random", "pruned": True} | changes)
    return tiny((), name=name, search=search, objectives=objectives, seeds=seeds, base=TinyConfig(num_epochs=1))


def recorded(sweep="tiny.search") -> Study:
    return Tracking(read_settings()).read_study(sweep)


def trials(sweep="tiny.search") -> list[optuna.trial.FrozenTrial]:
    storage = read_settings().search_store
    (name,) = [one for one in optuna.get_all_study_names(storage) if one.startswith(sweep)]
    return optuna.load_study(study_name=name, storage=storage).trials


def tags(sweep="tiny.search") -> dict[str, str]:
    tracking = Tracking(read_settings())
    experiment = tracking.find_experiment(sweep).experiment_id
    runs = tracking._client.search_runs([experiment], "tags.`ponderay.kind` = 'condition'")
    return {run.info.run_name: run.data.tags["ponderay.decision"] for run in runs}


def everything(sweep="tiny.search") -> tuple[object, ...]:
    """What a search has come to: conditions, seeds, values, decisions, and what Optuna was told."""
    values = [(r.condition, r.seed, r.state, r.metrics) for r in recorded(sweep).replicates]
    told = [(trial.params, trial.values, trial.user_attrs, trial.state.name) for trial in trials(sweep)]
    return values, told, tags(sweep)


def by_hand(study: Study, objectives: Sequence[Objective], seeds: int) -> dict[str, int]:
    """Seeds of each condition: all, unless the means of one drawn before, whose seeds were all had, dominate its first.

    In one process conditions come one after the other.
    """
    whole: list[list[float]] = []
    numbers: dict[str, int] = {}
    for name in sorted(study.conditions):
        signed = [-1.0 if one.direction == "maximize" else 1.0 for one in objectives]
        rows = [
            [sign * r.metrics[f"{one.metric}@plain"] for sign, one in zip(signed, objectives, strict=True)]
            for r in study.of(name)
        ]
        is_beaten = any(
            all(a <= b for a, b in zip(one, rows[0], strict=True)) and list(one) != rows[0] for one in whole
        )
        numbers[name] = 1 if is_beaten else seeds
        if not is_beaten:
            whole.append([sum(column) / seeds for column in zip(*rows, strict=True)])
    return numbers


CASES = {
    "better_by_x": (BETTER_BY_X, True),
    "one_objective": ((Objective("cost", "maximize"),), True),
    "error_against_cost": ((ERROR, COST), False),
    "three_that_agree": ((ERROR, Objective("valid_error"), Objective("cost", "maximize")), True),
    "three_that_do_not": ((ERROR, Objective("valid_error", "maximize"), COST), False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_condition_gets_its_other_seeds_only_where_no_whole_one_dominates_its_first(workplace, case):
    objectives, is_any_pruned = CASES[case]
    run_quietly(pruned(objectives))
    study = recorded()
    numbers = {name: len(study.of(name)) for name in study.conditions}
    assert numbers == by_hand(study, objectives, 2)
    assert len(numbers) == 5 and set(numbers.values()) == ({1, 2} if is_any_pruned else {2})
    if objectives[-1].direction == "maximize":  # of cost, which is x and the same for each seed
        drawn = [trial.params["x"] for trial in trials()]
        best = list(itertools.accumulate(drawn, max))
        kept = [x == most for x, most in zip(drawn, best, strict=True)]
        assert all(numbers[name] == 2 for name, is_kept in zip(sorted(numbers), kept, strict=True) if is_kept)


def test_what_is_pruned_is_told_stored_and_told_to_optuna_by_its_single_seed(workplace):
    run_quietly(pruned())
    study, found = recorded(), {trial.number: trial for trial in trials()}
    best, words = "", set()
    for name in sorted(study.conditions):
        trial, replicates = found[int(name[:4])], study.of(name)
        decision = (
            f"pruned: {best} is no worse in every objective and better in one" if len(replicates) == 1 else "kept"
        )
        assert tags()[name] == trial.user_attrs["ponderay.decision"] == decision
        assert trial.user_attrs["ponderay.condition"] == name
        errors = [one.metrics["error@plain"] for one in replicates]
        assert trial.state.name == "COMPLETE" and trial.values[0] == pytest.approx(sum(errors) / len(errors))
        best = best or name
        words.add(decision.partition(":")[0])
    assert words == {"kept", "pruned"}


def seeds_of_each(sweep="tiny.search") -> dict[str, list[int]]:
    found = recorded(sweep)
    return {name[:4]: [one.seed for one in found.of(name)] for name in sorted(found.conditions)}


def test_more_seeds_later_are_for_those_that_were_kept(workplace):
    run_quietly(pruned(num_trials=3))
    assert seeds_of_each() == {"0000": [1, 2], "0001": [1], "0002": [1, 2]}
    before, decisions = starts(), tags()
    run_quietly(pruned(num_trials=3, seeds=(1, 2, 3)))
    assert seeds_of_each() == {"0000": [1, 2, 3], "0001": [1], "0002": [1, 2, 3]}
    assert tags() == decisions
    assert {key: starts()[key] for key in before} == before


def test_a_search_that_begins_to_prune_keeps_what_it_has_and_goes_on_in_the_same_study(workplace):
    run_quietly(pruned(num_trials=2, pruned=False))
    assert seeds_of_each() == {"0000": [1, 2], "0001": [1, 2]}
    run_quietly(pruned(num_trials=4))
    assert seeds_of_each() == {"0000": [1, 2], "0001": [1, 2], "0002": [1, 2], "0003": [1]}
    before = starts()
    run_quietly(pruned(num_trials=4, pruned=False))
    assert starts() == before


def test_a_condition_whose_first_seed_failed_gets_no_others_until_it_is_tried_again(workplace, monkeypatch):
    sweep = pruned((ERROR,), num_trials=2)
    with monkeypatch.context() as patch:
        patch.setattr("tests.integration.tiny._strike", fail_at(0.163))
        for _ in range(2):
            outcome = run_quietly(sweep)
            assert seeds_of_each() == {"0000": [1, 2], "0001": [1]}
    assert [one.state for one in outcome.replicates] == ["complete", "complete", "failed"]
    assert [trial.state.name for trial in trials()] == ["COMPLETE", "FAIL"]
    (failed,) = [one.condition for one in outcome.replicates if one.state == "failed"]
    for retry in ((failed,), ()):
        mended = run_here(sweep, read_settings(), Console(quiet=True), False, retry)
        assert [one.state for one in mended.replicates] == ["complete"] * 4


def fail_at(x):
    def strike(config, epoch):
        if abs(config.x - x) < 0.001:
            raise ZeroDivisionError("ordered")

    return strike


def test_a_condition_that_misses_a_constraint_prunes_none_that_keeps_it(workplace):
    """The largest x is best in both objectives, but costs more than it may: it prunes what costs yet more alone."""
    run_quietly(pruned(BETTER_BY_X, num_trials=4, constraints=(Constraint("cost", 0.5),)))
    drawn = [trial.params["x"] for trial in trials()]
    assert [round(x, 3) for x in drawn] == [0.695, 0.163, 0.715, 0.128]
    assert seeds_of_each() == {"0000": [1, 2], "0001": [1, 2], "0002": [1, 2], "0003": [1]}
    assert tags()[max(tags())].startswith("pruned: 0001 x=0.163 ")


def test_commands_read_a_study_whose_pruned_conditions_have_one_seed(workplace):
    run_quietly(pruned(num_trials=3))
    first, second, _ = sorted(recorded().conditions)

    def said(*arguments: str) -> str:
        result = CliRunner(env={"COLUMNS": "150"}).invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert said("status", "tiny.search", "--format", "csv").count("complete") == 5
    rows = list(csv.DictReader(io.StringIO(said("pareto", "tiny.search", "--format", "csv"))))
    assert {row["condition"][:4]: row["n"] for row in rows} == {"0000": "2", "0001": "1", "0002": "2"}
    assert "0001 x=0.163" in said("compare", "tiny.search", first, second)
    assert "0001 x=0.163" in said("report", "tiny.search", "--output", "report.html")


@pytest.mark.parametrize(("is_pruned", "num_open"), [(True, 4), (False, 2)])
def test_as_many_conditions_may_be_open_as_fit_with_the_seeds_that_they_start_with(workplace, is_pruned, num_open):
    factory = TaskFactory(pruned(pruned=is_pruned), read_settings(), 0)
    source = source_of(factory, Capacity(4, 0), print)
    assert sum(len(source.more()) for _ in range(5)) == num_open
