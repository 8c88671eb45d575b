"""Pretraining of the autoregressive model: a trainable whose product other replicates use.

torch is loaded when it trains. Where the config names `weights`, they are the product.
"""

import hashlib
from pathlib import Path

from trainables.asr.config import Pretraining
from trainables.asr.data.config import Data
from trainables.asr.data.splits import audio_fingerprint
from trainables.asr.metrics import METRICS
from trainables.config import content_hash
from trainables.errors import InputError
from trainables.trial import Trial

metrics = METRICS

SELECTION = "valid_mse"
"""The metric whose lowest value marks the checkpoint to keep."""


def reads(config: Pretraining) -> tuple[object, ...]:
    """What of `config` decides the fingerprint."""
    return config.data, config.spared, config.weights


def fingerprint(config: Pretraining) -> str:
    """Of the audio that the model learns from, and of the bytes of its weights, where they are given.

    Raises:
        InputError: if audio or weights cannot be read.
    """
    audio = audio_fingerprint(data_of(config), config.spared)
    if config.weights is None:
        return audio
    try:
        with config.weights.open("rb") as file:
            return content_hash(audio, hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"{config.weights} cannot be read: {error.strerror}; correct `ar.weights`.") from None


def selection(config: Pretraining) -> dict[str, str]:
    """Names of the checkpoints to keep, each with the metric that it minimises."""
    return {} if config.weights else {"best": SELECTION}


def num_steps(config: Pretraining) -> int | None:
    """The last step that `train` reports: 0 where weights are given; None with `patience`, which may end it before."""
    if config.weights is not None:
        return 0
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
    """As `pretraining.train`; where weights are given, as `released_weights.report`."""
    from trainables.asr import pretraining, released_weights

    if config.weights is not None:
        released_weights.report(config, trial)
        return
    pretraining.train(config, trial)


def evaluate(config: Pretraining, checkpoint_path: Path, evaluation: object, trial: Trial) -> None:
    """As `pretraining.evaluate`; there is one way of testing."""
    from trainables.asr import pretraining

    pretraining.evaluate(config, checkpoint_path, trial)
