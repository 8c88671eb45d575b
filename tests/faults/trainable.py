"""A trainable whose crashes are tried: folders as checkpoints, which are pruned, figures, two evaluations; no torch."""

import json
import tempfile
from pathlib import Path
from typing import Annotated, Final

from tests.faults.first import FirstConfig
from trainables.config import NOT_IN_KEY, Config
from trainables.trial import Trial

VALID: Final = {"early": (5.0, 1.0, 3.0, 4.0, 2.0), "late": (5.0, 4.0, 3.0, 2.0, 3.0)}
"""The validation error of each step under each evaluation: the best are steps 2 and 4."""

DRAWN_AT: Final = (2, 4)
sources = ["trainable.py"]  # else each of a thousand drivers looks for all that is imported here


class Evaluation(Config):
    name: str


class SumConfig(Config):
    first: FirstConfig = FirstConfig()
    evaluations: Annotated[tuple[Evaluation, ...], NOT_IN_KEY] = tuple(Evaluation(name=name) for name in VALID)
    seed: Annotated[int, NOT_IN_KEY] = 1


def fingerprint(config: SumConfig) -> str:
    return "none"


def num_steps(config: SumConfig) -> int:
    return 5


def selection(config: SumConfig) -> dict[str, str]:
    return {name: f"valid@{name}" for name in VALID}


def train(config: SumConfig, trial: Trial) -> None:
    total, first = json.loads(trial.prerequisite("first").read_text())["level"], 1
    if restored := trial.restore():
        state = json.loads((restored / "deep" / "state.json").read_text())
        total, first = state["total"], state["step"] + 1
    for step in range(first, 6):
        total += step / 8
        with tempfile.TemporaryDirectory() as folder:
            checkpoint, figure = Path(folder) / "checkpoint", Path(folder) / "figure.txt"
            (checkpoint / "deep").mkdir(parents=True)
            (checkpoint / "deep" / "state.json").write_text(json.dumps({"step": step, "total": total}))
            figure.write_text(f"drawn at step {step}")
            metrics = {f"valid@{name}": values[step - 1] for name, values in VALID.items()}
            figures = [figure] if step in DRAWN_AT else []
            trial.report(metrics | {"total": total}, step=step, checkpoint=checkpoint, artifacts=figures)


def evaluate(config: SumConfig, checkpoint: Path, evaluation: Evaluation, trial: Trial) -> None:
    state = json.loads((checkpoint / "deep" / "state.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / f"{evaluation.name}.txt"
        table.write_text(f"{state}")
        metrics = {"error": state["total"], "valid": VALID[evaluation.name][state["step"] - 1]}
        trial.report(metrics, step=state["step"], artifacts=[table])
