"""Fits of surprisal controllers to the surprisal of a corpus, and the controller at work with its fit."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from trainables import distributed, rng
from trainables.asr import controller as controllers
from trainables.asr import cost
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Budget, Controller, Evaluation, Surprisal
from trainables.asr.controller import Control, SurprisalFit
from trainables.asr.data.batches import bucketed, collate
from trainables.asr.data.examples import Example, Examples, load_audio
from trainables.config import content_hash
from trainables.errors import DataWarning

MEAN_TOLERANCE: Final = 0.01
VARIANCE_TOLERANCE: Final = 0.005
"""How near a fit must come to its targets before it is said that they are out of reach."""

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
    controllers_in_use = [config.controller] + [e.controller for e in config.evaluations if e.controller]
    return dict(known or {}) | missing_fits(config, controllers_in_use, ar, examples, known or {})


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
    found = surprisals_of(ar, audio)
    if isinstance(controller, Budget):
        mu = cost.budget_mu(config, controller, len(examples.labels), [len(one) for one in found])
    else:
        mu = controller.mu
    if isinstance(controller, Surprisal) and controller.fit != "converged":
        order = rng.generator(config.seed, "fit")
        return controllers.fit_in_one_pass(found, mu, controller.sigma2, controller.fit, order)
    solve = controllers.fit_with_mean if isinstance(controller, Budget) else controllers.fit_surprisal
    fit = solve(np.concatenate(found), mu, controller.sigma2)
    if abs(fit.mean_p - mu) > MEAN_TOLERANCE or abs(fit.var_p - controller.sigma2) > VARIANCE_TOLERANCE:
        warnings.warn(
            f"No (w, b) gives p_big mean {mu:.3f} and variance {controller.sigma2:.3f} on these frames; "
            f"the nearest gives {fit.mean_p:.3f} and {fit.var_p:.3f}.",
            DataWarning,
            stacklevel=3,
        )
    return fit


@torch.no_grad()
def surprisals_of(ar: AutoregressiveModel, examples: Sequence[Example]) -> list[NDArray[np.float32]]:
    """The surprisal of each utterance's frames, in the order of `examples`."""
    found: dict[str, NDArray[np.float32]] = {}
    ar.eval()
    for group in bucketed(examples, batch_size=32):
        batch = collate(group, distributed.device())
        surprisals = surprisal(batch.frames, ar(batch.frames)[1]).cpu()
        for identity, row, length in zip(batch.identities, surprisals, batch.num_frames.tolist(), strict=True):
            found[identity] = row[:length].numpy()
    return [found[example.identity] for example in examples]
