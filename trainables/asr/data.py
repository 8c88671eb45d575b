"""From a data config to examples: filterbank frames with their phones, checked, and cached in this process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.asr import librispeech, synthetic
from trainables.asr.config import Data, Features, LibriSpeech
from trainables.asr.corpus import Splits, Utterance
from trainables.asr.features import fbank, num_frames
from trainables.config import content_hash
from trainables.errors import InputError


@dataclass(frozen=True, eq=False)
class Example:
    """One utterance as the models see it."""

    identity: str
    frames: Float[Tensor, "T F"]
    labels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Examples:
    """The splits of a corpus; a training or validation utterance too short for its phones is left out and counted."""

    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: tuple[str, ...]
    num_skipped: int


def splits(config: Data) -> Splits:
    """The utterances that `config` names; reads transcripts and audio headers only."""
    return librispeech.read_splits(config) if isinstance(config, LibriSpeech) else synthetic.make_splits(config)


def fingerprint(config: Data) -> str:
    """16 digits that change with any transcript, any recording's name or length, and the split."""
    found = splits(config)
    rows = [
        [(u.identity, u.speaker, u.labels, u.num_samples) for u in part]
        for part in (found.train, found.validation, found.test)
    ]
    return content_hash(config, rows)


@lru_cache(maxsize=2)
def load(config: Data, features: Features) -> Examples:
    """Every utterance of `config` as frames, kept for the next replicate in this process.

    Raises:
        InputError: if a recording cannot be read, or nothing is left to train or test on.
    """
    found = splits(config)
    long_enough = [u for u in found.train if is_long_enough(u, features)]
    validation = [u for u in found.validation if is_long_enough(u, features)]
    unusable = [u.identity for u in found.test if num_frames(u.num_samples, features) == 0]
    if unusable:
        raise InputError(f"Utterance {unusable[0]} is shorter than one window of {features.window_ms} ms; remove it.")
    if not long_enough or not validation:
        raise InputError("No training or validation utterance has enough frames for its phones; check the transcripts.")
    return Examples(
        train=_examples(long_enough, config, features),
        validation=_examples(validation, config, features),
        test=_examples(found.test, config, features),
        labels=found.labels,
        num_skipped=found.num_skipped + len(found.train + found.validation) - len(long_enough + validation),
    )


def is_long_enough(utterance: Utterance, features: Features) -> bool:
    """Whether CTC can align the phones: a frame for each, and one more between two equal neighbours."""
    repeats = sum(a == b for a, b in zip(utterance.labels, utterance.labels[1:], strict=False))
    return num_frames(utterance.num_samples, features) >= len(utterance.labels) + repeats


def _examples(utterances: Iterable[Utterance], config: Data, features: Features) -> tuple[Example, ...]:
    return tuple(Example(u.identity, fbank(_waveform(u, config), features), u.labels) for u in utterances)


def _waveform(utterance: Utterance, config: Data) -> Float[Tensor, " N"]:
    if isinstance(config, LibriSpeech):
        assert utterance.audio is not None
        return librispeech.read_waveform(utterance.audio)
    return synthetic.waveform(config, utterance.identity, utterance.speaker, utterance.labels)


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples padded with zeros at the end."""

    identities: tuple[str, ...]
    frames: Float[Tensor, "B T F"]
    num_frames: Tensor
    labels: tuple[tuple[int, ...], ...]


def collate(examples: Sequence[Example], device: torch.device | None = None) -> Batch:
    """A batch on `device`; `num_frames` stays on the CPU, where packing wants it."""
    frames = torch.nn.utils.rnn.pad_sequence([e.frames for e in examples], batch_first=True)
    return Batch(
        identities=tuple(e.identity for e in examples),
        frames=frames.to(device) if device else frames,
        num_frames=torch.tensor([len(e.frames) for e in examples]),
        labels=tuple(e.labels for e in examples),
    )


def bucketed(
    examples: Sequence[Example], batch_size: int, order: torch.Generator | None = None
) -> list[tuple[Example, ...]]:
    """Batches of about equal lengths, covering every example once.

    With `order`, equal lengths are mixed by a small jitter and the batches come in random order; without it,
    from long to short, so that a batch too large for the memory fails first.
    """
    jitter = torch.rand(len(examples), generator=order) * 0.1 if order else torch.zeros(len(examples))
    lengths = torch.tensor([len(e.frames) for e in examples]) * (1 + jitter)
    ranked = torch.argsort(lengths, descending=True, stable=True).tolist()
    batches = [tuple(examples[i] for i in ranked[k : k + batch_size]) for k in range(0, len(ranked), batch_size)]
    return [batches[i] for i in torch.randperm(len(batches), generator=order)] if order else batches
