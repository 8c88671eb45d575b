"""An interpolated bigram: a model that has learnt more than pairs of words has a lower perplexity."""

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainables.lm.corpus import Corpus

STEP = 0.05
Numbers = NDArray[np.int64]


class Bigram:
    """p(w | v) = a count(v w) / count(v) + b count(w) / N + (1 - a - b) / V, counted on a training text.

    Jelinek and Mercer (1980).
    """

    def __init__(self, tokens: Numbers, vocabulary_size: int) -> None:
        self.size = vocabulary_size
        self.words = np.bincount(tokens[1:], minlength=vocabulary_size)
        self.contexts = np.bincount(tokens[:-1], minlength=vocabulary_size)
        self.pairs, self.counts = np.unique(tokens[:-1] * vocabulary_size + tokens[1:], return_counts=True)

    def shares(self, tokens: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """count(v w) / count(v), 0 where v never came, and count(w) / N, of each token but the first."""
        wanted = tokens[:-1] * self.size + tokens[1:]
        places = np.searchsorted(self.pairs, wanted).clip(max=len(self.pairs) - 1)
        counts = np.where(self.pairs[places] == wanted, self.counts[places], 0)
        pairs = counts / np.maximum(self.contexts[tokens[:-1]], 1)
        return pairs, self.words[tokens[1:]] / self.words.sum()

    def perplexity(self, tokens: Numbers, a: float, b: float) -> float:
        """The perplexity of every token but the first."""
        pairs, words = self.shares(tokens)
        return math.exp(-float(np.log(a * pairs + b * words + (1 - a - b) / self.size).mean()))

    def best_weights(self, tokens: Numbers) -> tuple[float, float]:
        """a and b of a grid of .05 that have the lowest perplexity."""
        pairs, words = self.shares(tokens)
        grid = np.arange(STEP, 1, STEP)
        weights = [(a, b) for a, b in itertools.product(grid, grid) if a + b < 1 - STEP / 2]
        return max(weights, key=lambda w: np.log(w[0] * pairs + w[1] * words + (1 - sum(w)) / self.size).mean())


@lru_cache(maxsize=2)
def bigram_perplexity(text: Corpus) -> float:
    """The perplexity of the test part, with the weights that are best on the validation part."""
    bigram = Bigram(text.train.numpy(), text.size)
    return bigram.perplexity(text.test.numpy(), *bigram.best_weights(text.validation.numpy()))
