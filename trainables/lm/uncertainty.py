"""Error signals that say how uncertain the model is: the entropy of a mean over samples, members or copies."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.lm.config import AnchoredEnsemble, McDropout, Variational
from trainables.lm.entropy import entropy_of_mean, entropy_over_batch, softmax
from trainables.lm.lstm import product
from trainables.lm.noise import Noise
from trainables.lm.reading import Decoders, Reading, Workspace


@dataclass(eq=False)
class DropoutSignal:
    """Of K dropout masks on the top hidden state, or on the decoder's weights."""

    config: McDropout
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(self, step: int, hidden: list[Tensor]) -> Reading:
        """As `ErrorSignal`."""
        delta, slopes, probs = entropy_of_mean(self._logits(step, hidden[-1]))
        if self.config.masks == "weights":
            weights = [self.decoders.weight[0] * mask for mask in self._masks(step)]
            gradient = torch.stack([product(slopes[k], one.t()) for k, one in enumerate(weights)]).sum(0)
        else:
            rows = product(slopes.flatten(0, 1), self.decoders.weight[0].t()).view(*slopes.shape[:2], -1)
            gradient = (rows * self._masks(step)).sum(0)
        return Reading(delta, gradient / (1 - self.config.rate), len(hidden) - 1, probs)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """As `ErrorSignal`."""
        return entropy_of_mean(self._logits(step, hidden[-1]))[0]

    def _masks(self, step: int) -> Tensor:
        assert self.noise.samples is not None
        return self.noise.samples[step]

    def _logits(self, step: int, top: Tensor) -> Float[Tensor, "K B V"]:
        weight, bias, masks = self.decoders.weight[0], self.decoders.bias[0], self._masks(step)
        scaled = top / (1 - self.config.rate)
        if self.config.masks == "weights":
            return torch.stack([product(scaled, weight * mask, bias) for mask in masks])
        rows = (scaled * masks).flatten(0, 1)
        return self.workspace.product(bias, rows, weight).view(len(masks), len(top), -1)


@dataclass(eq=False)
class MomentsSignal:
    """The same as under masks of units without end, from mean and variance of every logit.

    Under unit dropout logit v is mu_v + e_v, with mu = W h + b and Cov(e_v, e_u) = c sum_j w_vj w_uj h_j^2, where
    c = rate / (1 - rate). To first order log p_v = log p0_v + e_v - p0 . e, with p0 the softmax of mu. Were that
    normal, its exponential's mean would be p0_v exp(s_v / 2), with s_v = c sum_j (w_vj - m_j)^2 h_j^2 its variance and
    m = W^T p0; normalised, this is taken for the mean softmax. What s_v / 2 has the same for all words does not matter.
    """

    config: McDropout
    decoders: Decoders
    squared: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.squared = self.decoders.weight[0].square()

    def read(self, step: int, hidden: list[Tensor]) -> Reading:
        """As `ErrorSignal`."""
        top, weight = hidden[-1], self.decoders.weight[0]
        plain, centre, logits = self._logits(top)
        delta, slopes, probs = entropy_of_mean(logits[None])
        along, across = product(slopes[0], weight.t()), product(slopes[0], self.squared.t())
        of_plain = product(-self._odds * top * top * along, weight)  # through the centre
        of_mean = plain * (of_plain - (plain * of_plain).sum(-1, keepdim=True))
        gradient = along * (1 - 2 * self._odds * top * centre) + self._odds * top * across
        return Reading(delta, gradient + product(of_mean, weight.t()), len(hidden) - 1, probs)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """As `ErrorSignal`."""
        return entropy_of_mean(self._logits(hidden[-1])[2][None])[0]

    @property
    def _odds(self) -> float:
        return self.config.rate / (1 - self.config.rate)

    def _logits(self, top: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The plain softmax, the weights' mean under it, and logits of the mean softmax."""
        weight, bias = self.decoders.weight[0], self.decoders.bias[0]
        plain = softmax(product(top, weight, bias))
        centre = product(plain, weight.t())
        squares = top * top
        moved = product(top - self._odds * squares * centre, weight, bias)
        return plain, centre, moved + self._odds / 2 * product(squares, self.squared)


@dataclass(eq=False)
class EnsembleSignal:
    """Of K decoders."""

    config: AnchoredEnsemble
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(self, step: int, hidden: list[Tensor]) -> Reading:
        """As `ErrorSignal`."""
        delta, slopes, probs = self._entropy(self._logits(step, hidden[-1]))
        gradient = product(slopes.flatten(1), self.decoders.weight.flatten(0, 1).t())
        mask = self.noise.at_decoder(step)
        return Reading(delta, gradient if mask is None else gradient * mask, len(hidden) - 1, probs)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """As `ErrorSignal`."""
        return self._entropy(self._logits(step, hidden[-1]))[0]

    def _entropy(self, logits: Float[Tensor, "B K V"]) -> tuple[Tensor, Tensor, Tensor]:
        if self.config.entropy == "members":
            return entropy_of_mean(logits, samples_dim=1)
        return entropy_over_batch(logits)

    def _logits(self, step: int, top: Tensor) -> Float[Tensor, "B K V"]:
        mask = self.noise.at_decoder(step)
        weight, bias = self.decoders.weight, self.decoders.bias
        masked = top if mask is None else top * mask
        product = self.workspace.product(bias.flatten(), masked, weight.flatten(0, 1))
        return product.view(len(top), *bias.shape)


@dataclass(eq=False)
class VariationalSignal:
    """Of K states, each under masks of its own; the rows are K times the batch."""

    config: Variational
    decoders: Decoders
    noise: Noise
    workspace: Workspace = field(default_factory=Workspace)

    def read(self, step: int, hidden: list[Tensor]) -> Reading:
        """As `ErrorSignal`."""
        delta, slopes, probs = entropy_of_mean(self._logits(step, hidden[-1]))
        gradient = product(slopes.flatten(0, 1), self.decoders.weight[0].t())
        mask = self.noise.at_decoder(step)
        return Reading(delta, gradient if mask is None else gradient * mask, len(hidden) - 1, probs)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """As `ErrorSignal`."""
        return entropy_of_mean(self._logits(step, hidden[-1]))[0]

    def _logits(self, step: int, top: Tensor) -> Float[Tensor, "K B V"]:
        mask = self.noise.at_decoder(step)
        masked = top if mask is None else top * mask
        product = self.workspace.product(self.decoders.bias[0], masked, self.decoders.weight[0])
        return product.view(self.config.num_samples, -1, product.shape[1])
