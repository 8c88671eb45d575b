"""A probe as an error signal: what it says of a hidden state against what it should say."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from trainables.conditional.gather import take
from trainables.lm.config import WeakSupervision
from trainables.lm.signals.error_signal import Opens, Reading


@dataclass(frozen=True, eq=False)
class Supervision:
    """A logistic probe on a hidden layer, and what it should say of each row: 0, 1, or NaN for nothing."""

    weight: Float[Tensor, " H"]
    bias: Float[Tensor, ""]
    labels: Float[Tensor, " B"]


@dataclass(eq=False)
class ProbeSignal:
    """The error signal of a probe that has labels."""

    config: WeakSupervision
    supervision: Supervision

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        layer, labels = self.config.layer - 1, take(self.supervision.labels, 0, streams)
        logit = self._logit(hidden)
        delta, error = _loss(logit, labels), logit.sigmoid() - labels
        opened = opens(delta, None) if opens else None
        error = take(error, 0, opened)
        gradient = torch.where(error.isnan(), 0.0, error)[:, None] * self.supervision.weight
        return Reading(delta, gradient, layer, None, opened=opened)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it; 0 without a label."""
        return _loss(self._logit(hidden), self.supervision.labels)

    def _logit(self, hidden: list[Tensor]) -> Float[Tensor, " B"]:
        return hidden[self.config.layer - 1] @ self.supervision.weight + self.supervision.bias


def _loss(logit: Tensor, labels: Tensor) -> Tensor:
    losses = F.binary_cross_entropy_with_logits(logit, labels.nan_to_num(), reduction="none")
    return torch.where(labels.isnan(), 0.0, losses)
