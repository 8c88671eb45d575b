"""From a data config to examples: filterbank frames with their phones, checked, and kept in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainables.asr.data import audio, cache, onsets, synthetic
from trainables.asr.data.config import Data, Features, LibriSpeech, Onsets, Synthetic
from trainables.asr.data.corpus import Utterance
from trainables.asr.data.features import fbank, num_frames
from trainables.asr.data.splits import read_audio_splits, read_splits
from trainables.errors import InputError


@dataclass(frozen=True, eq=False)
class Example:
    """One utterance as the models see it.

    Attributes:
        labels: none where only the audio was asked for.
        times_s: start and end of each label in seconds, where the corpus knows them.
    """

    identity: str
    frames: Float[Tensor, "T F"]
    labels: tuple[int, ...] = ()
    times_s: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, eq=False)
class Examples:
    """The splits of a corpus; a training or validation utterance too short for its phones is left out and counted."""

    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: tuple[str, ...]
    num_skipped: int
    test_utterances: tuple[Utterance, ...]


@dataclass(frozen=True, eq=False)
class AudioExamples:
    """Training and validation audio without phones."""

    train: tuple[Example, ...]
    validation: tuple[Example, ...]


@lru_cache(maxsize=2)
def load_examples(config: Data, features: Features) -> Examples:
    """Every utterance of `config` as frames, kept for the next replicate in this process.

    Raises:
        InputError: if a recording cannot be read, or nothing is left to train or test on.
    """
    splits = read_splits(config)
    train = [u for u in splits.train if is_long_enough(u, features)]
    validation = [u for u in splits.validation if is_long_enough(u, features)]
    unusable = [u.identity for u in splits.test if num_frames(u.num_samples, features) == 0]
    if unusable:
        raise InputError(f"Utterance {unusable[0]} is shorter than one window of {features.window_ms} ms; remove it.")
    if not train or not validation:
        raise InputError("No training or validation utterance has enough frames for its phones; check the transcripts.")
    return Examples(
        train=_examples(train, config, features),
        validation=_examples(validation, config, features),
        test=_examples(splits.test, config, features),
        labels=splits.labels,
        num_skipped=splits.num_skipped + len(splits.train + splits.validation) - len(train + validation),
        test_utterances=splits.test,
    )


@lru_cache(maxsize=2)
def load_audio(config: Data, features: Features, spared: LibriSpeech | None = None) -> AudioExamples:
    """The audio to train and validate on, without phones; what is shorter than one window is left out.

    Args:
        spared: a task whose validation and test speakers are left out.

    Raises:
        InputError: if a recording cannot be read, or nothing is left.
    """
    splits = read_audio_splits(config, spared)
    parts = [[u for u in part if num_frames(u.num_samples, features)] for part in (splits.train, splits.validation)]
    if not all(parts):
        raise InputError(f"No training or validation recording is longer than one window of {features.window_ms} ms.")
    train, validation = (_examples(part, config, features) for part in parts)
    return AudioExamples(train, validation)


def is_long_enough(utterance: Utterance, features: Features) -> bool:
    """Whether CTC can align the phones."""
    return num_frames(utterance.num_samples, features) >= num_frames_needed(utterance.labels)


def num_frames_needed(labels: Sequence[int]) -> int:
    """How many frames CTC needs to align `labels`: one for each, and one more between two equal neighbours."""
    return len(labels) + sum(a == b for a, b in pairwise(labels))


def waveform_of(utterance: Utterance, config: Data) -> Float[Tensor, " N"]:
    """The samples of one recording in [-1, 1]."""
    if isinstance(config, Synthetic):
        return synthetic.waveform(config, utterance.identity, utterance.speaker, utterance.labels)
    if isinstance(config, Onsets):
        return onsets.waveform(config, utterance.identity)
    assert utterance.audio is not None
    return audio.read_waveform(utterance.audio)


def _examples(utterances: Sequence[Utterance], config: Data, features: Features) -> tuple[Example, ...]:
    made = cache.frames(utterances, features, lambda u: fbank(waveform_of(u, config), features))
    return tuple(Example(u.identity, f, u.labels, u.times_s) for u, f in zip(utterances, made, strict=True))


def labels_by_times(example: Example, features: Features) -> Int[Tensor, " T"] | None:
    """The label spoken at the middle of each frame's window; -1 for none. None where the corpus has no times."""
    if example.times_s is None:
        return None
    middles = np.arange(len(example.frames)) * features.frame_s + features.window_ms / 2000
    labels = np.full(len(middles), -1)
    for label, (start, end) in zip(example.labels, example.times_s, strict=True):
        labels[(start <= middles) & (middles < end)] = label
    return torch.from_numpy(labels)
