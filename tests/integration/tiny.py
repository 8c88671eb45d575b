"""A trainable of no meaning whose every step draws from the random streams, with faults to order; for tests only."""

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field

from tests.waiting import until
from trainables import checkpoint, distributed, rng
from trainables.config import NOT_IN_KEY, Config
from trainables.errors import DivergedError, InputError
from trainables.trial import Trial


class TinyEvaluation(Config):
    name: str = "plain"
    factor: float = 1.0


class TinyPrerequisite(Config):
    level: float = 0.5
    sleep_s: Annotated[float, NOT_IN_KEY] = 0.0
    num_epochs: int = 1
    nan_at: int | None = None
    seed: int = 1


class TinyConfig(Config):
    """`fault_file`: made when a fault strikes, so that it strikes once; a bad input is mended when it is there.

    `go`: a file that the last epoch waits for, for minutes at most.
    """

    x: Annotated[float, Field(ge=0, le=1)] = 0.5
    num_epochs: int = 4
    sleep_s: Annotated[float, NOT_IN_KEY] = 0.0
    nan_at: int | None = None
    raise_at: int | None = None
    bad_input: bool = False
    kill_at: int | None = None
    hang_at: int | None = None
    fault_file: Annotated[Path | None, NOT_IN_KEY] = None
    go: Annotated[Path | None, NOT_IN_KEY] = None
    first: TinyPrerequisite = TinyPrerequisite()
    evaluations: Annotated[tuple[TinyEvaluation, ...], NOT_IN_KEY] = (TinyEvaluation(),)
    seed: Annotated[int, NOT_IN_KEY] = 1


def fingerprint(config: Config) -> str:
    return "tiny"


def num_steps(config: TinyConfig) -> int:
    return config.num_epochs


def selection(config: TinyConfig) -> dict[str, str]:
    return {evaluation.name: f"valid_error@{evaluation.name}" for evaluation in config.evaluations}


def train(config: TinyConfig, trial: Trial) -> None:
    if config.bad_input and not (config.fault_file and config.fault_file.exists()):
        raise InputError("The file tiny.flac is broken.")
    rng.seed_everything(rng.derive(config.seed, config.x))
    total, first = checkpoint.load(trial.prerequisite("first"))["level"], 1
    if restored := trial.restore():
        state = checkpoint.load(restored)
        rng.put_back(state["rng"])
        total, first = state["total"], state["epoch"] + 1
    for epoch in range(first, config.num_epochs + 1):
        time.sleep(config.sleep_s)
        if epoch == config.num_epochs and config.go:
            until(config.go.exists)
        _strike(config, epoch)
        total += float(torch.rand(1, dtype=torch.float64)) * config.x
        if epoch == config.nan_at:
            raise DivergedError(f"The loss is nan at epoch {epoch}, batch 1.")
        distributed.sum_over_processes(1.0)
        metrics = {f"valid_error@{e.name}": e.factor / total for e in config.evaluations}
        state = {"total": total, "epoch": epoch, "rng": rng.capture()}
        with tempfile.TemporaryDirectory() as folder:  # hosts of namespaces share it, and may share a number of process
            path = checkpoint.save(Path(folder) / "tiny.pt", state)
            trial.report(metrics | {"total": total}, step=epoch, checkpoint=path)


def evaluate(config: TinyConfig, checkpoint_path: Path, evaluation: TinyEvaluation, trial: Trial) -> None:
    _strike(config, config.num_epochs + 1)
    state = checkpoint.load(checkpoint_path)
    error = evaluation.factor / state["total"]
    trial.report({"error": error, "valid_error": error, "cost": config.x}, step=state["epoch"])


def _strike(config: TinyConfig, epoch: int) -> None:
    if epoch == config.raise_at:
        raise ZeroDivisionError("ordered")
    if epoch == config.hang_at and config.fault_file and not config.fault_file.exists():
        config.fault_file.touch()
        time.sleep(3600)
    if epoch == config.kill_at and config.fault_file and not config.fault_file.exists():
        config.fault_file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
