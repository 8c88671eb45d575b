"""Adaptive Computation Time as a trainable: what it reads, keeps and reports.

torch is loaded when it trains or tests.
"""

import importlib
from pathlib import Path

from trainables.act.config import ActConfig, Evaluation, Text
from trainables.act.metrics import METRICS
from trainables.act.tasks import text_file
from trainables.trial import Trial

metrics = METRICS


def reads(config: ActConfig) -> object:
    """What of `config` decides the fingerprint."""
    return config.data


def __getattr__(name: str) -> object:
    """`analyses`, loaded when they are asked for: they are no part of the code that trains."""
    if name == "analyses":
        return importlib.import_module(".analysis.questions", __package__).ANALYSES
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def fingerprint(config: ActConfig) -> str:
    """Of the text, once it is known to be long enough; a generated task is the same everywhere."""
    return text_file.fingerprint(config.data) if isinstance(config.data, Text) else "generated"


def selection(config: ActConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises."""
    return {one.name: f"valid_objective@{one.name}" if one.halts else "valid_objective" for one in config.evaluations}


def num_steps(config: ActConfig) -> int | None:
    """The last step that `train` reports; None with `patience`, which may end it before."""
    return config.training.num_iterations if config.training.patience is None else None


def train(config: ActConfig, trial: Trial) -> None:
    """As `training.train`."""
    from trainables.act import training

    training.train(config, trial)


def evaluate(config: ActConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """As `training.evaluate`."""
    from trainables.act import training

    training.evaluate(config, checkpoint_path, evaluation, trial)
