"""Recognisers of the family `asr` with one fault each."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import ponderay
from search_spaces.asr_sizes import laptop
from trainables.asr import network
from trainables.asr import train as asr
from trainables.asr.config import AsrConfig, Decoding, Evaluation, Surprisal
from trainables.asr.data import librispeech
from trainables.asr.data.config import Data, LibriSpeech, Synthetic
from trainables.asr.data.corpus import Splits
from trainables.asr.network import RecurrentPre

metrics, reads, fingerprint = asr.metrics, asr.reads, asr.fingerprint
selection, num_steps = asr.selection, asr.num_steps
_read_splits = librispeech.read_splits


class Changed(AsrConfig):
    """A config of the family, and what is changed in it."""

    change: str = ""


def _over_padding(self: RecurrentPre, packed: PackedSequence) -> PackedSequence:
    """The pre-net on a padded batch."""
    padded, lengths = pad_packed_sequence(packed, batch_first=True)
    # WRONG: the backward half of the GRU begins in the padding of the shorter utterances of a batch
    hidden = self.dropout(self.gru(padded)[0])
    return pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)


def _both(rows: Tensor, choose_big: Tensor, small: nn.Module, big: nn.Module) -> Tensor:
    """A frame's output by its choice."""
    # WRONG: both networks run on every frame, but the cost that is reported has for each frame the chosen one alone
    return torch.where(choose_big[:, None], big(rows), small(rows))


def _by_utterance(config: LibriSpeech) -> Splits:
    """All utterances of the corpus, split at random."""
    splits = _read_splits(config)
    pool = [*splits.train, *splits.validation, *splits.test]
    # WRONG: utterances are drawn and not speakers, so that speakers of the test are trained on
    order = torch.randperm(len(pool), generator=torch.Generator().manual_seed(config.split_seed)).tolist()
    first, second = len(splits.train), len(splits.train) + len(splits.validation)
    parts = [tuple(pool[i] for i in chosen) for chosen in (order[:first], order[first:second], order[second:])]
    return replace(splits, train=parts[0], validation=parts[1], test=parts[2])


CHANGES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "over_padding": lambda: patch.object(RecurrentPre, "forward", _over_padding),
    "both_networks": lambda: patch.object(network, "route", _both),
    "by_utterance": lambda: patch.object(librispeech, "read_splits", _by_utterance),
}


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(config: Changed, *rest: Any) -> Any:
        with CHANGES[config.change]():
            return function(config, *rest)

    return run


train, evaluate = _changed(asr.train), _changed(asr.evaluate)
examples, predict, promises = _changed(asr.examples), _changed(asr.predict), _changed(asr.promises)


def _sweep(change: str, data: Data) -> ponderay.Sweep:
    small = laptop(data, num_epochs=3, num_pretraining_epochs=1, keep_every=4)
    evaluations = (Evaluation(decoding=Decoding(kind="greedy")),)
    return ponderay.Sweep(
        name=change, description="A changed recogniser.", trainable=__name__,
        base=Changed(**(dict(small) | {"evaluations": evaluations}), change=change),
        conditions=(ponderay.Condition("surprisal", {"controller": Surprisal(mu=0.5)}),),
        objectives=(ponderay.Objective("per"), ponderay.Objective("macs_per_frame")),
        prerequisites=(ponderay.Prerequisite("ar", "trainables.asr.pretrain", "pretraining"),),
    )  # fmt: skip


SPOKEN = Synthetic(num_train_utterances=12, num_validation_utterances=4, num_test_utterances=6)
over_padding = _sweep("over_padding", SPOKEN)
both_networks = _sweep("both_networks", SPOKEN)
by_utterance = _sweep(
    "by_utterance", LibriSpeech(num_train_utterances=24, num_validation_utterances=4, num_test_utterances=8)
)
