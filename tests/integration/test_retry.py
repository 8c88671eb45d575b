"""Conditions that failed for good and are asked for again, on the tiny trainable without Ray."""

import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.environment.settings import read_settings
from orchestrator.results.study import Study
from orchestrator.run import run_here
from ponderay import notebook
from search_spaces.sweep import Sweep
from tests.integration import tiny as trainable
from tests.integration import tiny_first
from tests.integration.sweeps import searched, tiny
from tests.integration.test_without_ray import starts, statuses
from tests.integration.tiny import TinyPrerequisite
from trainables.errors import DivergedError, InputError
from trainables.trial import Trial


def run(sweep: Sweep, *retry: str) -> Study:
    """What `ponderay run --retry` does, in this process."""
    run_here(sweep, read_settings(), Console(quiet=True), accept_code=False, retry=retry)
    return notebook.load(sweep.name)


def states(study: Study) -> dict[str, list[str]]:
    return {name: [replicate.state for replicate in study.of(name)] for name in study.conditions}


def begun(study: Study, condition: str) -> list[int]:
    """How often each replicate of a condition was started."""
    return [starts()[replicate.key] for replicate in study.of(condition)]


@pytest.fixture
def until_mended(monkeypatch):
    """Work with a `raise_at` raises there until the file `mended` exists."""

    def strike(config, epoch):
        if epoch == config.raise_at and not Path("mended").exists():
            raise ZeroDivisionError("ordered")

    monkeypatch.setattr(trainable, "_strike", strike)


def test_failed_replicates_of_the_condition_are_tried_again_and_no_others(workplace, until_mended):
    sweep = tiny({"a": {"raise_at": 3}, "b": {"raise_at": 2}, "good": {}})
    run(sweep)
    again = run(sweep)
    assert states(again) == {"a": ["failed"] * 2, "b": ["failed"] * 2, "good": ["complete"] * 2}
    assert begun(again, "a") == begun(again, "b") == begun(again, "good") == [1, 1]

    in_vain = run(sweep, "a")
    assert states(in_vain) == states(again) and begun(in_vain, "a") == [2, 2]
    Path("mended").touch()
    found = run(sweep, "a")
    assert states(found) == {"a": ["complete"] * 2, "b": ["failed"] * 2, "good": ["complete"] * 2}
    assert begun(found, "a") == [3, 3] and begun(found, "b") == begun(found, "good") == [1, 1]
    assert [replicate.error for replicate in found.of("a")] == ["", ""]
    assert statuses("tiny.sweep")["a"] == statuses("tiny.sweep")["a seed 2"] == "FINISHED"
    whole = run(tiny({"a": {}}, name="tiny.whole"))
    assert [r.metrics for r in found.of("a")] == [r.metrics for r in whole.of("a")]  # it went on from its checkpoint


def test_one_that_was_stopped_goes_on_by_the_same_command(workplace, monkeypatch, until_mended):
    """The first condition is complete by then, and the second one neither failed nor complete."""
    sweep = tiny({"a": {"raise_at": 3}, "b": {"raise_at": 2, "x": 0.25}}, seeds=(1,))
    run(sweep)
    Path("mended").touch()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop = lambda config, epoch: config.x == 0.25 and os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
        patch.setattr(trainable, "_strike", stop)
        run(sweep, "a", "b")
    assert states(notebook.load(sweep.name)) == {"a": ["complete"], "b": ["stopped"]}
    assert states(run(sweep, "a", "b")) == {"a": ["complete"], "b": ["complete"]}
    with pytest.raises(InputError, match="'a' has no failed replicate to try again"):
        run(sweep, "a", "b")


def test_a_prerequisite_that_failed_is_made_again(workplace, monkeypatch):
    sweep = tiny(
        {"a": {"first.nan_at": 1}, "b": {"first.nan_at": 1, "x": 0.25}, "c": {"first.nan_at": 1, "raise_at": 1}}
    )
    train = tiny_first.train

    def until_mended(config: TinyPrerequisite, trial: Trial) -> None:
        if not Path("mended").exists():
            raise DivergedError("The loss is nan.")
        train(config.with_value("nan_at", None), trial)

    monkeypatch.setattr(tiny_first, "train", until_mended)
    assert {replicate.state for replicate in run(sweep).replicates} == {"failed"}
    Path("mended").touch()
    assert {replicate.state for replicate in run(sweep).replicates} == {"failed"}
    found = run(sweep, "a")
    assert states(found) == {"a": ["complete"] * 2, "b": ["complete"] * 2, "c": ["failed"] * 2}
    assert found.of("c")[0].error == "ZeroDivisionError: ordered"
    assert sorted(starts(Path("runs/prerequisites")).values()) == [2]


def test_a_condition_of_a_search_is_tried_again_by_its_name(workplace, until_mended):
    sweep = searched(num_trials=2, base=trainable.TinyConfig(raise_at=2))
    names = run(sweep).conditions
    Path("mended").touch()
    assert states(run(sweep, names[0])) == {names[0]: ["complete"] * 2, names[1]: ["failed"] * 2}


def test_what_cannot_be_tried_again_is_refused_before_anything_starts(workplace, until_mended):
    sweep = tiny({"a": {"raise_at": 3}, "good": {}}, seeds=(1, 2))
    with pytest.raises(InputError, match=r"tiny\.sweep has not run here yet"):
        run(sweep, "a")
    run(sweep)
    before = starts()
    with pytest.raises(InputError, match=r"tiny\.sweep has no condition 'c' to try again; there are a, good\."):
        run(sweep, "a", "c")
    with pytest.raises(InputError, match=r"'good' has no failed replicate to try again; a has\."):
        run(sweep, "good")
    with pytest.raises(InputError, match=r"'good' has no failed replicate to try again; no condition has\."):
        run(tiny({"good": {}}, seeds=(3,)), "good")
    with pytest.raises(InputError, match="`retry` must be a list of conditions, but got 'a'"):
        notebook.run(sweep, retry="a")
    assert starts() == before
