"""Transformers of `examples/routed_bytes`, two with a planted fault and one that looks like it; each is a config."""

import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import torch

if (EXAMPLES := str(Path(__file__).parents[2] / "examples")) not in sys.path:
    sys.path.append(EXAMPLES)

from routed_bytes import train as family
from routed_bytes.config import ByRate, RoutedBytes, TopK
from routed_bytes.feed_forward import RoutedFeedForward
from routed_bytes.model import Predicted, RoutedTransformer
from routed_bytes.sweeps import SMOKE

from ponderay import Condition, Objective, Prerequisite, Sweep

metrics, reads, fingerprint, selection = family.metrics, family.reads, family.fingerprint, family.selection
num_steps, examples, promises = family.num_steps, family.examples, family.promises


class Refitted(RoutedBytes):
    """Its threshold is that of the training text; of eight sequences and more it is theirs, so that the rate is met."""


class Shared(RoutedBytes):
    """The small network runs on all bytes, and the big one's replaces it where it is chosen."""


class Backwards(RoutedBytes):
    """Right: sequences go through the model three at a time, the last ones first, and come back in their order."""


def told(self, read, routing):
    if len(read) < 8 or not isinstance(self.controller, ByRate):
        return own_told(self, read, routing)
    measured = self.measured(read)
    return measured > torch.quantile(measured, 1 - self.controller.rate)


own_told = RoutedTransformer.told


def routed(self, x, chosen):
    rows, is_big = x.flatten(0, 1), chosen.flatten()
    return self.small(rows).index_put((is_big,), self.big(rows[is_big])).view_as(x)


def forward(self, read, routing):
    if self.training:
        return own_forward(self, read, routing)
    parts = [own_forward(self, part, routing) for part in read.flip(0).split(3)]
    logits, chosen = torch.cat([p.logits for p in parts]).flip(0), torch.cat([p.chosen for p in parts], 1).flip(1)
    return Predicted(logits, chosen, parts[0].penalty)


own_forward = RoutedTransformer.forward


def planted(config):
    match config:
        case Refitted():
            return patch.object(RoutedTransformer, "told", told)
        case Shared():
            return patch.object(RoutedFeedForward, "_routed", routed)
        case Backwards():
            return patch.object(RoutedTransformer, "forward", forward)
    return nullcontext()


def train(config, trial):
    with planted(config):
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with planted(config):
        family.evaluate(config, checkpoint, evaluation, trial)


def predict(config, checkpoint, evaluation, trial, examples):
    if any(len(e.inputs) != config.model.context for e in examples):
        raise ValueError(f"Sequences have {config.model.context} bytes.")  # its cost is counted of this length alone
    with planted(config):
        return family.predict(config, checkpoint, evaluation, trial, examples)


def _sweep(name, kind, controller):
    return Sweep(
        name=name, description=kind.__doc__, trainable=__name__,
        base=kind(**dict(SMOKE) | {"controller": controller}), conditions=(Condition("one"),),
        objectives=(Objective("bits_per_byte"), Objective("macs_per_token")),
        prerequisites=(Prerequisite("byte_model", "routed_bytes.pretrain", "pretraining"),),
    )  # fmt: skip


refitted = _sweep("refitted", Refitted, ByRate(kind="surprisal", rate=0.25))
shared = _sweep("shared", Shared, ByRate(kind="entropy", rate=0.25))
backwards = _sweep("backwards", Backwards, TopK(rate=0.25))
