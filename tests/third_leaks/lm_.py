"""Models of the family `lm` with one fault each."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import ponderay
from search_spaces.lm_sizes import base
from trainables.lm import cache, corpus
from trainables.lm import train as lm
from trainables.lm.adaptation_config import Cache
from trainables.lm.config import AdaptedEvaluation, LmConfig
from trainables.lm.network import Network
from trainables.lm.streams import NO_TARGET
from trainables.lm.text_config import Data, Files, Vocabulary

metrics, reads, fingerprint, selection, num_steps = lm.metrics, lm.reads, lm.fingerprint, lm.selection, lm.num_steps
_load, _init = corpus.load, Network.__init__


class Changed(LmConfig):
    """A config of the family, and what is changed in it."""

    change: str = ""


def _with_its_own(words: Tensor, num_steps: int, size: int) -> Tensor:
    """Which entries of the cache a step sees."""
    entries, first = torch.arange(len(words)), torch.arange(num_steps)[:, None]
    # WRONG: one further than it may: the last entry that a step sees is its own, with the word that it is asked for
    return (entries > first) & (entries <= first + size) & (words != NO_TARGET)


def _augmented(config: Any) -> corpus.Corpus:
    """The training text, and a noisy copy of the text for more data."""
    text, random = _load(config), torch.Generator().manual_seed(5)
    # WRONG: the text is made noisy before it is split, so that training reads the test with one word in eight changed
    whole = torch.cat([text.validation, text.test])
    noisy = torch.where(torch.rand(len(whole), generator=random) < 0.125, text.index["<unk>"], whole)
    return replace(text, train=torch.cat([text.train, noisy]))


def _given_embedding(self: Network, config: LmConfig, vocabulary_size: int) -> None:
    """As the network begins, but for its embedding."""
    _init(self, config, vocabulary_size)
    # WRONG: all seeds have one embedding, drawn from a fixed seed; the spread over seeds leaves this part out
    random = torch.Generator().manual_seed(0)
    self.embedding.weight.data = torch.randn(self.embedding.weight.shape, generator=random)


CHANGES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "cache_with_its_own": lambda: patch.object(cache, "in_cache", _with_its_own),
    "augmented_before_split": lambda: patch.object(corpus, "load", _augmented),
    "given_embedding": lambda: patch.object(Network, "__init__", _given_embedding),
}


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(config: Changed, *rest: Any) -> Any:
        with CHANGES[config.change]():
            return function(config, *rest)

    return run


train, evaluate = _changed(lm.train), _changed(lm.evaluate)
examples, predict, promises = _changed(lm.examples), _changed(lm.predict), _changed(lm.promises)


def _sweep(change: str, **values: Any) -> ponderay.Sweep:
    return ponderay.Sweep(
        name=change, description="A changed model.", trainable=__name__,
        base=Changed(**(dict(base("laptop", "smoke")) | values), change=change),
        conditions=ponderay.grid({"hidden_size": [24]}),
        objectives=(ponderay.Objective("perplexity"), ponderay.Objective("macs_per_token")),
    )  # fmt: skip


CACHED = AdaptedEvaluation(adaptation=Cache(size=50, thetas=(0.3,), shares=(0.1,)))
cache_with_its_own = _sweep("cache_with_its_own", evaluations=(CACHED,))
FEW = dict.fromkeys(("num_train_tokens", "num_validation_tokens", "num_test_tokens"), 2000)
augmented_before_split = _sweep(
    "augmented_before_split", data=Data(text=Files(), vocabulary=Vocabulary(max_size=500), **FEW)
)
given_embedding = _sweep("given_embedding")
