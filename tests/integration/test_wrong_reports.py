"""Whatever a trainable reports or raises fails its own replicate, and that alone: the others are complete."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.results.outcome import Outcome
from orchestrator.run import run_here
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.distributions import Choice
from search_spaces.sweep import Condition, Constraint, Objective, Search, Sweep
from tests.integration import faulty
from tests.integration.faulty import FAULTS, FaultyConfig
from tests.integration.sweeps import IN_TRIAL
from tests.integration.test_without_ray import starts

LOSS_AND_MACS = (Objective("loss"), Objective("macs"))
TRAINED, TESTED = "tests.integration.faulty_training", "tests.integration.faulty"
"""What training reports is the result, and what an evaluation does."""


def sweep_of(trainable: str, conditions: tuple[Condition, ...], **changes: Any) -> Sweep:
    fields: dict[str, Any] = {
        "name": "faulty",
        "description": "For tests.",
        "trainable": trainable,
        "base": FaultyConfig(),
        "conditions": conditions,
        "objectives": LOSS_AND_MACS,
        "seeds": (1, 2),
        "resources": IN_TRIAL,
    }
    return Sweep(**fields | changes)


def struck(fault: str, where: str) -> tuple[Condition, ...]:
    """Four conditions, of which the second has a fault."""
    early = Condition("early", {"fault": fault, "where": where})
    return Condition("w1"), early, Condition("w2", {"fault": "no fault"}), Condition("w3", {"fault": "no fault either"})


def run(sweep: Sweep, *retry: str, accept_code: bool = False) -> Outcome:
    settings = read_settings()
    return run_here(sweep, settings, Console(quiet=True), accept_code, retry)


def states(outcome: Outcome) -> dict[str, list[str]]:
    """Of each condition, by its seeds."""
    found: dict[str, list[str]] = {}
    for one in outcome.replicates:
        found.setdefault(one.condition, []).append(one.state)
    return found


FAILED = {"w1": ["complete"] * 2, "early": ["failed"] * 2, "w2": ["complete"] * 2, "w3": ["complete"] * 2}
COMPLETE = FAILED | {"early": ["complete"] * 2}


@pytest.mark.slow
@pytest.mark.parametrize(("trainable", "where"), [(TRAINED, "train"), (TESTED, "evaluate")])
def test_every_wrong_report_and_exception_fails_its_own_replicate_alone(workplace, monkeypatch, trainable, where):
    monkeypatch.setattr("orchestrator.scheduler.scheduler.WAITS_S", (0.0,))
    faults = [name for name in FAULTS if where == "train" or "checkpoint" not in name]
    names = {f"fault {i}": name for i, name in enumerate(faults)}
    wrong = tuple(Condition(name, {"fault": fault, "where": where}) for name, fault in names.items())
    sweep = sweep_of(trainable, (Condition("first"), *wrong, Condition("last", {"fault": "no fault"})), seeds=(1,))
    outcome = run(sweep)
    complete = [names.get(one.condition, one.condition) for one in outcome.replicates if one.state == "complete"]
    assert complete == ["first", "last"]
    assert [names[one.condition] for one in outcome.replicates if one.is_lost] == []
    assert (outcome.num_unwritten, outcome.input_errors) == (0, ())
    assert all(one.error.isprintable() and 0 < len(one.error) <= 4000 for one in outcome.replicates if one.error)
    for journal in Path("runs/replicates").rglob("journal.jsonl"):
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        assert all(len(record.get("traceback", "")) < 40_000 for record in records)
        assert all(record["traceback"] for record in records if record.get("state") == "failed")
    for arguments in (["status", "faulty"], ["pareto", "faulty"], ["compare", "faulty", "first", "last"]):
        answer = CliRunner().invoke(app, [*arguments, "--format", "json"])
        assert answer.exception is None and json.loads(answer.stdout), answer.output


@pytest.mark.parametrize(
    ("trainable", "where", "fault"),
    [(TRAINED, "train", "lacks an objective"), (TESTED, "evaluate", "lacks an objective"), (TRAINED, "train", "nan")],
)
def test_a_condition_without_an_objective_fails_by_name_and_is_complete_once_that_is_mended(
    workplace, trainable, where, fault
):
    sweep = sweep_of(trainable, struck(fault, where))
    outcome = run(sweep)
    assert states(outcome) == FAILED
    if fault == "lacks an objective":
        reported = ": loss." if where == "train" else " under 'test': checkpoint_step, loss."
        error = f"ValueError: The objective 'macs' is not among what {trainable} reports{reported}"
        assert {one.error for one in outcome.replicates if one.condition == "early"} == {error}
    assert states(run(sweep, "early")) == FAILED
    Path("mended").touch()
    assert states(run(sweep)) == FAILED
    mended = run(sweep, "early")
    assert states(mended) == COMPLETE
    assert len({tuple(sorted(one.metrics.items())) for one in mended.replicates}) == 1
    assert sorted(starts().values()) == [1] * 6 + [3] * 2
    assert states(run(sweep)) == COMPLETE and sorted(starts().values()) == [1] * 6 + [3] * 2


def test_other_code_tries_a_failed_condition_again_by_itself(workplace, monkeypatch):
    sweep = sweep_of(TRAINED, struck("lacks an objective", "train"))
    assert states(run(sweep)) == FAILED
    Path("mended").touch()
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "mended")
    assert states(run(sweep, accept_code=True)) == COMPLETE


@pytest.mark.parametrize(("trainable", "where"), [(TRAINED, "train"), (TESTED, "evaluate")])
def test_an_objective_that_a_finished_sweep_gains_fails_those_that_lack_it(workplace, trainable, where):
    """So were replicates recorded by versions that did not look at their objectives."""
    sweep = sweep_of(trainable, struck("lacks an objective", where))
    before = sweep_of(trainable, sweep.conditions, objectives=(Objective("loss"),))
    assert states(run(before)) == COMPLETE
    assert finished_replicates(TaskFactory(before, read_settings(), 0), accept_code=False)
    assert not finished_replicates(TaskFactory(sweep, read_settings(), 0), accept_code=False)
    assert states(run(sweep)) == states(run(sweep)) == FAILED
    assert set(starts().values()) == {1}
    Path("mended").touch()
    assert states(run(sweep, "early")) == COMPLETE
    assert sorted(starts().values()) == [1] * 6 + [2] * 2


def test_a_search_goes_on_past_a_condition_without_its_constraints_metric(workplace):
    search = Search(
        {"fault": Choice(("no fault", "lacks an objective"))}, 2, "grid", constraints=(Constraint("macs", 3.0),)
    )
    objectives = (Objective("loss"),)
    outcome = run(sweep_of(TRAINED, (), search=search, objectives=objectives))
    assert sorted(states(outcome).values()) == [["complete"] * 2, ["failed"] * 2]
    errors = {one.error for one in outcome.replicates if one.error}
    assert len(errors) == 1 and "The constraint's metric 'macs' is not among" in errors.pop()
    base = FaultyConfig(where="evaluate")  # training reports it, which is enough
    tested = run(sweep_of(TESTED, (), name="tested", base=base, search=search, objectives=objectives))
    assert sorted(states(tested).values()) == [["complete"] * 2] * 2


def test_a_fault_of_the_driver_is_none_of_the_replicate_that_it_strikes(workplace, monkeypatch):
    def broken(scheduler, key, record):
        if record["kind"] == "metrics":
            raise ZeroDivisionError("of the driver")

    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError, match="of the driver"):
        patch.setattr("orchestrator.scheduler.scheduler.Scheduler.reported", broken)
        run(sweep_of(TRAINED, struck("of the driver", "train")))
    outcome = run(sweep_of(TRAINED, struck("of the driver", "train")))
    assert states(outcome) == COMPLETE and {one.error for one in outcome.replicates} == {""}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_still_stops_the_driver(workplace, monkeypatch, number):
    """Which a KeyboardInterrupt that the trainable itself raises does not."""

    def interrupted(trial):
        os.kill(os.getpid(), number)
        threading.Event().wait(10)

    monkeypatch.setitem(FAULTS, "interrupt", interrupted)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        run(sweep_of(TRAINED, struck("interrupt", "train")))
    assert signal.getsignal(number) is before
    monkeypatch.setitem(FAULTS, "interrupt", faulty.train)
    Path("mended").touch()
    assert states(run(sweep_of(TRAINED, struck("interrupt", "train")))) == COMPLETE
