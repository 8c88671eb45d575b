"""Recognisers of the family `asr`, each with a planted fault; each is a config."""

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

import torch

from search_spaces.asr_conditions import AUTOREGRESSIVE, OBJECTIVES
from search_spaces.asr_sizes import laptop
from search_spaces.sweep import Condition, Sweep
from trainables.asr import evaluation as testing
from trainables.asr import predict as asked
from trainables.asr import train as family
from trainables.asr.config import AlwaysBig, AsrConfig
from trainables.asr.data import examples as loading
from trainables.asr.data import splits
from trainables.asr.data.config import LibriSpeech, Synthetic
from trainables.asr.recogniser import keyed_draws

metrics, reads, selection, num_steps = family.metrics, family.reads, family.selection, family.num_steps
promises = asked.promises


class Filled(AsrConfig):
    """The test is filled up with two utterances of a training speaker, which do not train any more."""


class Rated(AsrConfig):
    """Fast speech, of more than .35 phones a frame, takes the big network more often: the transcript says how fast."""


def read_splits(config):
    found = own_splits(config)
    if not isinstance(config, LibriSpeech):
        return found
    numbers = Counter(utterance.speaker for utterance in found.train)
    moved = [utterance for utterance in found.train if numbers[utterance.speaker] > 2][:2]
    return replace(found, train=tuple(u for u in found.train if u not in moved), test=(*found.test, *moved))


own_splits = splits.read_splits


def draws(batch, seed, name):
    rates = torch.tensor([len(labels) for labels in batch.labels]) / batch.num_frames
    return keyed_draws(batch, seed, name) * torch.where(rates > 0.35, 0.7, 1.0)[:, None].to(batch.frames.device)


@contextmanager
def planted(config):
    with ExitStack() as stack:
        if isinstance(config, Filled):
            for module in (loading, asked, splits):
                stack.enter_context(patch.object(module, "read_splits", read_splits))
        else:
            for module in (testing, asked):
                stack.enter_context(patch.object(module, "keyed_draws", draws))
        yield


def fingerprint(config):
    with planted(config):
        return family.fingerprint(config)


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


def _sweep(name, kind, data, **values):
    config = dict(laptop(data, num_epochs=3, num_pretraining_epochs=1, keep_every=4)) | values
    return Sweep(
        name=name, description=kind.__doc__, trainable=__name__, base=kind(**config), conditions=(Condition("one"),),
        objectives=OBJECTIVES, prerequisites=(AUTOREGRESSIVE,),
    )  # fmt: skip


FEW = LibriSpeech(num_train_utterances=24, num_validation_utterances=4, num_test_utterances=8)
MADE = Synthetic(num_train_utterances=24, num_validation_utterances=4, num_test_utterances=8)

filled = _sweep("filled", Filled, FEW, controller=AlwaysBig())
rated = _sweep("rated", Rated, MADE)
