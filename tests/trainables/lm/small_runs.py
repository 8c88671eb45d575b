"""Very small models on a small text, and what is compared of their runs."""

import random
from pathlib import Path

from tests.trainables.folder_trial import FolderTrial, untimed
from trainables.lm import train
from trainables.lm.config import (
    AnchoredEnsemble,
    Dropout,
    LmConfig,
    McDropout,
    Recoder,
    Variational,
)
from trainables.lm.gate_config import Chance
from trainables.lm.optimisation import Optimisation
from trainables.lm.step_config import FixedStep, LearnedStep, PredictedStep
from trainables.lm.text_config import Data, OneFile

RECODERS = {
    "surprisal": Recoder(step=LearnedStep(start=0.5)),
    "mc_dropout": Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=0.5), gate=Chance()),
    "variational": Recoder(signal=Variational(num_samples=2), step=PredictedStep()),
}


ENSEMBLE = Recoder(signal=AnchoredEnsemble(num_members=2, prior_variance=0.04, pull=0.5), step=FixedStep(size=0.5))


def write_text(path: Path, num_lines: int = 50) -> Path:
    """Sentences in which one of twelve words often follows the one before; the last lines have words of their own."""
    draws, lines = random.Random(0), []
    for line in range(num_lines):
        words = [draws.randrange(12)]
        while len(words) < 6:
            words.append((words[-1] + 1) % 12 if draws.random() < 0.7 else draws.randrange(12))
        lines.append(" ".join(f"w{word}" for word in words) + (" new" if line >= num_lines - 2 else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


def config_for(path: Path, recoder: Recoder | None = None, **training: object) -> LmConfig:
    """Of about 15 windows an epoch."""
    quick = {"learning_rate": 2.0, "batch_size": 4, "window": 5, "num_epochs": 2} | training
    return LmConfig(
        data=Data(text=OneFile(path=path, validation_share=0.15, test_share=0.15, tokens="spaces")),
        embedding_size=6,
        hidden_size=8,
        dropout=Dropout(rate=0.2),
        recoder=recoder,
        training=Optimisation(**quick),
    )


def comparable(reports):
    """Without what depends on the clock, or on what the process did before."""
    kept = untimed(reports)
    return {step: {k: v for k, v in row.items() if k != "peak_memory_mb"} for step, row in kept.items()}


def trained(cfg: LmConfig, folder: Path, **trial: object) -> FolderTrial:
    train.train(cfg, found := FolderTrial(folder, **trial))
    return found
