"""A trainable that does nothing, for measuring what everything around it costs."""

import tempfile
from pathlib import Path

from trainables.config import Config
from trainables.trial import Trial


class NoopConfig(Config):
    """What tells conditions apart."""

    seed: int = 1
    number: int = 0


def train(config: NoopConfig, trial: Trial) -> None:
    """Reports one step, with a checkpoint of a few bytes."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        checkpoint.write_bytes(b"nothing")
        trial.report({"error": 1 / (1 + config.number), "macs": 1.0 + config.number}, step=1, checkpoint=checkpoint)


def fingerprint(config: NoopConfig) -> str:
    """There are no data."""
    return "none"


def selection(config: NoopConfig) -> dict[str, str]:
    """The checkpoint with the lowest error."""
    return {"best": "error"}


def num_steps(config: NoopConfig) -> int:
    """One."""
    return 1
