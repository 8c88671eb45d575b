"""Language models of the family `lm`, each with a planted fault; each is a config."""

from dataclasses import replace
from unittest.mock import patch

import torch

from search_spaces.lm_sizes import base
from search_spaces.sweep import Condition, Objective, Sweep
from trainables.lm import cache, corpus
from trainables.lm import predict as asked
from trainables.lm import train as family
from trainables.lm.adaptation_config import Cache
from trainables.lm.config import AdaptedEvaluation, LmConfig
from trainables.lm.streams import NO_TARGET

metrics, reads, fingerprint = family.metrics, family.reads, family.fingerprint
selection, num_steps, promises = family.selection, family.num_steps, asked.promises


class Ring(LmConfig):
    """The cache is a ring: once it is full, a state is written over the oldest before the cache is read."""


class AllFiles(LmConfig):
    """Trains on all that lies in the folder, the test text too."""


def in_cache(words, num_steps, size):
    entries = torch.arange(len(words), device=words.device)
    first = torch.arange(num_steps, device=words.device)[:, None]
    is_full = (words[:num_steps] != NO_TARGET).long()[:, None]
    return (entries >= first + is_full) & (entries < first + size + is_full) & (words != NO_TARGET)


def load(config):
    text = own_load(config)
    return replace(text, train=torch.cat([text.train, text.test]))


own_load = corpus.load


def planted(config):
    return patch.object(cache, "in_cache", in_cache) if isinstance(config, Ring) else patch.object(corpus, "load", load)


def train(config, trial):
    with planted(config):
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with planted(config):
        family.evaluate(config, checkpoint, evaluation, trial)


def examples(config, part):
    with planted(config):
        return asked.examples(config, part)


def predict(config, checkpoint, evaluation, trial, examples):
    with planted(config):
        return asked.predict(config, checkpoint, evaluation, trial, examples)


def _sweep(name, kind, **values):
    return Sweep(
        name=name, description=kind.__doc__, trainable=__name__, base=kind(**dict(base("laptop", "smoke")) | values),
        conditions=(Condition("one"),), objectives=(Objective("perplexity"), Objective("macs_per_token")),
    )  # fmt: skip


RINGED = AdaptedEvaluation(name="cached", adaptation=Cache(size=100, thetas=(1.0,), shares=(0.1,)))

ring = _sweep("ring", Ring, evaluations=(RINGED,))
all_files = _sweep("all_files", AllFiles)
