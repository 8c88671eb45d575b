"""A model on sentences, word by word: what it expected before and after recoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trainables import rng
from trainables.lm import noise
from trainables.lm.config import AnchoredEnsemble, FiniteDifference, McDropout, Recoder, Surprisal, Variational
from trainables.lm.gate_config import Chance
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise
from trainables.lm.shapes import num_copies
from trainables.lm.signals.probe import Supervision
from trainables.lm.streams import NO_TARGET, Window

MAX_SENTENCES = 64
"""Read at once, where nothing is drawn; else each sentence has draws of its own, whatever stands beside it."""

NOWHERE: Final = -1
"""For `recode_at`: no word is recoded, and delta is measured alone."""

Numbers = NDArray[np.float64]
Sentences = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class WordRecord:
    """What a model makes of the N words of one sentence; without a recoder nothing changes, and delta is 0.

    Attributes:
        nats: -log p of each word as the model gives it out: of surprisal before recoding, else after.
        nats_before: -log p of each word, from the state as it was.
        nats_after: of the same word, from the state that was recoded because of it.
        delta_before: the error signal of each word.
        delta_after: of the recoded state.
    """

    nats: Numbers
    nats_before: Numbers
    nats_after: Numbers
    delta_before: Numbers
    delta_after: Numbers


@torch.no_grad()
def read(
    network: Network,
    sentences: Sentences,
    start: int,
    attached: AttachedRecoder | None,
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
        recode_at: recode only where the word of this index, from 0, has come, or `NOWHERE`; by default everywhere.
    """
    records = []
    for part, window, run, drawn in _runs(network, sentences, start, attached, seed, recode_at):
        rows = [run.nats, run.nats, run.nats, torch.zeros_like(run.nats), torch.zeros_like(run.nats)]
        if run.trace and attached:
            copies = num_copies(attached.recoder)
            tops = (torch.stack(tops) for tops in (run.trace.tops, run.trace.recoded_tops))
            nats = [network.outputs(top, window.targets, drawn, copies)[1] for top in tops]
            rows = [run.nats, *nats, torch.stack(run.trace.before), torch.stack(run.trace.after)]
        arrays = [row.double().cpu().numpy() for row in rows]
        records += [WordRecord(*(array[: len(words), i] for array in arrays)) for i, words in enumerate(part)]
    return records


@torch.no_grad()
def compare(
    network: Network,
    prefixes: Sentences,
    candidates: Sentences,
    start: int,
    attached: AttachedRecoder | None,
    seed: int,
) -> Numbers:
    """-log p of each of C candidates for the word behind each prefix (N C).

    It is the model's output: of surprisal that of the state before recoding, else of the recoded one.

    Args:
        network: the model.
        prefixes: numbers of words.
        candidates: of each prefix; the first is what has come, where an error signal asks.
        start: the token that stands before each prefix.
        attached: the recoder; the labels of its probe, if it has one, are of the prefixes in their order.
        seed: of masks.
    """
    sentences = [[*prefix, choices[0]] for prefix, choices in zip(prefixes, candidates, strict=True)]
    rows: list[Numbers] = []
    for part, window, run, drawn in _runs(network, sentences, start, attached, seed, None):
        last = torch.tensor([len(words) - 1 for words in part], device=window.targets.device)
        streams = torch.arange(len(part), device=last.device)
        choices = torch.tensor([list(row) for row in candidates[len(rows) : len(rows) + len(part)]]).to(last.device)
        columns = []
        for column in choices.t():
            targets = torch.full_like(window.targets, NO_TARGET)
            targets[last, streams] = column
            columns.append(_nats(network, run, targets, drawn, attached)[last, streams])
        rows += list(torch.stack(columns, 1).double().cpu().numpy())
    return np.array(rows)


def _nats(network: Network, run: Run, targets: Tensor, drawn: Noise, attached: AttachedRecoder | None) -> Tensor:
    """-log p of `targets` (T B) as the model gives it out."""
    if run.trace and attached:
        is_before = isinstance(attached.recoder.signal, Surprisal)
        tops = torch.stack(run.trace.tops if is_before else run.trace.recoded_tops)
        return network.outputs(tops, targets, drawn, num_copies(attached.recoder))[1]
    assert run.tops is not None
    return network.outputs(run.tops, targets, drawn, 1)[1]


def _runs(
    network: Network,
    sentences: Sentences,
    start: int,
    attached: AttachedRecoder | None,
    seed: int,
    recode_at: int | None,
) -> Iterator[tuple[Sentences, Window, Run, Noise]]:
    """The sentences in batches, each with its window, what the model made of it, and its noise."""
    network.eval()
    device = network.decoder_weight.device
    recoder = attached.recoder if attached else None
    size = 1 if recoder and _draws(recoder) else MAX_SENTENCES
    for first in range(0, len(sentences), size):
        rows = slice(first, first + size)
        inputs = pad_sequence([torch.tensor([start, *words[:-1]]) for words in sentences[rows]])
        targets = pad_sequence([torch.tensor(list(words)) for words in sentences[rows]], padding_value=NO_TARGET)
        window = Window(inputs, targets).to(device)
        shape = (window.targets.shape[0], window.targets.shape[1])
        generator = torch.Generator(device).manual_seed(rng.derive(seed, "words", first))
        drawn = noise.draw(network.config, recoder, shape, network.vocabulary_size, generator, is_training=False)
        if recode_at is not None and recoder:
            only = torch.zeros(shape, device=device)
            if recode_at != NOWHERE:
                only[recode_at : recode_at + 1] = 1.0
            drawn = replace(drawn, gates=only if drawn.gates is None else only * drawn.gates)
        zeros = network.zeros(shape[1], recoder)
        run = network(window, zeros, drawn, _labelled(attached, rows), measures_after=True)
        yield sentences[rows], window, run, drawn


def _draws(recoder: Recoder) -> bool:
    """Whether what a sentence gives depends on masks or on the rows beside it."""
    match recoder.signal:
        case McDropout(estimator="samples") | Variational() | AnchoredEnsemble(entropy="batch"):
            return True
        case _:
            return isinstance(recoder.gate, Chance) or isinstance(recoder.gradient, FiniteDifference)


def _labelled(attached: AttachedRecoder | None, rows: slice) -> AttachedRecoder | None:
    if attached is None or attached.supervision is None:
        return attached
    supervision = attached.supervision
    return replace(attached, supervision=Supervision(supervision.weight, supervision.bias, supervision.labels[rows]))
