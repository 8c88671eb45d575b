"""A trainable that mostly sleeps: a small regression whose every step draws from the random streams.

Takes orders for faults at each step (`orders`); they change neither a replicate's key nor its result.
"""

import math
import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field

from benchmarks.faulty import orders
from trainables import checkpoint, distributed, rng
from trainables.config import NOT_IN_KEY, Config, Place
from trainables.errors import DivergedError
from trainables.trial import Trial

SIZE = 8


class PlainEvaluation(Config):
    """The one evaluation."""

    name: str = "plain"


class FirstConfig(Config):
    """Of the prerequisite."""

    level: float = 0.5
    sleep_s: Annotated[float, NOT_IN_KEY] = 0.5


class FaultyConfig(Config):
    """`orders`: the folder in which faults are ordered.

    A learning rate of 1e40 diverges after some steps, and `raises_at` is a step that always raises.
    """

    x: Annotated[float, Field(ge=0, le=1)] = 0.5
    learning_rate: float = 0.15
    raises_at: int | None = None
    num_steps: int = 12
    sleep_s: Annotated[float, NOT_IN_KEY] = 0.38
    orders: Place = None
    first: FirstConfig = FirstConfig()
    evaluations: Annotated[tuple[PlainEvaluation, ...], NOT_IN_KEY] = (PlainEvaluation(),)
    seed: Annotated[int, NOT_IN_KEY] = 1


def fingerprint(config: Config) -> str:
    """There are no data."""
    return "none"


def num_steps(config: FaultyConfig) -> int:
    """The last step."""
    return config.num_steps


def selection(config: FaultyConfig) -> dict[str, str]:
    """The checkpoint that is best under each evaluation."""
    return {evaluation.name: f"valid_error@{evaluation.name}" for evaluation in config.evaluations}


def train(config: FaultyConfig, trial: Trial) -> None:
    """Fits a line to noise; every step is saved and reported."""
    rng.seed_everything(rng.derive(config.seed, config.x))
    level = checkpoint.load(trial.prerequisite("first"))["level"]
    weight, first = torch.zeros(SIZE, dtype=torch.float64), 1
    if restored := trial.restore():
        state = checkpoint.load(restored)
        rng.put_back(state["rng"])
        weight, first = state["weight"], state["step"] + 1
    for step in range(first, config.num_steps + 1):
        time.sleep(config.sleep_s)
        order = orders.take(config.orders)
        orders.strike(order)
        if step == config.raises_at:
            raise ZeroDivisionError("always")
        weight, loss = _improve(weight, config, level)
        if not math.isfinite(loss):
            raise DivergedError(f"The loss is {loss} at step {step}.")
        distributed.sum_over_processes(1.0)
        state = {"weight": weight, "step": step, "rng": rng.capture()}
        path = Path(tempfile.gettempdir()) / f"faulty-{os.getpid()}.pt"
        try:
            with orders.disk(order, "saved"):
                checkpoint.save(path, state)
            with orders.disk(order, "copied"):
                metrics = {"loss": loss, "valid_error@plain": _error(config, weight, step)}
                trial.report(metrics, step=step, checkpoint=path)
        finally:
            path.unlink(missing_ok=True)


def _improve(weight: torch.Tensor, config: FaultyConfig, level: float) -> tuple[torch.Tensor, float]:
    inputs = torch.randn(16, SIZE, dtype=torch.float64)
    residual = inputs @ weight - inputs.sum(1) * config.x - level * torch.randn(16, dtype=torch.float64)
    gradient = 2 * inputs.T @ residual / 16
    return weight - config.learning_rate * gradient, float(residual.square().mean())


def _error(config: FaultyConfig, weight: torch.Tensor, step: int) -> float:
    """On four inputs of the step's own, so noisy that the best step is seldom the last."""
    stream = rng.generator(config.seed, "valid", step)
    inputs = torch.randn(4, SIZE, dtype=torch.float64, generator=stream)
    return float((inputs @ (weight - 0.5)).square().mean())


def evaluate(config: FaultyConfig, checkpoint_path: Path, evaluation: PlainEvaluation, trial: Trial) -> None:
    """The validation error of the checkpoint, made again from its weights."""
    state = checkpoint.load(checkpoint_path)
    error = _error(config, state["weight"], state["step"])
    trial.report({"error": error, "valid_error": error, "cost": config.x}, step=state["step"])
    orders.strike_at_end()
