"""Error signals that say how uncertain the model is: the entropy of a mean over samples, members or copies."""

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.lm.config import AnchoredEnsemble, McDropout, Variational
from trainables.lm.entropy import entropy_of_mean, entropy_over_batch
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

    Under unit dropout the logit of word v has mean mu_v = w_v . h and variance r / (1 - r) sum_j w_vj^2 h_j^2. What all
    words' weights have in common moves all logits together and no probability, so it is taken off first. The mean
    softmax is then taken to be that of mu_v / sqrt(1 + pi / 8 var_v), MacKay's approximation of a mean sigmoid (1992,
    "The evidence framework applied to classification networks"), for each word by itself.
    """

    config: McDropout
    decoders: Decoders
    centred: Tensor = field(init=False)
    squared: Tensor = field(init=False)

    def __post_init__(self) -> None:
        weight = self.decoders.weight[0]
        self.centred = weight - weight.mean(0)
        self.squared = self.centred * self.centred

    def read(self, step: int, hidden: list[Tensor]) -> Reading:
        """As `ErrorSignal`."""
        top = hidden[-1]
        mean, spread = self._moments(top)
        delta, slopes, probs = entropy_of_mean((mean / spread)[None])
        of_mean = slopes[0] / spread
        of_variance = -math.pi / 16 * mean * of_mean / (spread * spread)
        gradient = product(of_mean, self.centred.t())
        gradient = gradient + 2 * self._odds * top * product(of_variance, self.squared.t())
        return Reading(delta, gradient, len(hidden) - 1, probs)

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """As `ErrorSignal`."""
        mean, spread = self._moments(hidden[-1])
        return entropy_of_mean((mean / spread)[None])[0]

    @property
    def _odds(self) -> float:
        return self.config.rate / (1 - self.config.rate)

    def _moments(self, top: Tensor) -> tuple[Tensor, Tensor]:
        """Mean, and sqrt(1 + pi / 8 variance), of every logit."""
        bias = self.decoders.bias[0]
        mean = product(top, self.centred, bias - bias.mean())
        variance = self._odds * product(top * top, self.squared)
        return mean, (1 + math.pi / 8 * variance).sqrt()


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
