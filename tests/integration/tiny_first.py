"""The prerequisite of the tiny trainable; for tests only."""

import tempfile
import time
from pathlib import Path

from tests.integration.tiny import TinyPrerequisite
from trainables import checkpoint
from trainables.errors import DivergedError
from trainables.trial import Trial


def fingerprint(config: TinyPrerequisite) -> str:
    return "tiny"


def num_steps(config: TinyPrerequisite) -> int:
    return config.num_epochs


def selection(config: TinyPrerequisite) -> dict[str, str]:
    return {"best": "valid_error"}


def train(config: TinyPrerequisite, trial: Trial) -> None:
    for epoch in range(1, config.num_epochs + 1):
        time.sleep(config.sleep_s)
        if epoch == config.nan_at:
            raise DivergedError(f"The loss is nan at epoch {epoch}, batch 1.")
        with tempfile.TemporaryDirectory() as folder:
            path = checkpoint.save(Path(folder) / "state.pt", {"level": config.level})
            trial.report({"valid_error": 1.0 / epoch}, step=epoch, checkpoint=path)
