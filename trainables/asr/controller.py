"""Which frames take the big network: p_big of each frame, its fit, and the draw."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, logit
from torch import Tensor

from trainables.asr.config import AlwaysBig, AlwaysSmall, Controller, Random, Surprisal


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


def fit_surprisal(surprisals: NDArray[np.floating], targets: Surprisal) -> SurprisalFit:
    """(w, b) that bring mean and variance of sigmoid(w s + b) to `mu` and `sigma2`, solved to convergence.

    Minimises L = 1/2 (mean - mu)^2 + 1/2 (var - sigma2)^2 (Lugosch et al. 2020, arXiv:2006.01659, equation 4) over all
    given frames at once; where the targets are out of reach this is the nearest attainable pair.

    Args:
        surprisals: of all valid training frames, in nats.
        targets: mu in (0, 1), sigma2 in (0, .25).
    """
    values = np.asarray(surprisals, dtype=np.float64)
    centre, spread = float(values.mean()), float(values.std())
    standard = (values - centre) / spread if spread > 0 else np.zeros_like(values)

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        p = expit(np.exp(point[0]) * standard + point[1])
        return np.array([p.mean() - targets.mu, p.var() - targets.sigma2])

    start = np.array([0.0, logit(targets.mu)])
    slope, bias = least_squares(residuals, start, bounds=([-10, -50], [10, 50]), xtol=1e-12, ftol=1e-12, gtol=1e-12).x
    w = float(np.exp(slope) / spread) if spread > 0 else 0.0
    b = float(bias - w * centre)
    p = expit(w * values + b)
    return SurprisalFit(w, b, float(p.mean()), float(p.var()))


def p_big(controller: Controller, surprisals: Float[Tensor, "B T"], fit: SurprisalFit | None) -> Float[Tensor, "B T"]:
    """The probability that a frame takes the big network (ibid., equation 3, for the surprisal controller)."""
    match controller:
        case Surprisal():
            if fit is None:
                raise ValueError("A surprisal controller needs its fit, but got None.")
            return torch.sigmoid(fit.w * surprisals + fit.b)
        case Random():
            return torch.full_like(surprisals, controller.p_big)
        case AlwaysSmall():
            return torch.zeros_like(surprisals)
        case AlwaysBig():
            return torch.ones_like(surprisals)


def draw(p: Float[Tensor, "B T"], uniform: Float[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """Independent Bernoulli(p) choices from uniform numbers in [0, 1); p = 0 never and p = 1 always chooses big."""
    return uniform < p


def decide(p: Float[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """Big where p_big > .5 (ibid., appendix C)."""
    return p > 0.5
