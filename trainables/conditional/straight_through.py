"""A gate that decides hard and learns by a straight-through gradient, and penalties that hold its usage.

What is passed straight through is no gradient of the loss: detach what the gate reads, and it trains the gate alone.

>>> import torch
>>> from torch import nn
>>> from trainables.conditional.route import mix
>>> from trainables.conditional.straight_through import squared_excess, threshold
>>> gate, small, big, rows = nn.Linear(4, 1), nn.Linear(4, 4), nn.Linear(4, 4), torch.randn(6, 4)
>>> used_big = threshold(gate(rows)[:, 0])  # 0 or 1, with a gradient
>>> outputs = mix(rows, used_big, small, big)
>>> penalty = squared_excess(used_big[None], torch.ones(1, 6), target=0.25)
>>> (outputs.square().mean() + penalty).backward()
>>> gate.weight.grad.shape
torch.Size([1, 4])
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from trainables.conditional.finite import check_finite
from trainables.conditional.same_shape import check_same_shape


class _Threshold(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor) -> Tensor:
        return (logits > 0).to(logits.dtype) + 0 * logits  # NaN, where nobody looked at the logits, goes on to the loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def threshold(logits: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """1 where a logit is positive, else 0; its gradient is passed straight through to the logit.

    The estimator of Bengio, Leonard and Courville (2013, arXiv:1308.3432), d threshold(z) / dz := 1. Of the logit's
    `sigmoid() - 0.5` it decides alike, and its gradient fades where the gate is sure.

    Raises:
        NotFiniteError: a ValueError, if a logit on the CPU is NaN or infinite; on a GPU NaN goes on to the loss.
    """
    check_finite(logits=logits)
    thresholded: Tensor = _Threshold.apply(logits)
    return thresholded


def squared_excess(
    used: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"] | Float[Tensor, "B T"], target: float
) -> Float[Tensor, ""]:
    """How far each sequence's usage lies from a target: the sum over sequences of (mean_t u_t - target)^2.

    Its gradient, 2 (mean_t u_t - target) / T for each frame, knows how much is used: it pushes down above the target
    and up below it.

    Args:
        used: u, 1 where the gate is open, else 0; with the gate's gradient.
        valid: 1 where a frame is one of the sequence, 0 where it is padding; at least one of each sequence.
        target: in [0, 1].

    Raises:
        ValueError: if `valid` has another shape than `used`, or a number is NaN or infinite.
    """
    check_same_shape(used=used, valid=valid)
    check_finite(used=used, valid=valid, target=target)
    usage = (used * valid).sum(1) / valid.sum(1)
    return (usage - target).square().sum()


def squared_deviation(
    used: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"] | Float[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """How far each decision lies from one half: the sum over valid frames of (u_t - .5)^2.

    The penalty of Lugosch et al. (2020, arXiv:2006.01659, equation 5) for a learned controller. Of decisions that are 0
    or 1 it is the constant T / 4, and its gradient, +1 where the gate is open and -1 where it is shut, does not know
    how much is used; `squared_excess` corrects that.

    Args:
        used: u, 1 where the gate is open, else 0; with the gate's gradient.
        valid: 1 where a frame is one of the sequence, 0 where it is padding.

    Raises:
        ValueError: if `valid` has another shape than `used`, or a number is NaN or infinite.
    """
    check_same_shape(used=used, valid=valid)
    check_finite(used=used, valid=valid)
    return ((used - 0.5).square() * valid).sum()
