"""Utterances and their splits, whatever they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainables import rng


@dataclass(frozen=True)
class Utterance:
    """One recording with its phones.

    Attributes:
        identity: unique within the corpus.
        speaker: never in two splits.
        labels: indices into the corpus's labels; none where only the audio was asked for.
        num_samples: length at 16 kHz.
        audio: the file; None where the waveform is synthesised.
        times_s: start and end of each label in seconds, where the corpus knows them.
    """

    identity: str
    speaker: str
    labels: tuple[int, ...]
    num_samples: int
    audio: Path | None = None
    times_s: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True)
class Splits:
    """A corpus cut by speaker; `num_skipped` utterances were left out for want of phones."""

    train: tuple[Utterance, ...]
    validation: tuple[Utterance, ...]
    test: tuple[Utterance, ...]
    labels: tuple[str, ...]
    num_skipped: int = 0


def choose(utterances: Sequence[Utterance], number: int | None, seed: int, name: str) -> tuple[Utterance, ...]:
    """A seeded choice of `number` utterances in their order; None: all."""
    if number is None or number >= len(utterances):
        return tuple(utterances)
    chosen = rng.numpy_generator(seed, "choose", name).permutation(len(utterances))[:number]
    return tuple(utterances[i] for i in np.sort(chosen))
