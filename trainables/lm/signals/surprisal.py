"""The surprisal of the token that came, in its variants, as an error signal."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from trainables.conditional.gather import take
from trainables.lm.config import Surprisal
from trainables.lm.lstm import product
from trainables.lm.noise import Noise
from trainables.lm.signals.entropy import softmax
from trainables.lm.signals.error_signal import Decoders, Opens, Output, Reading, Workspace


@dataclass(eq=False)
class SurprisalSignal:
    """The error signal of the token that came; its reading also has the loss, which is of the same output distribution.

    Attributes:
        keeps: whether gradients of the loss will be asked for, so that distributions must stay.
        kept: output distributions of all steps (T B V), in one array where a CPU keeps them without a graph.
        chosen: the targets so far, by step.
    """

    config: Surprisal
    decoders: Decoders
    targets: Int[Tensor, "T B"]
    noise: Noise
    keeps: bool = False
    kept: Tensor | None = field(init=False, default=None)
    chosen: dict[int, Tensor] = field(default_factory=dict)
    workspace: Workspace = field(default_factory=Workspace)

    def __post_init__(self) -> None:
        weight = self.decoders.weight
        if self.keeps and not torch.is_grad_enabled() and not weight.is_cuda:
            self.kept = weight.new_empty(*self.targets.shape, weight.shape[1])

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        weight, gold = self.decoders.weight[0], take(self.targets[step].clamp_min(0), 0, streams)
        keeps = self.keeps and step not in self.chosen
        top, logits = self._logits(step, hidden, streams)
        largest = logits.amax(-1)
        if step not in self.chosen:
            self.chosen[step] = gold if self.config.target == "gold" else logits.argmax(-1)
        target = take(self.chosen[step], 0, streams)
        gold_logit = logits.gather(1, gold[:, None])[:, 0]
        logit = gold_logit if target is gold else logits.gather(1, target[:, None])[:, 0]
        probs = softmax(logits)
        normaliser = largest - probs.amax(-1).log()  # logsumexp, without exponentials of its own
        delta, slope = self._delta(logit, normaliser)
        opened = opens(delta, probs) if opens else None
        loss_gradient = mean_weight = None
        if keeps:  # of every row, because the loss is
            mean_weight = product(probs, weight.t())
            loss_gradient = self.noise.mask_decoded(step, mean_weight - weight.index_select(0, gold))
            mean_weight = take(mean_weight, 0, opened)
        elif self.config.compares:
            mean_weight = product(take(probs, 0, opened), weight.t())
        gradient = self._gradient(
            mean_weight, take(target, 0, opened), None if slope is None else take(slope, 0, opened)
        )
        gradient = self.noise.mask_decoded(step, gradient, streams if opened is None else opened)
        output = Output(normaliser - gold_logit, loss_gradient, top)
        return Reading(delta, gradient, len(hidden) - 1, probs, output, opened)

    def _gradient(self, mean_weight: Tensor | None, target: Tensor, slope: Tensor | None) -> Tensor:
        """The gradient of delta in what is decoded; `mean_weight` is the decoder's mean row under the output."""
        of_target = self.decoders.weight[0].index_select(0, target)
        if slope is None:
            assert mean_weight is not None
            return mean_weight - of_target
        if not self.config.compares or mean_weight is None:
            return slope[:, None] * of_target
        return slope[:, None] * (of_target - mean_weight)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it."""
        _, logits = self._logits(step, hidden)
        logit = logits.gather(1, self.chosen[step][:, None])[:, 0]
        return self._delta(logit, logits.logsumexp(-1))[0]

    def _logits(self, step: int, hidden: list[Tensor], streams: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What is decoded, and its logits; what a later look at the same step finds does not take the first's place."""
        top = self.noise.mask_decoded(step, hidden[-1], streams)
        weight, bias = self.decoders.weight[0], self.decoders.bias[0]
        if step in self.chosen:
            return top, product(top, weight, bias)
        if self.kept is not None:
            return top, torch.addmm(bias, top, weight.t(), out=self.kept[step])
        return top, product(top, weight, bias) if self.keeps else self.workspace.product(bias, top, weight)

    def _delta(self, logit: Tensor, normaliser: Tensor) -> tuple[Tensor, Tensor | None]:
        """Delta, and its derivative with respect to log p (eq44; None for nll, where it is -1) or to the logit."""
        if self.config.variant == "nll":
            return normaliser - logit, None
        if self.config.variant == "inject":
            return -logit, torch.full_like(logit, -1.0)
        log_p = F.logsigmoid(logit) if self.config.variant == "sigmoid" else logit - normaliser
        p = log_p.exp()
        power = (-p * log_p).exp()
        slope = -power * p * (1 + log_p)
        return power - 1, slope * (1 - p) if self.config.variant == "sigmoid" else slope
