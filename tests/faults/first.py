"""The prerequisite of the trainable whose crashes are tried: the number of its steps is not known."""

import json
import tempfile
from pathlib import Path

from trainables.config import Config
from trainables.metric import Best
from trainables.trial import Trial

sources = ["first.py"]


class FirstConfig(Config):
    level: float = 0.5
    seed: int = 1


def fingerprint(config: FirstConfig) -> str:
    return "none"


def selection(config: FirstConfig) -> dict[str, Best]:
    return {"best": Best("nearness", "maximize")}


def train(config: FirstConfig, trial: Trial) -> None:
    restored = trial.restore()
    first = json.loads(restored.read_text())["step"] + 1 if restored else 1
    for step in range(first, 4):
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "state.json"
            checkpoint.write_text(json.dumps({"step": step, "level": config.level * step}))
            trial.report({"nearness": -abs(step - 2.0)}, step=step, checkpoint=checkpoint)
