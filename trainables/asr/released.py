"""The conventions of the released code (arXiv:2006.01659), needed to read some of its published numbers.

Test utterances come in random batches of 32, padded as waveforms; the recogniser runs over the padding as if it were
speech, and both the decoded phones and the share of frames that go big include it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from trainables import distributed, rng
from trainables.asr import cost, phone_errors
from trainables.asr.config import Decoding
from trainables.asr.controller import Control
from trainables.asr.data.batches import Batch, collate
from trainables.asr.data.corpus import Utterance
from trainables.asr.data.examples import Example, waveform_of
from trainables.asr.data.features import fbank
from trainables.asr.data.phones import SILENCE
from trainables.asr.evaluation import decode_batch
from trainables.asr.recogniser import Recogniser, keyed_draws

BATCH_SIZE: Final = 32


@dataclass(frozen=True)
class _Padded:
    """One utterance as the released code tests it."""

    error_rate: float
    num_frames: int
    num_big: int


def batches(utterances: Sequence[Utterance], seed: int) -> list[list[Utterance]]:
    """Batches in random order, whatever the lengths of the utterances."""
    order = torch.randperm(len(utterances), generator=rng.generator(seed, "released batches")).tolist()
    return [[utterances[i] for i in order[k : k + BATCH_SIZE]] for k in range(0, len(order), BATCH_SIZE)]


def pad(waveforms: Sequence[Tensor]) -> Float[Tensor, "B N"]:
    """Zeros up to the longest of some waveforms."""
    return torch.nn.utils.rnn.pad_sequence(list(waveforms), batch_first=True)


@torch.no_grad()
def metrics(
    recogniser: Recogniser,
    control: Control,
    utterances: Sequence[Utterance],
    labels: Sequence[str],
    key: tuple[int, str],
    decoding: Decoding,
) -> dict[str, float]:
    """`released_per` and `released_flops_per_frame`; the processes share the work."""
    recogniser.eval()
    config, silence = recogniser.config, labels.index(SILENCE) if SILENCE in labels else None
    own = []
    for group in batches(utterances, config.seed)[distributed.share()]:
        waveforms = pad([waveform_of(utterance, config.data) for utterance in group])
        padded = [
            Example(utterance.identity, fbank(waveform, config.ar.features), utterance.labels)
            for utterance, waveform in zip(group, waveforms, strict=True)
        ]
        own += _test_batch(recogniser, control, collate(padded, distributed.device()), silence, key, decoding)
    everything = list(chain(*distributed.gather(own)))
    rate = sum(tested.num_big for tested in everything) / sum(tested.num_frames for tested in everything)
    return {
        "released_per": sum(tested.error_rate for tested in everything) / len(everything),
        "released_flops_per_frame": cost.paper_flops_per_frame(config, control.controller, len(labels), rate),
    }


def _test_batch(
    recogniser: Recogniser,
    control: Control,
    batch: Batch,
    silence: int | None,
    key: tuple[int, str],
    decoding: Decoding,
) -> list[_Padded]:
    output = recogniser(batch.frames, batch.num_frames, control, keyed_draws(batch, *key))
    hypotheses = decode_batch(output.log_probs.cpu(), batch.num_frames, decoding)
    return [
        _Padded(phone_errors.released_error_rate(reference, hypothesis, silence), len(used), int((used > 0).sum()))
        for reference, hypothesis, used in zip(batch.labels, hypotheses, output.used_big.cpu(), strict=True)
    ]
