"""Asynchronous successive halving, the stopping variant (Li et al. 2018, arXiv:1810.05934): where a curve is judged."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


class Rung(NamedTuple):
    """A rung that a curve has reached.

    Attributes:
        number: the step from which on the rung counts as reached.
        step: the first step with a value from there on.
        value: the best value up to that step; NaN where there is none but NaN.
    """

    number: int
    step: int
    value: float


@dataclass(frozen=True)
class Halving:
    """A search stops a condition in its first seed, where its curve is not among the best.

    Attributes:
        metric: what the curve is of; `trial.report` must give it in training.
        first: the step of the first rung, at least 1; each rung is `factor` times as far as the one before.
        factor: at least 2; at each rung the best `1 / factor` of those that came there so far go on.
    """

    metric: str
    first: int
    factor: int = 3
    direction: Literal["minimize", "maximize"] = "minimize"

    def __str__(self) -> str:
        rungs = ", ".join(str(self.first * self.factor**k) for k in range(3))
        best = f"the best 1/{self.factor} by {self.metric} ({self.direction})"
        return f"at steps {rungs}, ... a first seed goes on if it is among {best}"

    def cost(self, value: float) -> float:
        """A value as less is better."""
        return -value if self.direction == "maximize" else value

    def reached(self, history: Mapping[int, float], num_steps: int | None) -> Iterator[Rung]:
        """The rungs that a curve, values by step, has reached before its end, which is at `num_steps` if known."""
        rung, steps = self.first, sorted(history)
        while steps and rung <= steps[-1]:
            step = next(step for step in steps if step >= rung)
            if num_steps is not None and step >= num_steps:
                return
            values = [history[s] for s in steps if s <= step and not math.isnan(history[s])]
            yield Rung(rung, step, min(values, key=self.cost, default=math.nan))
            rung *= self.factor


def goes_on(own: float, others: Sequence[float], factor: int) -> bool:
    """Whether a curve goes on at a rung: it is among the best `1 / factor`, or fewer than `factor` have come there.

    Args:
        own: what it has there; less is better, and NaN is the worst.
        others: what those had that came before it.
    """
    num_best = (len(others) + 1) // factor
    return not num_best or (not math.isnan(own) and sum(other < own for other in others) < num_best)
