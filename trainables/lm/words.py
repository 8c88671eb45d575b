"""A model on sentences, word by word: what it expected before and after recoding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trainables import rng
from trainables.lm import noise
from trainables.lm.network import Attached, Network
from trainables.lm.probe import Supervision
from trainables.lm.streams import NO_TARGET, Window

MAX_SENTENCES = 64
"""Read at once."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordRecord:
    """Of the words of one sentence; without a recoder nothing changes, and delta is 0.

    Attributes:
        nats_before: -log p of each word (N), from the state as it was.
        nats_after: of the same word, from the state that was recoded because of it.
        delta_before, delta_after: the error signal.
    """

    nats_before: Numbers
    nats_after: Numbers
    delta_before: Numbers
    delta_after: Numbers


@torch.no_grad()
def read(
    network: Network,
    sentences: Sequence[Sequence[int]],
    start: int,
    attached: Attached | None,
    seed: int,
    recode_at: int | None = None,
) -> list[WordRecord]:
    """Each sentence by itself, from a state of zeros.

    Args:
        network: the model.
        sentences: numbers of words.
        start: the token that stands before each sentence.
        attached: the recoder; the labels of its probe, if it has one, are of the sentences in their order.
        seed: of masks.
        recode_at: recode only where the word of this index, from 0, has come; by default everywhere.
    """
    network.eval()
    records = []
    for first in range(0, len(sentences), MAX_SENTENCES):
        part = slice(first, first + MAX_SENTENCES)
        records += _read_batch(network, sentences[part], start, _labelled(attached, part), seed + first, recode_at)
    return records


def _labelled(attached: Attached | None, part: slice) -> Attached | None:
    if attached is None or attached.supervision is None:
        return attached
    told = attached.supervision
    return replace(attached, supervision=Supervision(told.weight, told.bias, told.labels[part]))


def _read_batch(
    network: Network,
    sentences: Sequence[Sequence[int]],
    start: int,
    attached: Attached | None,
    seed: int,
    recode_at: int | None,
) -> list[WordRecord]:
    device = network.decoder_weight.device
    window = _window(sentences, start).to(device)
    shape = (window.targets.shape[0], window.targets.shape[1])
    recoder = attached.recoder if attached else None
    generator = torch.Generator(device).manual_seed(rng.derive(seed, "words"))
    drawn = noise.draw(network.config, recoder, shape, network.vocabulary_size, generator, is_training=False)
    if recode_at is not None:
        only = torch.zeros(shape, device=device)
        only[recode_at : recode_at + 1] = 1.0
        drawn = replace(drawn, gates=only if drawn.gates is None else only * drawn.gates)
    run = network(window, network.zeros(shape[1], recoder), drawn, attached, measures_after=True)
    rows: list[Tensor] = [run.nats, run.nats, torch.zeros_like(run.nats), torch.zeros_like(run.nats)]
    if run.trace and recoder:
        copies = noise.num_copies(recoder)
        tops = (torch.stack(tops) for tops in (run.trace.tops, run.trace.recoded_tops))
        nats = [network.outputs(top, window.targets, drawn, copies)[1] for top in tops]
        rows = [*nats, torch.stack(run.trace.before), torch.stack(run.trace.after)]
    arrays = [row.double().cpu().numpy() for row in rows]
    return [WordRecord(*(array[: len(words), i] for array in arrays)) for i, words in enumerate(sentences)]


def _window(sentences: Sequence[Sequence[int]], start: int) -> Window:
    """The sentences as streams, each behind `start`; shorter ones are filled up."""
    inputs = pad_sequence([torch.tensor([start, *words[:-1]]) for words in sentences])
    targets = pad_sequence([torch.tensor(list(words)) for words in sentences], padding_value=NO_TARGET)
    return Window(inputs, targets)
