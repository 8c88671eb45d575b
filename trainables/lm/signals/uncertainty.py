"""Error signals that say how uncertain the model is: the entropy of a mean over samples, members or copies."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.conditional.gather import take
from trainables.lm.config import AnchoredEnsemble, McDropout, Variational
from trainables.lm.lstm import product
from trainables.lm.noise import Noise
from trainables.lm.signals.entropy import entropy_of_mean, entropy_over_batch
from trainables.lm.signals.error_signal import Decoders, Opens, Reading, Workspace, rows_of


@dataclass(eq=False)
class DropoutSignal:
    """The error signal of K dropout masks on the top hidden state, or on the decoder's weights."""

    config: McDropout
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        masks = self._masks(step)
        if self.config.masks == "units":
            masks = take(masks, 1, streams)
        delta, slopes, probs = entropy_of_mean(self._logits(masks, hidden[-1]))
        opened = opens(delta, probs) if opens else None
        slopes = take(slopes, 1, opened)
        if self.config.masks == "weights":
            weights = [self.decoders.weight[0] * mask for mask in masks]
            gradient = torch.stack([product(slopes[k], weight.t()) for k, weight in enumerate(weights)]).sum(0)
        else:
            gradients = product(slopes.flatten(0, 1), self.decoders.weight[0].t())
            rows = gradients.view(*slopes.shape[:2], gradients.shape[1])
            gradient = (rows * take(masks, 1, opened)).sum(0)
        return Reading(delta, gradient * self.config.kept_scale, len(hidden) - 1, probs, opened=opened)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it."""
        return entropy_of_mean(self._logits(self._masks(step), hidden[-1]))[0]

    def _masks(self, step: int) -> Tensor:
        assert self.noise.samples is not None
        return self.noise.samples[step]

    def _logits(self, masks: Tensor, top: Tensor) -> Float[Tensor, "K B V"]:
        weight, bias = self.decoders.weight[0], self.decoders.bias[0]
        scaled = top * self.config.kept_scale
        if self.config.masks == "weights":
            return torch.stack([product(scaled, weight * mask, bias) for mask in masks])
        rows = (scaled * masks).flatten(0, 1)
        return self.workspace.product(bias, rows, weight).view(len(masks), len(top), len(weight))


@dataclass(eq=False)
class MomentsSignal:
    """The error signal under masks of units without end, from mean and variance of every logit.

    Under unit dropout logit v is mu_v + e_v, with mu = W h + b and Cov(e_v, e_u) = c sum_j w_vj w_uj h_j^2, where
    c = rate / (1 - rate). To first order log p_v = log p0_v + e_v - p0 . e, with p0 the softmax of mu and, of what is
    added to it, the variance s_v = c sum_j (w_vj - m_j)^2 h_j^2, m = W^T p0. Were that normal and small, p_v would have
    the mean p0_v exp(s_v / 2). The mean softmax is taken to be that of log p0_v + 2 (1 - exp(-s_v / 4)), which begins
    as s_v / 2 and is bounded because no probability exceeds 1; `benchmarks/moments.py` says how well.
    """

    config: McDropout
    decoders: Decoders
    squared: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.squared = self.decoders.weight[0].square()

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        top, weight = hidden[-1], self.decoders.weight[0]
        plain, centre, variance, logits = self._logits(top)
        delta, slopes, probs = entropy_of_mean(logits[None])
        opened = opens(delta, probs) if opens else None
        top, plain, centre, variance, of_mean = (
            take(tensor, 0, opened) for tensor in (top, plain, centre, variance, slopes[0])
        )
        of_variance = self._odds * of_mean * (-variance / 4).exp() / 2
        along, across = product(of_variance, weight.t()), product(of_variance, self.squared.t())
        total = of_variance.sum(-1, keepdim=True)
        of_centre = 2 * top * top * (centre * total - along)
        of_plain = product(of_centre, weight)
        of_mean = of_mean + plain * (of_plain - (plain * of_plain).sum(-1, keepdim=True))
        gradient = product(of_mean, weight.t()) + 2 * top * (across + centre * (centre * total - 2 * along))
        return Reading(delta, gradient, len(hidden) - 1, probs, opened=opened)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it."""
        return entropy_of_mean(self._logits(hidden[-1])[3][None])[0]

    @property
    def _odds(self) -> float:
        return self.config.rate / (1 - self.config.rate)

    def _logits(self, top: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The plain softmax, the weights' mean under it, the variances s, and logits of the mean softmax."""
        weight, bias = self.decoders.weight[0], self.decoders.bias[0]
        mean, squares = product(top, weight, bias), top * top
        plain = mean.softmax(-1)
        centre = product(plain, weight.t())
        crossed = product(squares * centre, weight)
        variance = product(squares, self.squared) - 2 * crossed + (squares * centre * centre).sum(-1, keepdim=True)
        variance = self._odds * variance
        return plain, centre, variance, mean + 2 * (1 - (-variance / 4).exp())


@dataclass(eq=False)
class EnsembleSignal:
    """The error signal of K decoders."""

    config: AnchoredEnsemble
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        delta, slopes, probs = self._entropy(self._logits(step, hidden[-1], streams))
        opened = opens(delta, probs) if opens else None
        gradient = product(take(slopes, 0, opened).flatten(1), self.decoders.weight.flatten(0, 1).t())
        gradient = self.noise.mask_decoded(step, gradient, streams if opened is None else opened)
        return Reading(delta, gradient, len(hidden) - 1, probs, opened=opened)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it."""
        return self._entropy(self._logits(step, hidden[-1]))[0]

    def _entropy(self, logits: Float[Tensor, "B K V"]) -> tuple[Tensor, Tensor, Tensor]:
        if self.config.entropy == "members":
            return entropy_of_mean(logits, samples_dim=1)
        return entropy_over_batch(logits)

    def _logits(self, step: int, top: Tensor, streams: Tensor | None = None) -> Float[Tensor, "B K V"]:
        weight, bias = self.decoders.weight, self.decoders.bias
        masked = self.noise.mask_decoded(step, top, streams)
        product = self.workspace.product(bias.flatten(), masked, weight.flatten(0, 1))
        return product.view(len(top), *bias.shape)


@dataclass(eq=False)
class VariationalSignal:
    """The error signal of K states, each under masks of its own; the rows are K times the batch."""

    config: Variational
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """The reading of `ErrorSignal.read`."""
        delta, slopes, probs = entropy_of_mean(self._logits(step, hidden[-1], streams))
        opened = opens(delta, probs) if opens else None
        gradient = product(take(slopes, 1, opened).flatten(0, 1), self.decoders.weight[0].t())
        gradient = self.noise.mask_decoded(step, gradient, self._rows(streams if opened is None else opened))
        return Reading(delta, gradient, len(hidden) - 1, probs, opened=opened)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta, as `ErrorSignal.delta` defines it."""
        return entropy_of_mean(self._logits(step, hidden[-1]))[0]

    def _rows(self, streams: Tensor | None) -> Tensor | None:
        num_samples = self.config.num_samples
        num_rows = 0 if self.noise.decoder is None else self.noise.decoder.shape[1]
        return rows_of(streams, num_rows // num_samples, num_samples)

    def _logits(self, step: int, top: Tensor, streams: Tensor | None = None) -> Float[Tensor, "K B V"]:
        masked = self.noise.mask_decoded(step, top, self._rows(streams))
        product = self.workspace.product(self.decoders.bias[0], masked, self.decoders.weight[0])
        num_samples = self.config.num_samples
        return product.view(num_samples, len(top) // num_samples, product.shape[1])
