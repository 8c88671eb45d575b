"""How the two scalars of the surprisal controller are fitted, so that its p_big has the moments that are asked for.

>>> import numpy as np
>>> import torch
>>> from trainables.conditional.surprisal_fit import fit_in_one_pass, fit_surprisal, fit_with_mean
>>> surprisals = np.random.default_rng(0).gamma(2.0, 1.5, size=5000)  # nats, of every row of the training set
>>> fit = fit_surprisal(surprisals, mu=0.3, sigma2=0.04)
>>> round(fit.mean_p, 3), round(fit.var_p, 3)
(0.3, 0.04)
>>> fit = fit_with_mean(surprisals, mu=0.02, sigma2=0.04)  # a budget: the mean is met, the variance is out of reach
>>> round(fit.mean_p, 3), round(fit.var_p, 3)
(0.02, 0.02)
>>> fit = fit_in_one_pass(np.split(surprisals, 100), 0.3, 0.04, "paper", torch.Generator().manual_seed(1))
"""

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit

from trainables.conditional.finite import check_finite
from trainables.conditional.surprisal_controller import SurprisalFit

ONE_PASS_BATCH: Final = 32
ONE_PASS_RATE: Final = 0.01
ONE_PASS_START: Final = (0.1, -1.0)
"""Batch size, learning rate and first (w, b) of the released one-pass fit; the paper names none."""

REACHED: Final = 1e-16
"""Loss of equation 4 at which both targets are met to about 1e-8."""

OnePass = Literal["paper", "released"]
"""Whose one-pass fit: as Lugosch et al. (2020) write it, or as their code does it."""


def fit_surprisal(surprisals: NDArray[np.floating], mu: float, sigma2: float) -> SurprisalFit:
    """(w, b) that bring mean and variance of sigmoid(w s + b) to `mu` and `sigma2`, solved to convergence.

    Minimises L = 1/2 (mean - mu)^2 + 1/2 (var - sigma2)^2 (Lugosch et al. 2020, arXiv:2006.01659, equation 4) over
    all given frames at once; where the targets are out of reach this is the nearest pair that is found from two starts.

    Args:
        surprisals: (N), of all valid training frames, in nats.
        mu: in (0, 1).
        sigma2: in (0, .25).

    Raises:
        ValueError: if there are no surprisals, one is not finite, or a target is out of its range.
    """
    from scipy.optimize import least_squares  # takes a second to load

    values, standard, centre, spread = _standardise(surprisals, mu, sigma2)

    def by_bias(point: NDArray[np.float64]) -> NDArray[np.float64]:
        p = expit(np.exp(point[0]) * standard + point[1])
        return np.array([p.mean() - mu, p.var() - sigma2])

    def by_threshold(point: NDArray[np.float64]) -> NDArray[np.float64]:
        return by_bias(np.array([point[0], -np.exp(point[0]) * point[1]]))

    exactly = {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-12}
    solution = least_squares(by_bias, [0.0, logit(mu)], bounds=([-10, -50], [10, 50]), **exactly)
    log_slope, bias = solution.x
    if solution.cost > REACHED:  # a steep one may need a bias beyond these bounds, and a threshold among the surprisals
        start, ends = [0.0, np.quantile(standard, 1 - mu)], (standard.min() - 1, standard.max() + 1)
        other = least_squares(by_threshold, start, bounds=([-10, ends[0]], [10, ends[1]]), **exactly)
        if other.cost < solution.cost:
            log_slope, bias = other.x[0], -np.exp(other.x[0]) * other.x[1]
    w = float(np.exp(log_slope) / spread) if spread > 0 else 0.0
    return _attained(w, float(bias - w * centre), values)


def fit_with_mean(surprisals: NDArray[np.floating], mu: float, sigma2: float) -> SurprisalFit:
    """(w, b) at which sigmoid(w s + b) has mean `mu` exactly, with the variance as near to `sigma2` as there is.

    For a budget: with m_small and m_big multiply-accumulates a row, `mu` = (budget - m_small) / (m_big - m_small). The
    arguments and errors are those of `fit_surprisal`.
    """
    from scipy.optimize import brentq, minimize_scalar  # takes a second to load

    values, standard, centre, spread = _standardise(surprisals, mu, sigma2)

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
    surprisals: NDArray[np.floating], mu: float, sigma2: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """The surprisals in double precision, the same standardised, their mean and their standard deviation."""
    values = np.asarray(surprisals, dtype=np.float64)
    _check(values, mu, sigma2)
    with np.errstate(over="ignore"):
        # of equal numbers the mean, and with it the deviation from it, may be off by a rounding
        centre, spread = float(values.mean()), float(values.std()) if np.ptp(values) > 0 else 0.0
    check_finite(spread_of_surprisals=spread)
    return values, (values - centre) / spread if spread > 0 else np.zeros_like(values), centre, spread


def _check(surprisals: NDArray[np.float64], mu: float, sigma2: float) -> None:
    check_finite(surprisals=surprisals)
    if not surprisals.size:
        raise ValueError("`surprisals` must have at least one number, but got none.")
    if not (0 < mu < 1 and 0 < sigma2 < 0.25):
        raise ValueError(f"`mu` must be in (0, 1) and `sigma2` in (0, .25), but got {mu} and {sigma2}.")


def fit_in_one_pass(
    sequences: Sequence[NDArray[np.floating]], mu: float, sigma2: float, kind: OnePass, order: torch.Generator
) -> SurprisalFit:
    """(w, b) after one pass of gradient descent on equation 4, batch by batch, as the sources fit them.

    `paper`: by plain gradient descent on equation 2's surprisal; `released`: by Adam, on the surprisal without
    equation 2's 1/2 and with the unbiased variance. On small sets neither reaches the targets.

    Args:
        sequences: surprisal of each valid frame (T), in nats, 32 sequences a batch.
        order: draws the order of the sequences.

    Raises:
        ValueError: as of `fit_surprisal`, and if the descent ends at no finite pair.
    """
    values = np.concatenate([np.empty(0), *sequences]).astype(np.float64)
    _check(values, mu, sigma2)
    scale = 2.0 if kind == "released" else 1.0
    w, b = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in ONE_PASS_START)
    optimizer_type = torch.optim.Adam if kind == "released" else torch.optim.SGD
    optimizer = optimizer_type([w, b], lr=ONE_PASS_RATE)
    ranked = torch.randperm(len(sequences), generator=order).tolist()
    for first in range(0, len(ranked), ONE_PASS_BATCH):
        frames = np.concatenate([sequences[i] for i in ranked[first : first + ONE_PASS_BATCH]])
        p = torch.sigmoid(w * scale * torch.from_numpy(frames).double() + b)
        unbiased = kind == "released" and len(frames) > 1  # one frame has no such variance
        loss = 0.5 * (p.mean() - mu) ** 2 + 0.5 * (p.var(correction=int(unbiased)) - sigma2) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return _attained(scale * w.item(), b.item(), values)


def _attained(w: float, b: float, values: NDArray[np.float64]) -> SurprisalFit:
    p = expit(w * values + b)
    return SurprisalFit(w, b, float(p.mean()), float(p.var()))
