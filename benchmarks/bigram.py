"""Perplexity of an interpolated bigram on a sweep's text, with its weights; runs report it as `bigram_perplexity`.

    PONDERAY_DATA=PATH python benchmarks/bigram.py [--sweep lm.laptop]

The vocabulary and the tokens are those of the sweep.
"""

import argparse

from search_spaces.find import find_sweep
from trainables.lm import corpus
from trainables.lm.bigram import Bigram
from trainables.lm.config import LmConfig


def main() -> None:
    """Prints the weights and the perplexities."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", default="lm.laptop")
    config = find_sweep(parser.parse_args().sweep).base
    assert isinstance(config, LmConfig)
    text = corpus.load(config.data)
    bigram, validation = Bigram(text.train.numpy(), text.size), text.validation.numpy()
    a, b = bigram.best_weights(validation)
    figures = (
        f"validation {bigram.perplexity(validation, a, b):.1f}, test {bigram.perplexity(text.test.numpy(), a, b):.1f}"
    )
    print(f"{len(text.train)} training tokens, V = {text.size}, weights {a:.2f} and {b:.2f}: {figures}")


if __name__ == "__main__":
    main()
