"""The surprisal controllers of a config, fitted to the surprisal of their corpus, and the controllers at work."""

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trainables import rng
from trainables.asr import cost, frozen
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import AsrConfig, Budget, Controller, Evaluation, Surprisal
from trainables.asr.controller import Control
from trainables.asr.data.examples import Example, Examples, load_audio
from trainables.conditional.surprisal_controller import SurprisalFit
from trainables.conditional.surprisal_fit import OnePass, fit_in_one_pass, fit_surprisal, fit_with_mean
from trainables.config import content_hash
from trainables.errors import DataWarning, InputError

MEAN_TOLERANCE: Final = 0.01
VARIANCE_TOLERANCE: Final = 0.005
"""How near a fit must come to its targets before it is said that they are out of reach."""

ONE_PASS: Final[Mapping[str, OnePass]] = {"one_pass_sgd": "paper", "one_pass_adam": "released"}

Fits = Mapping[str, SurprisalFit]
"""The fit of each surprisal controller, by the hash of its settings."""


def control(config: AsrConfig, fits: Fits, evaluation: Evaluation | None = None) -> Control:
    """The controller of training, or the one under `evaluation`, with its fit."""
    controller, routing = config.controller, config.training_routing
    if evaluation:
        controller, routing = evaluation.controller or config.controller, evaluation.routing
    fit = fits.get(content_hash(controller))
    return Control(controller, routing, fit.raised(evaluation.bias_raise) if fit and evaluation else fit)


def tested_control(
    config: AsrConfig, evaluation: Evaluation, state: Mapping[str, Any], ar: AutoregressiveModel, examples: Examples
) -> Control:
    """The controller under `evaluation`, with its fit from a checkpoint's `state`, or a new one where that has none."""
    fits = restored_fits(state)
    fits |= missing_fits(config, [evaluation.controller or config.controller], ar, examples, fits)
    return control(config, fits, evaluation)


def all_fits(
    config: AsrConfig, ar: AutoregressiveModel, examples: Examples, known: Fits | None = None
) -> dict[str, SurprisalFit]:
    """A fit for every surprisal controller of training and testing; those that are `known` stay as they are."""
    return dict(known or {}) | missing_fits(config, controllers_in_use(config), ar, examples, known or {})


def controllers_in_use(config: AsrConfig) -> list[Controller]:
    """The controller of training, and those that evaluations have of their own."""
    return [config.controller] + [evaluation.controller for evaluation in config.evaluations if evaluation.controller]


def missing_fits(
    config: AsrConfig, wanted: Iterable[Controller], ar: AutoregressiveModel, examples: Examples, fits: Fits
) -> dict[str, SurprisalFit]:
    """A fit for every surprisal controller `wanted` that `fits` lacks."""
    by_name: dict[str, Surprisal | Budget] = {}
    for one in wanted:
        if isinstance(one, Surprisal | Budget) and by_name.setdefault(content_hash(one), one) != one:
            raise InputError("Two controllers must differ in more than the place of their data; name another subset.")
    return {name: _fit(config, c, ar, examples) for name, c in by_name.items() if name not in fits}


def restored_fits(state: Mapping[str, Any]) -> dict[str, SurprisalFit]:
    """The fits in the state of a checkpoint."""
    return {name: SurprisalFit(**fit) for name, fit in state["fits"].items()}


def fit_metrics(config: AsrConfig, fits: Fits) -> dict[str, float]:
    """The metrics of the fit of the controller of training; none where that one is not fitted."""
    fit = fits.get(content_hash(config.controller))
    names = {"controller_w": "w", "controller_b": "b", "controller_mean_p": "mean_p", "controller_var_p": "var_p"}
    return {metric: getattr(fit, name) for metric, name in names.items()} if fit else {}


def _fit(
    config: AsrConfig, controller: Surprisal | Budget, ar: AutoregressiveModel, examples: Examples
) -> SurprisalFit:
    """The fit to the surprisal of every valid frame of the fit's audio."""
    audio: Sequence[Example] = examples.train
    reading = config
    if controller.data is not None:
        reading = config.model_copy(update={"inputs": "frames"})  # features of audio that no recogniser hears
        spared = config.spared(controller.data)
        audio = load_audio(config.beside(controller.data), config.ar.features, spared).train
    surprisals = surprisals_of(reading, ar, audio)
    if isinstance(controller, Budget):
        mu = cost.budget_mu(config, controller, len(examples.labels), [len(utterance) for utterance in surprisals])
    else:
        mu = controller.mu
    if isinstance(controller, Surprisal) and controller.fit != "converged":
        order = rng.generator(config.seed, "fit")
        return fit_in_one_pass(surprisals, mu, controller.sigma2, ONE_PASS[controller.fit], order)
    solve = fit_with_mean if isinstance(controller, Budget) else fit_surprisal
    fit = solve(np.concatenate(surprisals), mu, controller.sigma2)
    if not (abs(fit.mean_p - mu) <= MEAN_TOLERANCE and abs(fit.var_p - controller.sigma2) <= VARIANCE_TOLERANCE):
        warnings.warn(
            f"No (w, b) was found that gives p_big mean {mu:.3f} and variance {controller.sigma2:.3f} on these frames; "
            f"the nearest that was found gives {fit.mean_p:.3f} and {fit.var_p:.3f}.",
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
        rows = [row for _, row in sorted(frozen.read(ar, examples, with_features=False), key=operator.itemgetter(0))]
    return [row[:, -1].numpy() for row in rows]
