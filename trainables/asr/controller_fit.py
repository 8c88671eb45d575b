"""How the two scalars of surprisal controllers are fitted to the surprisal of a corpus, and the controllers at work."""

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit

from trainables import rng
from trainables.asr import cost, frozen
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import AsrConfig, Budget, Controller, Evaluation, Fit, Surprisal
from trainables.asr.controller import Control, SurprisalFit
from trainables.asr.data.examples import Example, Examples, load_audio
from trainables.config import content_hash
from trainables.errors import DataWarning

MEAN_TOLERANCE: Final = 0.01
VARIANCE_TOLERANCE: Final = 0.005
"""How near a fit must come to its targets before it is said that they are out of reach."""

ONE_PASS_BATCH: Final = 32
ONE_PASS_RATE: Final = 0.01
ONE_PASS_START: Final = (0.1, -1.0)
"""Batch size, learning rate and first (w, b) of the released one-pass fit; the paper names none."""

Fits = Mapping[str, SurprisalFit]
"""The fit of each surprisal controller, by the hash of its settings."""


def control(config: AsrConfig, fits: Fits, evaluation: Evaluation | None = None) -> Control:
    """The controller of training, or the one under `evaluation`, with its fit."""
    controller, routing = config.controller, config.training_routing
    if evaluation:
        controller, routing = evaluation.controller or config.controller, evaluation.routing
    fit = fits.get(content_hash(controller))
    return Control(controller, routing, fit.raised(evaluation.bias_raise) if fit and evaluation else fit)


def all_fits(
    config: AsrConfig, ar: AutoregressiveModel, examples: Examples, known: Fits | None = None
) -> dict[str, SurprisalFit]:
    """A fit for every surprisal controller of training and testing; those that are `known` stay as they are."""
    return dict(known or {}) | missing_fits(config, controllers_in_use(config), ar, examples, known or {})


def controllers_in_use(config: AsrConfig) -> list[Controller]:
    """That of training, and those that evaluations have of their own."""
    return [config.controller] + [evaluation.controller for evaluation in config.evaluations if evaluation.controller]


def missing_fits(
    config: AsrConfig, wanted: Iterable[Controller], ar: AutoregressiveModel, examples: Examples, fits: Fits
) -> dict[str, SurprisalFit]:
    """A fit for every surprisal controller `wanted` that `fits` lacks."""
    by_name = {content_hash(one): one for one in wanted if isinstance(one, Surprisal | Budget)}
    return {name: _fit(config, one, ar, examples) for name, one in by_name.items() if name not in fits}


def _fit(
    config: AsrConfig, controller: Surprisal | Budget, ar: AutoregressiveModel, examples: Examples
) -> SurprisalFit:
    """From the surprisal of every valid frame of the fit's audio."""
    audio: Sequence[Example] = examples.train
    if controller.data is not None:
        spared = config.spared(controller.data)
        audio = load_audio(config.beside(controller.data), config.ar.features, spared).train
    found = surprisals_of(config, ar, audio)
    if isinstance(controller, Budget):
        mu = cost.budget_mu(config, controller, len(examples.labels), [len(one) for one in found])
    else:
        mu = controller.mu
    if isinstance(controller, Surprisal) and controller.fit != "converged":
        order = rng.generator(config.seed, "fit")
        return fit_in_one_pass(found, mu, controller.sigma2, controller.fit, order)
    solve = fit_with_mean if isinstance(controller, Budget) else fit_surprisal
    fit = solve(np.concatenate(found), mu, controller.sigma2)
    if abs(fit.mean_p - mu) > MEAN_TOLERANCE or abs(fit.var_p - controller.sigma2) > VARIANCE_TOLERANCE:
        warnings.warn(
            f"No (w, b) gives p_big mean {mu:.3f} and variance {controller.sigma2:.3f} on these frames; "
            f"the nearest gives {fit.mean_p:.3f} and {fit.var_p:.3f}.",
            DataWarning,
            stacklevel=3,
        )
    return fit


def surprisals_of(config: AsrConfig, ar: AutoregressiveModel, examples: Sequence[Example]) -> list[NDArray[np.float32]]:
    """The surprisal of each utterance's frames, in the order of `examples`; kept where the model is frozen."""
    kept = frozen.keep(config, ar, examples) if config.ar_loss_weight is None else None
    if kept is not None:
        rows = list(kept.values())
    else:
        rows = [one for _, one in sorted(frozen.read(ar, examples, with_features=False), key=operator.itemgetter(0))]
    return [one[:, -1].numpy() for one in rows]


def fit_surprisal(surprisals: NDArray[np.floating], mu: float, sigma2: float) -> SurprisalFit:
    """(w, b) that bring mean and variance of sigmoid(w s + b) to `mu` and `sigma2`, solved to convergence.

    Minimises L = 1/2 (mean - mu)^2 + 1/2 (var - sigma2)^2 (Lugosch et al. 2020, arXiv:2006.01659,
    equation 4) over all given frames at once; where the
    targets are out of reach this is the nearest attainable pair.

    Args:
        surprisals: of all valid training frames, in nats.
        mu: in (0, 1).
        sigma2: in (0, .25).
    """
    from scipy.optimize import least_squares  # takes a second to load

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
    from scipy.optimize import brentq, minimize_scalar  # takes a second to load

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
