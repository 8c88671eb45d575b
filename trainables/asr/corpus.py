"""Utterances and their splits, whatever they come from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SAMPLE_RATE_HZ: Final = 16_000
"""Of all audio that the recognisers hear."""


@dataclass(frozen=True)
class Utterance:
    """One recording with its phones.

    Attributes:
        identity: unique within the corpus.
        speaker: never in two splits.
        labels: indices into the corpus's labels.
        num_samples: length at 16 kHz.
        audio: the file; None where the waveform is synthesised.
    """

    identity: str
    speaker: str
    labels: tuple[int, ...]
    num_samples: int
    audio: Path | None = None


@dataclass(frozen=True)
class Splits:
    """A corpus cut by speaker; `num_skipped` utterances were left out for words without phones."""

    train: tuple[Utterance, ...]
    validation: tuple[Utterance, ...]
    test: tuple[Utterance, ...]
    labels: tuple[str, ...]
    num_skipped: int = 0

    @property
    def all(self) -> tuple[Utterance, ...]:
        """Every utterance once."""
        return self.train + self.validation + self.test
