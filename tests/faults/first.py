"""The prerequisite of the trainable whose crashes are tried: its checkpoints are folders, its steps are not known."""

import json
import tempfile
from pathlib import Path

from trainables.config import Config
from trainables.trial import Trial


class FirstConfig(Config):
    level: float = 0.5
    seed: int = 1


def fingerprint(config: FirstConfig) -> str:
    return "none"


def selection(config: FirstConfig) -> dict[str, str]:
    return {"best": "distance"}


def train(config: FirstConfig, trial: Trial) -> None:
    restored = trial.restore()
    first = json.loads((restored / "state.json").read_text())["step"] + 1 if restored else 1
    for step in range(first, 4):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "state.json").write_text(json.dumps({"step": step, "level": config.level * step}))
            trial.report({"distance": abs(step - 2.0)}, step=step, checkpoint=Path(folder))
