"""Perplexity of tokens by how frequent their word is and where they stand, with the recoder and without."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trainables.lm.analysis.running_text import TokenRecord, read
from trainables.lm.analysis.trained_model import Trained
from trainables.lm.numbered_text import EOS

FREQUENCY: Final = "frequency in training"
IN_SENTENCE: Final = "position in the sentence"
IN_WINDOW: Final = "position in the window"
POSITIONS: Final = (1, 2, 3, 5, 9, 17, 33)
"""At which a group of positions begins."""

Groups = Iterator[tuple[str, NDArray[np.bool_]]]


def perplexities(trained: Trained) -> dict[tuple[Any, ...], float]:
    """Cells by kind of group, group and measure: perplexity with and without the recoder, and how many tokens.

    A group without tokens is left out, so that the rows are the same for every model of a text. Where a sentence began
    is not known before the first end of a sentence.
    """
    record = read(trained)
    ends = record.tokens == trained.text.index[EOS]
    counts = np.bincount(trained.text.train.numpy(), minlength=trained.text.size)[record.tokens]
    kinds = {
        FREQUENCY: by_decade(counts),
        IN_SENTENCE: by_position(sentence_positions(ends)),
        IN_WINDOW: by_position(record.place),
    }
    return {
        (kind, name, measure): value
        for kind, groups in kinds.items()
        for name, is_in in groups
        if is_in.any()
        for measure, value in _measures(record, is_in).items()
    }


def sentence_positions(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The position of each token in its sentence from 1, its end included; 0 before the first end.

    Args:
        ends: of each token whether it ends a sentence.
    """
    places = np.arange(len(ends))
    last_end = np.maximum.accumulate(np.where(ends, places, -1))
    before = np.concatenate([[-1], last_end[:-1]]) if len(ends) else last_end
    positions: NDArray[np.int64] = np.where(before < 0, 0, places - before)
    return positions


def by_decade(counts: NDArray[np.int64]) -> Groups:
    """Groups of 0 occurrences, 1 to 9, 10 to 99 and so on."""
    yield "0", counts == 0
    for power in range(len(str(int(counts.max(initial=1))))):
        low, high = 10**power, 10 ** (power + 1) - 1
        yield f"{low:,} to {high:,}", (low <= counts) & (counts <= high)


def by_position(places: NDArray[np.int64]) -> Groups:
    """Groups that double in length; places of 0 are in none."""
    for low, beyond in zip(POSITIONS, (*POSITIONS[1:], math.inf), strict=True):
        last = f" to {beyond - 1}" if beyond < math.inf else " on"
        yield f"{low}{'' if beyond == low + 1 else last}", (low <= places) & (places < beyond)


def _measures(record: TokenRecord, is_in: NDArray[np.bool_]) -> dict[str, float]:
    means = {"without": record.nats_without[is_in].mean(), "with": record.nats[is_in].mean()}
    measures = {f"perplexity_{name}": math.exp(min(float(mean), 700.0)) for name, mean in means.items()}
    return measures | {"num_tokens": float(is_in.sum())}
