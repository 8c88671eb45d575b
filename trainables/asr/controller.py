"""Which frames take the big network: p_big of each frame, its fit, the choice, and the learned gate's gradient."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares, minimize_scalar
from scipy.special import expit, logit
from torch import Tensor

from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    Budget,
    Controller,
    Fit,
    Learned,
    Random,
    Routing,
    Surprisal,
)
from trainables.asr.data.batches import valid_frames

RAISED_BIAS: Final = 4.0
"""Where appendix B of the paper raises the controller's bias to."""

ONE_PASS_BATCH: Final = 32
ONE_PASS_RATE: Final = 0.01
ONE_PASS_START: Final = (0.1, -1.0)
"""Batch size, learning rate and first (w, b) of the released one-pass fit; the paper names none."""


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

    def raised(self, share: float) -> "SurprisalFit":
        """With its bias moved by `share` in [0, 1] of the way to +4 (Lugosch et al. 2020, arXiv:2006.01659, app. B)."""
        return replace(self, b=self.b + share * (RAISED_BIAS - self.b))


@dataclass(frozen=True)
class Control:
    """A controller at work: with its fit, where it needs one, and how p_big becomes a choice."""

    controller: Controller
    routing: Routing = "stochastic"
    fit: SurprisalFit | None = None


def uses_surprisal(controller: Controller) -> bool:
    """Whether the regressor of the autoregressive model must run."""
    return isinstance(controller, Surprisal | Budget)


def fit_surprisal(surprisals: NDArray[np.floating], mu: float, sigma2: float) -> SurprisalFit:
    """(w, b) that bring mean and variance of sigmoid(w s + b) to `mu` and `sigma2`, solved to convergence.

    Minimises L = 1/2 (mean - mu)^2 + 1/2 (var - sigma2)^2 (ibid., equation 4) over all given frames at once; where the
    targets are out of reach this is the nearest attainable pair.

    Args:
        surprisals: of all valid training frames, in nats.
        mu: in (0, 1).
        sigma2: in (0, .25).
    """
    values, standard, centre, spread = _standardise(surprisals)

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        p = expit(np.exp(point[0]) * standard + point[1])
        return np.array([p.mean() - mu, p.var() - sigma2])

    start = np.array([0.0, logit(mu)])
    slope, bias = least_squares(residuals, start, bounds=([-10, -50], [10, 50]), xtol=1e-12, ftol=1e-12, gtol=1e-12).x
    w = float(np.exp(slope) / spread) if spread > 0 else 0.0
    return _attained(w, float(bias - w * centre), values)


def fit_with_mean(surprisals: NDArray[np.floating], mu: float, sigma2: float) -> SurprisalFit:
    """(w, b) at which sigmoid(w s + b) has mean `mu` exactly, with the variance as near to `sigma2` as there is."""
    values, standard, centre, spread = _standardise(surprisals)

    def bias_for(log_slope: float) -> float:
        scaled = np.exp(log_slope) * standard
        reach = float(np.abs(scaled).max()) + 50
        bias: float = brentq(lambda bias: expit(scaled + bias).mean() - mu, -reach, reach, xtol=1e-12)
        return bias

    def miss(log_slope: float) -> float:
        return float((expit(np.exp(log_slope) * standard + bias_for(log_slope)).var() - sigma2) ** 2)

    log_slope = float(minimize_scalar(miss, bounds=(-10, 10), method="bounded", options={"xatol": 1e-6}).x)
    w = float(np.exp(log_slope) / spread) if spread > 0 else 0.0
    return _attained(w, bias_for(log_slope) - w * centre, values)


def _standardise(
    surprisals: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """In double precision: as they are, less their mean over their standard deviation, mean, standard deviation."""
    values = np.asarray(surprisals, dtype=np.float64)
    centre, spread = float(values.mean()), float(values.std())
    return values, (values - centre) / spread if spread > 0 else np.zeros_like(values), centre, spread


def fit_in_one_pass(
    utterances: Sequence[NDArray[np.floating]], mu: float, sigma2: float, fit: Fit, order: torch.Generator
) -> SurprisalFit:
    """(w, b) after one pass of gradient descent on equation 4, batch by batch, as the sources fit them.

    The paper's `one_pass_sgd` takes equation 2's surprisal; the released `one_pass_adam` takes it without the 1/2 and
    with the unbiased variance. On small sets neither reaches the targets.

    Args:
        utterances: surprisal of each valid frame, in nats.
    """
    scale = 2.0 if fit == "one_pass_adam" else 1.0
    w, b = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in ONE_PASS_START)
    optimizer_type = torch.optim.Adam if fit == "one_pass_adam" else torch.optim.SGD
    optimizer = optimizer_type([w, b], lr=ONE_PASS_RATE)
    ranked = torch.randperm(len(utterances), generator=order).tolist()
    for first in range(0, len(ranked), ONE_PASS_BATCH):
        frames = np.concatenate([utterances[i] for i in ranked[first : first + ONE_PASS_BATCH]])
        p = torch.sigmoid(w * scale * torch.from_numpy(frames).double() + b)
        loss = 0.5 * (p.mean() - mu) ** 2 + 0.5 * (p.var(correction=int(fit == "one_pass_adam")) - sigma2) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    values = np.concatenate([np.asarray(one, dtype=np.float64) for one in utterances])
    return _attained(scale * w.item(), b.item(), values)


def _attained(w: float, b: float, values: NDArray[np.float64]) -> SurprisalFit:
    p = expit(w * values + b)
    return SurprisalFit(w, b, float(p.mean()), float(p.var()))


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
