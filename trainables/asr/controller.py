"""Which frames take the big network: p_big of each frame, the choice, and the learned gate's gradient."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    Budget,
    Controller,
    Learned,
    Random,
    Routing,
    Surprisal,
)
from trainables.asr.data.batches import valid_frames


@dataclass(frozen=True)
class SurprisalFit:
    """The two scalars of equation 3, with the mean and variance that they attain on the frames they were fitted to.

    Attributes:
        w: per nat of surprisal, positive.
        b: bias.
        mean_p, var_p: of p_big; they miss the targets where no (w, b) attains them.
    """

    w: float
    b: float
    mean_p: float
    var_p: float

    def raised(self, by: float) -> "SurprisalFit":
        """With `by` added to its bias (Lugosch et al. 2020, arXiv:2006.01659, appendix B: b to b + 4)."""
        return replace(self, b=self.b + by)


@dataclass(frozen=True)
class Control:
    """A controller at work: with its fit, where it needs one, and how p_big becomes a choice."""

    controller: Controller
    routing: Routing = "stochastic"
    fit: SurprisalFit | None = None


def uses_surprisal(controller: Controller) -> bool:
    """Whether the regressor of the autoregressive model must run."""
    return isinstance(controller, Surprisal | Budget)


def p_big(control: Control, surprisals: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The probability that a frame takes the big network (ibid., equation 3, for the surprisal controller).

    The learned controller has none before its gate has run.
    """
    match control.controller:
        case Surprisal() | Budget():
            if control.fit is None:
                raise ValueError("A surprisal controller needs its fit, but got None.")
            return torch.sigmoid(control.fit.w * surprisals + control.fit.b)
        case Random(p_big=probability):
            return torch.full_like(surprisals, probability)
        case AlwaysSmall():
            return torch.zeros_like(surprisals)
        case AlwaysBig():
            return torch.ones_like(surprisals)
        case Learned():
            raise ValueError("The learned controller decides by its gate; it has no probability of its own.")


def choose(p: Float[Tensor, "B T"], uniform: Float[Tensor, "B T"], routing: Routing) -> Bool[Tensor, "B T"]:
    """Independent Bernoulli(p) choices from uniform numbers in [0, 1), or big where p > .5 (ibid., appendix C).

    Of the draws, p = 0 never and p = 1 always is big.
    """
    return p > 0.5 if routing == "deterministic" else uniform < p


class _Threshold(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor) -> Tensor:
        return (logits > 0).to(logits.dtype)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def threshold(logits: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """1 where a logit is positive, else 0; its gradient is passed straight through to the logit.

    The estimator of Bengio, Leonard and Courville (2013, arXiv:1308.3432), d threshold(z) / dz := 1.
    """
    thresholded: Tensor = _Threshold.apply(logits)  # type: ignore[no-untyped-call]
    return thresholded


def penalty(
    learned: Learned, used_big: Float[Tensor, "B T"], num_frames: Int[Tensor, " B"], batch_size: int
) -> Float[Tensor, ""]:
    """What the learned controller's usage adds to the summed loss of a batch, which is then divided by `batch_size`.

    Args:
        used_big: 1 where a frame took the big network, else 0; with the gate's straight-through gradient.
        num_frames: valid ones of each utterance, on the CPU.
        batch_size: utterances of the whole batch, of which these may be a part.
    """
    valid = valid_frames(num_frames, used_big.shape[1]).to(used_big.device)
    if learned.penalty == "corrected":
        usage = (used_big * valid).sum(1) / num_frames.to(used_big.device)
        return learned.weight * (usage - learned.target).square().sum()
    deviations = ((used_big - 0.5).square() * valid).sum()
    return learned.weight * deviations * (batch_size if learned.penalty == "released" else 1)
