"""Training that ends by a rule: where validation says so, and at the same report where it was interrupted."""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.trainables.act.test_train import CONFIG as ACT
from tests.trainables.asr.test_train import CONFIG as ASR
from tests.trainables.asr.test_train import DATA
from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states
from tests.trainables.lm.small_runs import comparable, config_for, write_text
from trainables import patience
from trainables.act import evaluation as act_evaluation
from trainables.act import train as act
from trainables.act.config import Mass
from trainables.asr import evaluation as asr_evaluation
from trainables.asr import next_frame, pretrain
from trainables.asr import train as asr
from trainables.asr.config import Evaluation
from trainables.lm import evaluation as lm_evaluation
from trainables.lm import train as lm

UNTRAINED = 1.0
"""Worse than all that follows."""


@pytest.mark.parametrize(
    ("values", "number", "ends"),
    [
        ([], 1, False),
        ([3.0], 1, False),
        ([3.0, 3.0], 1, True),
        ([3.0, 3.0], 2, False),
        ([3.0, 4.0, 2.0, 5.0], 2, False),
        ([3.0, 4.0, 2.0, 5.0, 2.0], 2, True),
        ([3.0, math.nan, math.nan], 2, True),
        ([math.nan], 1, True),
        ([math.nan, 3.0], 1, False),
        ([3.0, 4.0, 5.0], None, False),
    ],
)
def test_patience_ends_behind_so_many_validations_that_are_not_better(values, number, ends):
    assert patience.is_exhausted(number, [{"valid": value} for value in values]) is ends


def test_a_validation_is_better_where_any_selected_metric_is():
    rows = [{"a": 3.0, "b": 3.0}, {"a": 4.0, "b": 2.0}, {"a": 4.0, "b": 2.0}]
    assert not patience.is_exhausted(2, rows) and patience.is_exhausted(1, rows)
    assert not patience.is_exhausted(2, [*rows, {"a": 2.0}]) and patience.is_exhausted(2, [*rows, {}])


@dataclass(frozen=True)
class Family:
    """A trainable, and what stands in for its validation.

    Attributes:
        place: name of the function in `module` that is replaced.
        made: what it returns for a value.
    """

    trainable: Any
    config: Any
    module: Any
    place: str
    made: Any
    report: int = 1


FAMILIES = {
    "asr": Family(
        asr,
        ASR.with_value("evaluations", (Evaluation(),)),
        asr_evaluation,
        "validate",
        lambda value: {"valid_per@stochastic": value},
    ),
    "pretraining": Family(pretrain, ASR.pretraining, next_frame, "mean_squared_error", lambda value: value),
    "act": Family(act, ACT, act_evaluation, "validate", lambda value: {"valid_objective": value}, report=20),
    "lm": Family(lm, None, lm_evaluation, "score", lambda value: lm_evaluation.Score(value, 1.0, 0)),
}


@pytest.fixture(scope="module")
def product(tmp_path_factory) -> Path:
    trial = FolderTrial(tmp_path_factory.mktemp("ar"))
    pretrain.train(ASR.pretraining.with_value("training.num_epochs", 1).with_value("data", DATA), trial)
    return trial.folder / "1.pt"


@pytest.mark.parametrize("name", FAMILIES)
def test_training_ends_by_patience_at_the_same_report_with_equal_digits_where_it_was_interrupted(
    tmp_path, name, product, monkeypatch
):
    """The best is the second report; the third is equal, the fourth worse. Interrupted after each of them."""
    family = FAMILIES[name]
    config = family.config or config_for(write_text(tmp_path / "text.txt"))
    length = "num_iterations" if name == "act" else "num_epochs"
    config = config.with_value(f"training.{length}", 9 * family.report).with_value("training.patience", 2)
    values = [UNTRAINED, 0.5, 0.4, 0.4, 0.6, 0.1]

    def train(folder: Path, *cuts: int) -> dict[int, dict[str, float]]:
        following, reports = iter(values), {}
        monkeypatch.setattr(family.module, family.place, lambda *_, **__: family.made(next(following)))
        for cut in (*cuts, None):
            trial = FolderTrial(folder, product, cut_after=cut and cut * family.report)
            if cut is None:
                family.trainable.train(config, trial)
            else:
                with pytest.raises(InterruptedTrialError):
                    family.trainable.train(config, trial)
            assert not reports.keys() & trial.reports.keys()
            reports |= trial.reports
        return comparable(reports)

    whole = train(tmp_path / "whole")
    steps = [number * family.report for number in range(5)]
    assert list(whole) == steps and family.trainable.num_steps(config) is None
    assert train(tmp_path / "cut", 2, 3, 4) == whole
    assert_equal_states(tmp_path / "cut" / f"{steps[-1]}.pt", tmp_path / "whole" / f"{steps[-1]}.pt")


def test_what_is_tested_later_does_not_decide_when_act_ends(tmp_path, monkeypatch):
    """The objective stays; that of an evaluation which halts by another rule falls."""
    config = ACT.with_value("training.num_iterations", 180).with_value("training.patience", 2)
    halts = config.evaluations[0].model_copy(update={"name": "mass", "halts": Mass()})
    falling = itertools.count(0, -1)
    made = lambda *_, **__: {"valid_objective": 1.0, "valid_objective@mass": float(next(falling))}  # noqa: E731
    monkeypatch.setattr(act_evaluation, "validate", made)
    trial = FolderTrial(tmp_path)
    act.train(config.model_copy(update={"evaluations": (*config.evaluations, halts)}), trial)
    assert list(trial.reports) == [0, 20, 40, 60]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "lm"])
def test_without_patience_the_number_of_steps_is_known(name):
    family = FAMILIES[name]
    assert family.trainable.num_steps(family.config) == {"asr": 4, "pretraining": 3, "act": 50}[name]
