"""The language model as a trainable: what it reads, keeps and reports. torch is loaded when it trains or tests."""

import importlib
from pathlib import Path

from trainables.lm import numbered_text
from trainables.lm.config import Evaluation, LmConfig
from trainables.lm.metrics import METRICS
from trainables.trial import Trial

SELECTION = "valid_loss_nats"
"""The metric whose lowest value marks the checkpoint to keep."""

metrics = METRICS


def reads(config: LmConfig) -> object:
    """What of `config` decides the fingerprint."""
    return config.data


def __getattr__(name: str) -> object:
    """`analyses`, loaded when they are asked for: they are no part of the code that trains."""
    if name == "analyses":
        return importlib.import_module(".analysis.questions", __package__).ANALYSES
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def fingerprint(config: LmConfig) -> str:
    """Of the text."""
    return numbered_text.fingerprint(config.data)


def selection(config: LmConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises.

    It is the same for all: validation with the model's own recoder. With every other recoder that a baseline is tested
    with, validation would cost many times the training.
    """
    return {one.name: SELECTION for one in config.evaluations}


def num_steps(config: LmConfig) -> int | None:
    """The last step that `train` reports: a step is one validation; None with `patience`, which may end it before."""
    if config.training.patience is not None:
        return None
    return config.training.num_epochs * config.training.reports_per_epoch


def train(config: LmConfig, trial: Trial) -> None:
    """As `training.train`."""
    from trainables.lm import training

    training.train(config, trial)


def evaluate(config: LmConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """As `training.evaluate`."""
    from trainables.lm import training

    training.evaluate(config, checkpoint_path, evaluation, trial)
