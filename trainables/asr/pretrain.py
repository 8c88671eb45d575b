"""Pretraining of the autoregressive model: a trainable whose product other replicates use.

torch is loaded when it trains.
"""

from pathlib import Path

from trainables.asr.config import Pretraining
from trainables.asr.data.config import Data
from trainables.asr.data.splits import audio_fingerprint
from trainables.asr.metrics import METRICS
from trainables.errors import InputError
from trainables.trial import Trial

metrics = METRICS

SELECTION = "valid_mse"
"""The metric whose lowest value marks the checkpoint to keep."""


def reads(config: Pretraining) -> tuple[object, ...]:
    """What of `config` decides the fingerprint."""
    return config.data, config.spared


def fingerprint(config: Pretraining) -> str:
    """Of the audio that the model learns from."""
    return audio_fingerprint(data_of(config), config.spared)


def selection(config: Pretraining) -> dict[str, str]:
    """Names of the checkpoints to keep, each with the metric that it minimises."""
    return {"best": SELECTION}


def num_steps(config: Pretraining) -> int | None:
    """The last step that `train` reports; None with `patience`, which may end it before."""
    return config.training.num_epochs if config.training.patience is None else None


def data_of(config: Pretraining) -> Data:
    """The audio of a pretraining that stands alone.

    Raises:
        InputError: if it names none.
    """
    if config.data is None:
        raise InputError("`data` of a pretraining that stands alone must be given, but got None.")
    return config.data


def train(config: Pretraining, trial: Trial) -> None:
    """As `pretraining.train`."""
    from trainables.asr import pretraining

    pretraining.train(config, trial)


def evaluate(config: Pretraining, checkpoint_path: Path, evaluation: object, trial: Trial) -> None:
    """As `pretraining.evaluate`; there is one way of testing."""
    from trainables.asr import pretraining

    pretraining.evaluate(config, checkpoint_path, trial)
