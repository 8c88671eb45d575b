"""A whole recogniser at work on a batch: autoregressive model, controller and networks; and the fits it needs."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from trainables import checkpoint, distributed, rng
from trainables.asr import controller as controllers
from trainables.asr import cost, data
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Budget, Controller, Evaluation, Learned, Surprisal
from trainables.asr.controller import Control, SurprisalFit
from trainables.asr.data import Batch, Example, Examples
from trainables.asr.network import Recogniser
from trainables.config import content_hash
from trainables.errors import DataWarning
from trainables.trial import Trial

MEAN_TOLERANCE: Final = 0.01
VARIANCE_TOLERANCE: Final = 0.005
"""How near a fit must come to its targets before it is said that they are out of reach."""

Fits = Mapping[str, SurprisalFit]
"""The fit of each surprisal controller, by the hash of its settings."""


@dataclass(frozen=True, eq=False)
class Heard:
    """What a listener makes of a batch.

    Attributes:
        log_probs: of the labels and, last, the blank.
        surprisals: in nats; zeros where nothing needs them. With a gradient where the AR model is trained on.
        p_big: 0 or 1 under the learned controller.
        used_big: 1 where a frame took the big network, else 0; with a gradient where a gate is trained.
    """

    log_probs: Float[Tensor, "B T L"]
    surprisals: Float[Tensor, "B T"]
    p_big: Float[Tensor, "B T"]
    used_big: Float[Tensor, "B T"]


class Listener(nn.Module):
    """Autoregressive model and recogniser (Lugosch et al. 2020, arXiv:2006.01659).

    The autoregressive model never drops out, so that surprisal means the same in training and in testing; it has
    gradients only where `ar_loss_weight` says so.
    """

    def __init__(self, config: AsrConfig, num_labels: int, ar: AutoregressiveModel) -> None:
        super().__init__()
        self.config = config
        self.trains_ar = config.ar_loss_weight is not None
        self.ar = ar.requires_grad_(self.trains_ar)
        self.recogniser = Recogniser(config, num_labels)

    def train(self, mode: bool = True) -> "Listener":
        """Training mode for all but the autoregressive model.

        Its recurrent layers, which have no dropout of their own, follow where it is trained on: cuDNN computes their
        gradients in training mode only.
        """
        super().train(mode)
        self.ar.eval()
        for module in self.ar.modules() if self.trains_ar else ():
            if isinstance(module, nn.GRU):
                module.train(mode)
        return self

    def forward(
        self,
        frames: Float[Tensor, "B T F"],
        num_frames: Int[Tensor, " B"],
        control: Control,
        uniform: Float[Tensor, "B T"],
    ) -> Heard:
        """Each network, the regressor included, runs only where it is needed.

        Args:
            num_frames: valid ones of each utterance, on the CPU.
            uniform: numbers in [0, 1) for the draws of stochastic routing.
        """
        inputs, surprisals = self._listen(frames, control.controller)
        if isinstance(control.controller, Learned):
            log_probs, used_big = self.recogniser(inputs, num_frames, None)
            return Heard(log_probs, surprisals, used_big.detach(), used_big)
        p = controllers.p_big(control, surprisals.detach())
        chosen = controllers.choose(p.to(uniform.dtype), uniform, control.routing)
        log_probs, used_big = self.recogniser(inputs, num_frames, chosen)
        return Heard(log_probs, surprisals, p, used_big)

    def _listen(self, frames: Tensor, controller: Controller) -> tuple[Tensor, Tensor]:
        """What the recogniser reads, and each frame's surprisal."""
        needs_surprisal = controllers.uses_surprisal(controller) or (self.trains_ar and self.training)
        inputs, surprisals = frames, frames.new_zeros(frames.shape[:2])
        if self.config.inputs == "ar_features" or needs_surprisal:
            with torch.set_grad_enabled(self.trains_ar and torch.is_grad_enabled()):
                reads_features = self.config.inputs == "ar_features"
                # no feature of the last frame is needed where only predictions are
                encoded = self.ar.encode(frames if reads_features else frames[:, :-1])
                if needs_surprisal:
                    surprisals = surprisal(frames, self.ar.regressor(encoded[:, : frames.shape[1]]))
                if reads_features:
                    inputs = encoded[:, 1:]
        return inputs, surprisals


def load_ar(config: AsrConfig, trial: Trial) -> AutoregressiveModel:
    """The pretrained autoregressive model, on this process's device."""
    ar = AutoregressiveModel(config.pretraining)
    ar.load_state_dict(checkpoint.load(trial.prerequisite("ar"))["model"])
    return ar.to(distributed.device()).eval()


def ctc_losses(log_probs: Float[Tensor, "B T L"], batch: Batch) -> Float[Tensor, " B"]:
    """Negative log-probability of each utterance's labels, in nats; the blank is the last symbol."""
    targets = torch.tensor([label for labels in batch.labels for label in labels], dtype=torch.long)
    lengths = torch.tensor([len(labels) for labels in batch.labels])
    blank = log_probs.shape[-1] - 1
    return F.ctc_loss(
        log_probs.transpose(0, 1), targets.to(log_probs.device), batch.num_frames, lengths, blank, reduction="none"
    )


def keyed_draws(batch: Batch, seed: int, name: str) -> Float[Tensor, "B T"]:
    """Numbers for the draws of a test: they depend on seed, name, utterance and frame alone, not on the batch."""
    uniform = torch.zeros(batch.frames.shape[:2], dtype=torch.float64)
    for row, (identity, length) in enumerate(zip(batch.identities, batch.num_frames.tolist(), strict=True)):
        uniform[row, :length] = torch.from_numpy(rng.keyed_uniform(length, seed, name, identity))
    return uniform.to(batch.frames.device)


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
        audio = data.load_audio(config.beside(controller.data), config.ar.features, spared).train
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
    for group in data.bucketed(examples, batch_size=32):
        batch = data.collate(group, distributed.device())
        surprisals = surprisal(batch.frames, ar(batch.frames)[1]).cpu()
        for identity, row, length in zip(batch.identities, surprisals, batch.num_frames.tolist(), strict=True):
            found[identity] = row[:length].numpy()
    return [found[example.identity] for example in examples]
