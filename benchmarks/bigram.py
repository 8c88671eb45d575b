"""Perplexity of an interpolated bigram on a sweep's text: what a language model must stay below.

    PONDERAY_DATA=PATH python benchmarks/bigram.py [--sweep lm.laptop]

p(w | v) = a count(v w) / count(v) + b count(w) / N + (1 - a - b) / V, counted on the training part; a and b are those
of a grid of .05 that are best on the validation part (Jelinek and Mercer 1980). The vocabulary and the tokens are those
of the sweep.
"""

import argparse
import itertools
import math

import numpy as np
from numpy.typing import NDArray

from search_spaces.find import find_sweep
from trainables.lm import corpus
from trainables.lm.config import LmConfig

STEP = 0.05
Numbers = NDArray[np.int64]


class Bigram:
    """Counts of a training text."""

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
        """Of every token but the first."""
        pairs, words = self.shares(tokens)
        return math.exp(-float(np.log(a * pairs + b * words + (1 - a - b) / self.size).mean()))


def main() -> None:
    """Prints the weights and the perplexities."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", default="lm.laptop")
    config = find_sweep(parser.parse_args().sweep).base
    assert isinstance(config, LmConfig)
    text = corpus.load(config.data)
    bigram = Bigram(text.train.numpy(), text.size)
    grid = np.arange(STEP, 1, STEP)
    weights = [(a, b) for a, b in itertools.product(grid, grid) if a + b < 1 - STEP / 2]
    validation = text.validation.numpy()
    a, b = min(weights, key=lambda pair: bigram.perplexity(validation, *pair))
    figures = (
        f"validation {bigram.perplexity(validation, a, b):.1f}, test {bigram.perplexity(text.test.numpy(), a, b):.1f}"
    )
    print(f"{len(text.train)} training tokens, V = {text.size}, weights {a:.2f} and {b:.2f}: {figures}")


if __name__ == "__main__":
    main()
