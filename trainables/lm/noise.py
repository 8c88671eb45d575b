"""All that is random in one window: dropout masks, samples, gates and directions, drawn before it runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.conditional.gather import take
from trainables.lm.config import FiniteDifference, LmConfig, McDropout, Recoder, Variational
from trainables.lm.gate_config import Chance
from trainables.lm.shapes import num_copies


@runtime_checkable
class Masks(Protocol):
    """Masks of K samples at each step."""

    def __getitem__(self, step: int) -> Tensor:
        """The masks of one step: units (K B H) or weights (K V H), True where kept; the same at each call."""


@dataclass(frozen=True)
class WeightMasks:
    """Masks of the decoder's weights, made when they are asked for: those of a whole window are too many to keep."""

    seed: int
    shape: tuple[int, int, int]
    keep: float
    device: torch.device

    def __getitem__(self, step: int) -> Tensor:
        """The masks of one step, as `Masks` gives them."""
        generator = torch.Generator(self.device).manual_seed((self.seed + step) % 2**63)
        return torch.empty(self.shape, dtype=torch.bool, device=self.device).bernoulli_(self.keep, generator=generator)


def masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """The product of values and mask; the `values` themselves without a mask."""
    return values if mask is None else values * mask


@dataclass(frozen=True, eq=False)
class Noise:
    """Multiplicative masks are 0 or 1 / (1 - rate); None stands for ones. T steps, R rows, A = 2 L activations.

    Attributes:
        embeddings: (T R E).
        between: between layers l and l + 1 (T R H).
        decoder: on what is decoded (T R H).
        recurrent: on h where it enters each layer again (R H).
        samples: of MC dropout, not scaled.
        gates: which tokens are recoded, 0 or 1 (T B).
        directions: of finite differences, +1 or -1 (T N A R H).
    """

    embeddings: Tensor | None = None
    between: Sequence[Tensor | None] = ()
    decoder: Tensor | None = None
    recurrent: Sequence[Tensor | None] = ()
    samples: Masks | None = None
    gates: Float[Tensor, "T B"] | None = None
    directions: Tensor | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether all of it is there; the masks of weights are drawn at their step."""
        return self.samples is None or isinstance(self.samples, Tensor)

    def mapped(self, function: Callable[[Tensor], Tensor]) -> "Noise":
        """`function` of every tensor; only of noise that `is_drawn`."""

        def one(values: Tensor | None) -> Tensor | None:
            return None if values is None else function(values)

        return Noise(
            one(self.embeddings),
            [one(mask) for mask in self.between],
            one(self.decoder),
            [one(mask) for mask in self.recurrent],
            one(self.samples) if isinstance(self.samples, Tensor) else None,
            one(self.gates),
            one(self.directions),
        )

    def tensors(self) -> list[Tensor]:
        """The tensors of the noise, always in the same order."""
        tensors: list[Tensor] = []

        def note(values: Tensor) -> Tensor:
            tensors.append(values)
            return values

        self.mapped(note)
        return tensors

    def streams(self, rows: Tensor, batch_size: int) -> "Noise":
        """What the streams `rows` of a batch get of it, in all their copies."""

        def cut(values: Tensor | None, axis: int) -> Tensor | None:
            if values is None:
                return None
            copies = torch.arange(0, values.shape[axis], batch_size, device=rows.device)
            return values.index_select(axis, (copies[:, None] + rows).flatten())

        return Noise(
            cut(self.embeddings, 1),
            [cut(mask, 1) for mask in self.between],
            cut(self.decoder, 1),
            [cut(mask, 0) for mask in self.recurrent],
            self.samples.index_select(2, rows) if isinstance(self.samples, Tensor) else self.samples,
            cut(self.gates, 1),
            cut(self.directions, 3),
        )

    def mask_decoded(self, step: int, hidden: Float[Tensor, "R H"], rows: Tensor | None = None) -> Float[Tensor, "R H"]:
        """Top states as they are decoded at `step`; of `rows` alone, by number, where they are given."""
        return masked(hidden, None if self.decoder is None else take(self.decoder[step], 0, rows))

    def mask_between(self, layer: int, steps: int | slice, hidden: Tensor, rows: Tensor | None = None) -> Tensor:
        """Hidden states of `layer` as the next one reads them: (R H) at one step, (T R H) at some.

        At one step they may be of `rows` alone, by number.
        """
        mask = self.between[layer] if self.between else None
        return masked(hidden, None if mask is None else take(mask[steps], 0, rows))

    def mask_recurrent(self, layer: int, hidden: Tensor) -> Tensor:
        """Hidden states (... R H) as they enter `layer` again."""
        return masked(hidden, self.recurrent[layer] if self.recurrent else None)


def draw(
    config: LmConfig,
    recoder: Recoder | None,
    shape: tuple[int, int],
    vocabulary_size: int,
    generator: torch.Generator,
    is_training: bool,
) -> Noise:
    """The noise of a window of `shape` (T, B), always in the same order; ordinary dropout in training alone."""
    num_steps, batch_size = shape
    signal, rows = recoder.signal if recoder else None, batch_size * num_copies(recoder)
    hidden, num_layers = config.hidden_size, config.num_layers

    def mask(rate: float, *shape: int) -> Tensor | None:
        if not rate:
            return None
        kept = torch.empty(shape, device=generator.device).bernoulli_(1 - rate, generator=generator)
        return kept.div_(1 - rate)

    if isinstance(signal, Variational):  # one set of masks for the whole window

        def whole(size: int) -> Tensor | None:
            masks = mask(signal.rate, rows, size)
            return None if masks is None else masks.expand(num_steps, rows, size)

        ordinary = Noise(
            whole(config.embedding_size),
            [whole(hidden) for _ in range(num_layers - 1)],
            whole(hidden),
            [mask(signal.rate, rows, hidden) for _ in range(num_layers)],
        )
    elif is_training:
        rate = config.dropout.rate
        between = rate if config.dropout.between_layers else 0.0
        ordinary = Noise(
            mask(rate, num_steps, rows, config.embedding_size),
            [mask(between, num_steps, rows, hidden) for _ in range(num_layers - 1)],
            mask(rate, num_steps, rows, hidden),
        )
    else:
        ordinary = Noise()
    if recoder is None:
        return ordinary
    return Noise(
        ordinary.embeddings,
        ordinary.between,
        ordinary.decoder,
        ordinary.recurrent,
        _samples(signal, (num_steps, batch_size, hidden), vocabulary_size, generator),
        _gates(recoder, shape, generator),
        _directions(recoder, (num_steps, 2 * num_layers, rows, hidden), generator),
    )


def _samples(
    signal: object, shape: tuple[int, int, int], vocabulary_size: int, generator: torch.Generator
) -> Masks | None:
    if not isinstance(signal, McDropout) or signal.estimator == "moments":
        return None
    num_steps, batch_size, hidden = shape
    if signal.masks == "weights":
        seed = int(torch.randint(2**62, (), device=generator.device, generator=generator))
        weights = (signal.num_samples, vocabulary_size, hidden)
        return WeightMasks(seed, weights, 1 - signal.rate, generator.device)
    units = (num_steps, signal.num_samples, batch_size, hidden)
    kept = torch.empty(units, dtype=torch.bool, device=generator.device)
    return kept.bernoulli_(1 - signal.rate, generator=generator)


def _gates(recoder: Recoder, shape: tuple[int, int], generator: torch.Generator) -> Tensor | None:
    if not isinstance(recoder.gate, Chance):
        return None
    drawn = (shape[0], 1) if recoder.gate.each == "batch" else shape
    gates = torch.empty(drawn, device=generator.device)
    return gates.bernoulli_(recoder.gate.probability, generator=generator).expand(shape)


def _directions(recoder: Recoder, shape: tuple[int, int, int, int], generator: torch.Generator) -> Tensor | None:
    if not isinstance(recoder.gradient, FiniteDifference):
        return None
    steps, *rest = shape
    signs = torch.empty((steps, recoder.gradient.num_directions, *rest), device=generator.device)
    return signs.bernoulli_(0.5, generator=generator).mul_(2).sub_(1)
