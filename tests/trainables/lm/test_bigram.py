"""The bigram that a run reports beside its model, by its formula."""

import math

import numpy as np
import pytest
import torch

from trainables.lm import bigram
from trainables.lm.bigram import Bigram
from trainables.lm.corpus import Corpus

TRAIN, TEST = [0, 1, 0, 1, 2], [0, 1, 2, 2]


def by_hand(a: float, b: float) -> float:
    """Of TEST: the pairs 0 1 and 1 2 follow two of two and one of two, and 2 never came before a word."""
    of_pairs, of_words = (2 / 2, 1 / 2, 0.0), (2 / 4, 1 / 4, 1 / 4)
    rest = (1 - a - b) / 3
    nats = [-math.log(a * p + b * w + rest) for p, w in zip(of_pairs, of_words, strict=True)]
    nats[2] += math.log(1 - a)
    return math.exp(sum(nats) / 3)


@pytest.mark.parametrize("weights", [(0.5, 0.3), (0.05, 0.9)])
def test_its_perplexity_is_what_its_formula_says(weights) -> None:
    found = Bigram(np.array(TRAIN), 3).perplexity(np.array(TEST), *weights)
    assert found == pytest.approx(by_hand(*weights), rel=1e-12)


def test_what_follows_any_word_adds_up_to_one() -> None:
    for first in range(3):
        of_each = (Bigram(np.array(TRAIN), 3).perplexity(np.array([first, word]), 0.5, 0.3) for word in range(3))
        assert sum(1 / one for one in of_each) == pytest.approx(1.0, rel=1e-12)


def test_its_weights_are_the_best_of_the_grid_on_the_validation_part() -> None:
    a, b = Bigram(np.array(TRAIN), 3).best_weights(np.array(TEST))
    every = [(i / 20, j / 20) for i in range(1, 20) for j in range(1, 20) if i + j < 20]
    assert by_hand(a, b) == pytest.approx(min(by_hand(*one) for one in every), rel=1e-9)


def test_what_is_reported_is_of_the_test_part() -> None:
    train, validation, test = (torch.tensor(part) for part in (TRAIN, TEST, [1, 0, 1]))
    text = Corpus(("a", "b", "c"), train, validation, test, {})
    made = Bigram(np.array(TRAIN), 3)
    weights = made.best_weights(np.array(TEST))
    assert bigram.bigram_perplexity(text) == pytest.approx(made.perplexity(np.array([1, 0, 1]), *weights), rel=1e-12)
