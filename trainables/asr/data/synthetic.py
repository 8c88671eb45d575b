"""A deterministic speech corpus: words of known phones, spoken by a small formant synthesiser.

Vowels and sonorants are pulse trains, fricatives noise, stops silence and a burst; each is shaped by two-pole
resonators at textbook formant frequencies (Peterson and Barney 1952 for the vowels), scaled per speaker.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from trainables import rng
from trainables.asr.data.config import SAMPLE_RATE_HZ, Synthetic
from trainables.asr.data.corpus import Splits, Utterance

if TYPE_CHECKING:
    from torch import Tensor

BANDWIDTH_HZ: Final = 90.0
"""The bandwidth of a formant."""


@dataclass(frozen=True)
class Sound:
    """How one phone is made: formants in Hz, share of voicing in [0, 1], mean duration, loudness."""

    formants_hz: tuple[float, ...]
    voicing: float
    duration_s: float
    loudness: float


SOUNDS: dict[str, Sound] = {
    "aa": Sound((730, 1090, 2440), 1.0, 0.12, 1.0),
    "ae": Sound((660, 1720, 2410), 1.0, 0.12, 1.0),
    "eh": Sound((530, 1840, 2480), 1.0, 0.10, 1.0),
    "iy": Sound((270, 2290, 3010), 1.0, 0.11, 0.9),
    "uw": Sound((300, 870, 2240), 1.0, 0.11, 0.9),
    "er": Sound((490, 1350, 1690), 1.0, 0.11, 0.9),
    "m": Sound((250, 1000, 2200), 1.0, 0.08, 0.5),
    "n": Sound((250, 1500, 2600), 1.0, 0.08, 0.5),
    "l": Sound((360, 1050, 2800), 1.0, 0.07, 0.6),
    "s": Sound((5200, 6800), 0.0, 0.11, 0.4),
    "sh": Sound((2600, 3800), 0.0, 0.11, 0.4),
    "z": Sound((5000, 6500, 250), 0.4, 0.09, 0.4),
    "f": Sound((1400, 7200), 0.0, 0.09, 0.15),
    "t": Sound((4000, 5500), 0.0, 0.06, 0.5),
    "k": Sound((1800, 2600), 0.0, 0.06, 0.5),
    "b": Sound((400, 1100), 0.6, 0.06, 0.5),
}
PAUSE_SAMPLES = SAMPLE_RATE_HZ // 20
STOPS = frozenset({"t", "k", "b"})
LABELS: tuple[str, ...] = tuple(SOUNDS)


@cache
def make_splits(config: Synthetic) -> Splits:
    """The corpus: validation and test have a sixth of the speakers each, at least one; the others train."""
    speakers = [f"speaker{i:02d}" for i in range(config.num_speakers)]
    num_held_out = max(1, config.num_speakers // 6)
    validation, test = speakers[:num_held_out], speakers[num_held_out : 2 * num_held_out]
    return Splits(
        train=_utterances(config, speakers[2 * num_held_out :], config.num_train_utterances, "train"),
        validation=_utterances(config, validation, config.num_validation_utterances, "validation"),
        test=_utterances(config, test, config.num_test_utterances, "test"),
        labels=LABELS,
    )


def _utterances(config: Synthetic, speakers: list[str], number: int, split: str) -> tuple[Utterance, ...]:
    made = []
    for i in range(number):
        identity, speaker = f"{split}-{i:05d}", speakers[i % len(speakers)]
        labels = _sentence(config, identity)
        ends = PAUSE_SAMPLES + np.cumsum([len(source) for source in _sources(config, identity, speaker, labels)[1]])
        ends_s = [PAUSE_SAMPLES / SAMPLE_RATE_HZ, *(ends / SAMPLE_RATE_HZ).tolist()]
        times_s = tuple(pairwise(ends_s))
        made.append(Utterance(identity, speaker, labels, int(ends[-1]) + PAUSE_SAMPLES, None, times_s))
    return tuple(made)


@cache
def _lexicon(config: Synthetic) -> tuple[tuple[int, ...], ...]:
    """Words of two to four phones, consonants and vowels in turn."""
    draw = rng.numpy_generator(config.seed, "lexicon")
    vowels, consonants = range(6), range(6, len(LABELS))
    words = []
    for _ in range(config.num_words):
        first = int(draw.integers(2))
        kinds = [(consonants, vowels)[(first + k) % 2] for k in range(int(draw.integers(2, 5)))]
        words.append(tuple(int(draw.choice(kind)) for kind in kinds))
    return tuple(words)


def _sentence(config: Synthetic, identity: str) -> tuple[int, ...]:
    """Words drawn by Zipf's law, so that some are easier to foresee than others."""
    draw = rng.numpy_generator(config.seed, "sentence", identity)
    weights = 1 / np.arange(1, config.num_words + 1)
    chosen = draw.choice(config.num_words, size=config.num_words_per_utterance, p=weights / weights.sum())
    return tuple(label for word in chosen for label in _lexicon(config)[word])


def waveform(config: Synthetic, identity: str, speaker: str, labels: tuple[int, ...]) -> "Float[Tensor, ' N']":
    """What `speaker` says: samples in [-1, 1] at 16 kHz, with 50 ms of room noise on both sides."""
    import torch

    silence = np.zeros(PAUSE_SAMPLES)
    tract, sources = _sources(config, identity, speaker, labels)
    sounds = [_sound(LABELS[label], tract, source) for label, source in zip(labels, sources, strict=True)]
    speech = np.concatenate([silence, *sounds, silence])
    noise = rng.numpy_generator(config.seed, "noise", identity).standard_normal(len(speech))
    return torch.from_numpy(np.clip(0.3 * speech + config.noise * noise, -1, 1).astype(np.float32))


def _sources(
    config: Synthetic, identity: str, speaker: str, labels: tuple[int, ...]
) -> tuple[float, list[NDArray[np.float64]]]:
    """The size of the speaker's vocal tract, and each phone before the tract has shaped it, as long as after."""
    voice = rng.numpy_generator(config.seed, "voice", speaker)
    pitch_hz, tract, rate = voice.uniform(90, 230), voice.uniform(0.88, 1.14), voice.uniform(0.85, 1.2)
    draw = rng.numpy_generator(config.seed, "waveform", identity)
    sources = []
    for sound in (SOUNDS[LABELS[label]] for label in labels):
        num_samples = int(SAMPLE_RATE_HZ * sound.duration_s * rate * draw.uniform(0.8, 1.25))
        period = round(SAMPLE_RATE_HZ / (pitch_hz * draw.uniform(0.95, 1.05)))
        pulses = np.zeros(num_samples)
        pulses[:: max(1, period)] = 1.0
        noise = (1 - sound.voicing) * 0.3 * draw.standard_normal(num_samples)
        sources.append(sound.voicing * pulses + noise)
    return tract, sources


def _sound(phone: str, tract: float, source: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.signal import lfilter  # takes a second to load

    sound, num_samples = SOUNDS[phone], len(source)
    shaped = np.zeros(num_samples)
    radius = np.exp(-np.pi * BANDWIDTH_HZ / SAMPLE_RATE_HZ)
    for order, formant_hz in enumerate(sound.formants_hz):
        angle = 2 * np.pi * min(formant_hz * tract, 7600.0) / SAMPLE_RATE_HZ
        shaped += lfilter([1 - radius], [1, -2 * radius * np.cos(angle), radius**2], source) / (order + 1)
    shaped *= sound.loudness / (np.abs(shaped).max() + 1e-9)
    ramp = np.minimum(1, np.arange(1, num_samples + 1) / (SAMPLE_RATE_HZ * 0.005))  # rises and falls over 5 ms
    envelope: NDArray[np.float64] = ramp * ramp[::-1]
    if phone in STOPS:
        envelope[: num_samples // 2] = 0
    return shaped * envelope
