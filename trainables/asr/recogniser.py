"""A whole recogniser at work on a batch: autoregressive model, controller and networks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables import checkpoint, distributed, rng
from trainables.asr import controller as controllers
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Controller, Learned
from trainables.asr.controller import Control
from trainables.asr.data.batches import Batch
from trainables.asr.network import RoutedNetwork
from trainables.trial import Trial


@dataclass(frozen=True, eq=False)
class Output:
    """What a recogniser makes of a batch.

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


class Recogniser(nn.Module):
    """Autoregressive model and recogniser (Lugosch et al. 2020, arXiv:2006.01659).

    The autoregressive model drops out only where `ar_dropout` says so, and only in training: without, surprisal means
    the same in training and in testing. It has gradients only where `ar_loss_weight` says so.
    """

    def __init__(self, config: AsrConfig, num_labels: int, ar: AutoregressiveModel) -> None:
        super().__init__()
        self.config = config
        self.trains_ar = config.ar_loss_weight is not None
        self.ar = ar.requires_grad_(self.trains_ar)
        self.network = RoutedNetwork(config, num_labels)

    def train(self, mode: bool = True) -> "Recogniser":
        """Training mode for all but the autoregressive model, which follows where it drops out.

        Its recurrent layers, which have no dropout of their own, follow where it is trained on: cuDNN computes their
        gradients in training mode only.
        """
        super().train(mode)
        self.ar.train(mode and self.config.ar_dropout == "released")
        for module in self.ar.modules() if self.trains_ar else ():
            if isinstance(module, nn.GRU):
                module.train(mode)
        return self

    def weights(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: the networks, and the autoregressive model where that is trained on."""
        return {"recogniser": self.network.state_dict(), "ar": self.ar.state_dict() if self.trains_ar else {}}

    def put_back(self, state: Mapping[str, Any]) -> None:
        """Loads what `weights` gave."""
        self.network.load_state_dict(state["recogniser"])
        if self.trains_ar:
            self.ar.load_state_dict(state["ar"])

    def forward(
        self,
        frames: Float[Tensor, "B T F"],
        num_frames: Int[Tensor, " B"],
        control: Control,
        uniform: Float[Tensor, "B T"],
        kept: Float[Tensor, "B T K"] | None = None,
    ) -> Output:
        """Each network, the regressor included, runs only where it is needed.

        Args:
            num_frames: valid ones of each utterance, on the CPU.
            uniform: numbers in [0, 1) for the draws of stochastic routing.
            kept: what `frozen.keep` has of these utterances; then the autoregressive model does not run.
        """
        inputs, surprisals = self._read(frames, control.controller, kept)
        if isinstance(control.controller, Learned):
            log_probs, used_big = self.network(inputs, num_frames, None)
            return Output(log_probs, surprisals, used_big.detach(), used_big)
        p = controllers.p_big(control, surprisals.detach())
        chosen = controllers.choose(control, p.to(uniform.dtype), uniform)
        log_probs, used_big = self.network(inputs, num_frames, chosen)
        return Output(log_probs, surprisals, p, used_big)

    def _read(self, frames: Tensor, controller: Controller, kept: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the recogniser reads, and each frame's surprisal."""
        needs_surprisal = controllers.uses_surprisal(controller) or (self.trains_ar and self.training)
        reads_features = self.config.inputs == "ar_features"
        inputs, surprisals = frames, frames.new_zeros(frames.shape[:2])
        if kept is not None:
            return kept[..., :-1] if reads_features else inputs, kept[..., -1] if needs_surprisal else surprisals
        if reads_features or needs_surprisal:
            with torch.set_grad_enabled(self.trains_ar and torch.is_grad_enabled()):
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


def keyed_draws(batch: Batch, seed: int, name: str) -> Float[Tensor, "B T"]:
    """Numbers for the draws of a test: they depend on seed, name, utterance and frame alone, not on the batch."""
    uniform = torch.zeros(batch.frames.shape[:2], dtype=torch.float64)
    for row, (identity, length) in enumerate(zip(batch.identities, batch.num_frames.tolist(), strict=True)):
        uniform[row, :length] = torch.from_numpy(rng.keyed_uniform(length, seed, name, identity))
    return uniform.to(batch.frames.device)
