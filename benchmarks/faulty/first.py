"""The prerequisite of the faulty trainable: a number in a checkpoint, after two seconds."""

import tempfile
import time
from pathlib import Path

from benchmarks.faulty.trainable import FirstConfig
from trainables import checkpoint
from trainables.trial import Trial


def fingerprint(config: FirstConfig) -> str:
    """There are no data."""
    return "none"


def num_steps(config: FirstConfig) -> int:
    """The last step."""
    return 4


def selection(config: FirstConfig) -> dict[str, str]:
    """One checkpoint is kept."""
    return {"best": "valid_error"}


def train(config: FirstConfig, trial: Trial) -> None:
    """Reports four steps; the last is the best."""
    for step in range(1, num_steps(config) + 1):
        time.sleep(config.sleep_s)
        with tempfile.TemporaryDirectory() as folder:
            path = checkpoint.save(Path(folder) / "state.pt", {"level": config.level})
            trial.report({"valid_error": 1.0 / step}, step=step, checkpoint=path)
