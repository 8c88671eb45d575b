"""Searches that stop first seeds by their curves, on the tiny trainable without Ray: who goes on, also after a kill."""

import contextlib
import math
from collections import Counter

import pytest
from typer.testing import CliRunner

import ponderay
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.results.study import Study
from orchestrator.scheduler.optuna_search import SearchedConditions
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.search_store import read_trials, studies
from orchestrator.tracking.client import Tracking
from search_spaces.distributions import Real
from search_spaces.halving import Halving
from search_spaces.sweep import Constraint, Objective, Search, Sweep
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_pruned_searches import everything, pruned, recorded, tags, trials
from tests.integration.test_without_ray import starts
from tests.integration.tiny import TinyConfig

METRIC = "valid_error@plain"
ONE = (Objective("error"),)
BY_CURVE = Halving(METRIC, first=1, factor=2)


def halved(num_trials=6, name="tiny.search", space=None, objectives=ONE, **changes) -> Sweep:
    search = Search(space or {"x": Real(0.1, 1.0)}, num_trials, sampler="random", **{"halving": BY_CURVE} | changes)
    return tiny((), name=name, search=search, objectives=objectives, base=TinyConfig(num_epochs=4))


def curve(key: str, sweep="tiny.search") -> dict[int, float]:
    records = ReplicateFolder(read_settings().replicates(sweep) / key, {}).records()
    return {record["step"]: record["metrics"][METRIC] for record in records if record["kind"] == "metrics"}


def by_hand(curves: list[dict[int, float]]) -> list[int]:
    """The last step of each, where they come one after the other: rungs at 1 and 2, training ends at 4."""
    at: dict[int, list[float]] = {1: [], 2: []}
    ends = []
    for known in curves:
        end = 4
        for rung, earlier in at.items():
            own = min(known[step] for step in range(1, rung + 1))
            earlier.append(own)
            if len(earlier) >= 2 and sorted(earlier).index(own) >= len(earlier) // 2:
                end = rung
                break
        ends.append(end)
    return ends


def test_a_first_seed_goes_on_by_its_curve_and_whatever_was_stopped_is_no_result(workplace):
    outcome = run_quietly(halved())
    study = recorded()
    names = sorted(study.conditions)
    firsts = [study.of(name)[0] for name in names]
    curves = [curve(first.key) for first in firsts]
    ends = by_hand([dict.fromkeys(range(1, 5), math.inf) | known for known in curves])
    assert [max(known) for known in curves] == ends and 4 in ends and len(set(ends)) > 1
    for name, first, end, known, trial in zip(names, firsts, ends, curves, trials(), strict=True):
        assert trial.intermediate_values == {
            rung: min(known[s] for s in range(1, rung + 1)) for rung in (1, 2) if rung <= end
        }
        if end == 4:
            assert [one.state for one in study.of(name)] == ["complete"] * 2 and trial.state.name == "COMPLETE"
            assert tags()[name] == trial.user_attrs["ponderay.decision"] == "kept"
            continue
        assert [one.state for one in study.of(name)] == ["pruned"] and trial.state.name == "PRUNED"
        assert first.error.startswith(f"at step {end} of 4 {METRIC} {min(known.values()):.4g} is not among the best ")
        assert tags()[name] == trial.user_attrs["ponderay.decision"] == f"pruned: {first.error}"
        run = Tracking(read_settings())._client.get_run(first.run_id)
        assert run.info.status == "KILLED" and run.data.tags["ponderay.state"] == "pruned"
    num_pruned = sum(end < 4 for end in ends)
    assert outcome.num_failed == 0 and sum(one.state == "pruned" for one in outcome.replicates) == num_pruned

    before = starts()
    assert run_quietly(halved()).num_failed == 0 and starts() == before
    run_quietly(halved(halving=None))
    assert starts() == before, "what was stopped stays so where the sweep no longer halves"

    def said(*arguments: str) -> str:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    shown = said("status", "tiny.search")
    assert f"{num_pruned} pruned" in shown and f"at step 1 of 4 {METRIC}" in shown and "continue" not in shown
    assert said("status", "tiny.search", "--format", "csv").count(",pruned,") == num_pruned
    said("report", "tiny.search", "--output", "report")
    assert f"{num_pruned} pruned by their curves" in "".join(page.read_text() for page in workplace.rglob("*.html"))
    frame = study.to_dataframe()
    assert (frame["state"] == "pruned").sum() == num_pruned
    again = Study.from_dataframe(frame, ONE)
    assert [one.state for one in again.replicates] == [one.state for one in study.replicates]

    # Of more than one step, what was stopped is drawn beside the results, and marked.
    run_quietly(halved(8, "tiny.longer", halving=Halving(METRIC, first=2, factor=2)))
    stopped = {one.condition for one in recorded("tiny.longer").replicates if one.state == "pruned"}
    said("report", "tiny.longer", "--output", "longer")
    page = "".join(page.read_text() for page in (workplace / "longer").glob("*.html"))
    assert all(f"<title>{name}, stopped early by the search</title>" in page for name in stopped)
    assert f"stopped early by the search, one seed each, no result: {len(stopped)}</li>" in page
    curves = ponderay.curves("tiny.longer", METRIC)
    assert {one.condition for one in curves if one.is_pruned} == stopped != {one.condition for one in curves}
    by_number = said("curve", "tiny.longer")
    assert f"The search stopped {len(stopped)} of 8 conditions early, which have no value here" in by_number


def test_another_search_that_draws_the_same_has_all_of_it_under_its_own_names(workplace):
    """Though its Optuna study is new, and would judge some of the curves otherwise."""
    run_quietly(halved())
    stopped = [one.key for one in recorded().own("pruned")]
    before, search = starts(), halved(constraints=(Constraint("cost", 2.0),))
    run_quietly(search)
    study = recorded()
    assert starts() == before and sorted(one.key for one in study.own("pruned")) == sorted(2 * stopped)
    states = [[trial.state.name for trial in one.trials] for one in studies("tiny.search", read_settings())]
    assert len(states) == 2 and states[0] == states[1] and "PRUNED" in states[0]
    found = read_trials(search, read_settings()).of_conditions(study.conditions)
    assert len(found.trials) == states[1].count("COMPLETE")


CUTS = {
    "pruned": (pruned, 3, ((SearchedConditions, "_decide"), (Scheduler, "_add_seeds"), (SearchedConditions, "_tell"))),
    "halved": (halved, 4, ((SearchedConditions, "_halve"), (Scheduler, "_end"), (SearchedConditions, "_tell_open"))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CUTS)
def test_drivers_that_are_killed_are_followed_by_those_that_decide_the_same(workplace, monkeypatch, kind):
    """Killed before and after a decision, its consequence and its telling, with nothing more written into MLflow."""
    declared, num_trials, methods = CUTS[kind]
    run_quietly(declared(num_trials=num_trials, name="tiny.whole"))
    whole, calls, kills = everything("tiny.whole"), Counter(), Counter()

    def pass_or_die(*moment):
        calls[moment] += 1
        if calls[moment] in (2, 4):
            kills[moment] += 1
            raise KeyboardInterrupt

    def cut(owner, name):
        original = getattr(owner, name)

        def method(self, *arguments):
            pass_or_die(name, "before")
            found = original(self, *arguments)
            pass_or_die(name, "after")
            return found

        return method

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "close", lambda self, _: self.give_up())
        for owner, name in methods:
            patch.setattr(owner, name, cut(owner, name))
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                run_quietly(declared(num_trials=num_trials))
                break
    assert set(kills) == {(name, moment) for _, name in methods for moment in ("before", "after")}
    before = starts()
    run_quietly(declared(num_trials=num_trials))
    assert starts() == before
    assert everything() == whole and any(decision.startswith("pruned: ") for decision in tags().values())
