"""An interpolated bigram: a model that has learnt more than pairs of words has a lower perplexity."""

import itertools
import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainables.lm.corpus import Corpus

STEP = 0.05
Numbers = NDArray[np.int64]


class Bigram:
    """p(w | v) = a count(v w) / count(v) + b count(w) / N + (1 - a - b) / V, counted on a training text.

    Jelinek and Mercer (1980). Where v never came, the other two alone, divided by 1 - a.
    """

    def __init__(self, tokens: Numbers, vocabulary_size: int) -> None:
        self.size = vocabulary_size
        self.words = np.bincount(tokens[1:], minlength=vocabulary_size)
        self.contexts = np.bincount(tokens[:-1], minlength=vocabulary_size)
        self.pairs, self.counts = np.unique(tokens[:-1] * vocabulary_size + tokens[1:], return_counts=True)

    def log_probability(self, tokens: Numbers, weights: Iterable[tuple[float, float]]) -> list[float]:
        """The mean over every token but the first, for each pair of a and b."""
        wanted = tokens[:-1] * self.size + tokens[1:]
        places = np.searchsorted(self.pairs, wanted).clip(max=len(self.pairs) - 1)
        counts = np.where(self.pairs[places] == wanted, self.counts[places], 0)
        contexts = self.contexts[tokens[:-1]]
        pairs, words = counts / np.maximum(contexts, 1), self.words[tokens[1:]] / self.words.sum()
        mixtures = ((a * pairs + b * words + (1 - a - b) / self.size) / (1 - a * (contexts == 0)) for a, b in weights)
        return [float(np.log(one).mean()) for one in mixtures]

    def perplexity(self, tokens: Numbers, a: float, b: float) -> float:
        """The perplexity of every token but the first."""
        return math.exp(-self.log_probability(tokens, [(a, b)])[0])

    def best_weights(self, tokens: Numbers) -> tuple[float, float]:
        """a and b of a grid of .05 that have the lowest perplexity."""
        grid = np.arange(STEP, 1, STEP)
        weights = [(a, b) for a, b in itertools.product(grid, grid) if a + b < 1 - STEP / 2]
        return max(zip(self.log_probability(tokens, weights), weights, strict=True))[1]


@lru_cache(maxsize=2)
def bigram_perplexity(text: Corpus) -> float:
    """The perplexity of the test part, with the weights that are best on the validation part."""
    bigram = Bigram(text.train.numpy(), text.size)
    return bigram.perplexity(text.test.numpy(), *bigram.best_weights(text.validation.numpy()))
