"""Adaptive Computation Time as it ships, with one planted fault each, and one change that only looks like a fault."""

import hashlib
import math
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest import mock

from planting import leaky, replaced

import ponderay
from search_spaces.act_sizes import LOGIC, PARITY, SORT, TEXT
from trainables.act import train as family
from trainables.act.config import ActConfig, Evaluation, Optimisation, Parity, PonderNet, Text

fingerprint, metrics, num_steps, reads, selection = (
    family.fingerprint, family.metrics, family.num_steps, family.reads, family.selection,
)  # fmt: skip


class Leaky(ActConfig):
    leak: str = ""


@contextmanager
def batch_statistics():
    # WRONG: a batch normalisation before the readout is never out of training mode: what is read out together counts
    from torch.nn import functional as F

    from trainables.act.network import Network

    original = Network._read_out

    def read_out(self, visible):
        return original(self, F.batch_norm(visible, None, None, training=True) if len(visible) > 1 else visible)

    with mock.patch.object(Network, "_read_out", read_out):
        yield


@contextmanager
def hash_seed():
    # WRONG: so that tests repeat, a sequence draws its halting from a seed that is a hash of all its bytes, later too
    import numpy as np
    import torch

    from trainables.act import evaluation, iterations  # noqa: F401  both hold it

    original = evaluation.draws_of

    def draws_of(config, sequences, halts, *stream):
        draws = original(config, sequences, halts, *stream)
        if stream or halts:
            return draws
        for row, (inputs, length) in enumerate(zip(sequences.inputs, sequences.num_steps.tolist(), strict=True)):
            digest = hashlib.sha256(np.ascontiguousarray(inputs[:length].cpu().numpy()).tobytes()).digest()
            random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            draws[row] = torch.from_numpy(random.random(draws.shape[1], dtype=np.float32))
        return draws

    with replaced(original, draws_of):
        yield


@contextmanager
def oracle_draws():
    # WRONG: in testing a place whose right answer is a rare byte halts later: the label routes
    import torch

    from trainables.act import evaluation, iterations  # noqa: F401

    original = evaluation.draws_of
    common = torch.tensor(list(b" etaoin"))

    def draws_of(config, sequences, halts, *stream):
        draws = original(config, sequences, halts, *stream)
        if stream or halts:
            return draws
        is_rare = ~torch.isin(sequences.targets[..., 0], common)
        return torch.where(is_rare, draws.sqrt(), draws.square())

    with replaced(original, draws_of):
        yield


@contextmanager
def two_passes():
    # WRONG: testing averages two passes, one over inputs scaled down a little; the second is not counted
    from torch import stack

    from trainables.act.network import Network

    original = Network.forward

    def forward(self, inputs, *arguments):
        run = original(self, inputs, *arguments)
        if self.training:
            return run
        both = stack([run.log_probs, original(self, 0.9 * inputs, *arguments).log_probs])
        return replace(run, log_probs=both.logsumexp(0) - math.log(2))

    with mock.patch.object(Network, "forward", forward):
        yield


@contextmanager
def fixed_start():
    # WRONG: a line from debugging: the weights of every seed are drawn from stream 0, only the data are the seed's
    from trainables import rng

    original = rng.seed_everything
    with mock.patch.object(rng, "seed_everything", lambda seed: original(0)):
        yield


@contextmanager
def clean_running_mean():
    # RIGHT: off the inputs of each step goes the mean of this step's and those before it in its own sequence
    from torch import arange

    from trainables.act.network import Network

    original = Network.forward

    def forward(self, inputs, *arguments):
        mean = inputs.cumsum(1) / arange(1, inputs.shape[1] + 1, device=inputs.device)[:, None]
        return original(self, inputs - 0.3 * mean, *arguments)

    with mock.patch.object(Network, "forward", forward):
        yield


def planted(config):
    return globals()[config.leak]() if config.leak else nullcontext()


def train(config, trial):
    with planted(config):
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with planted(config):
        family.evaluate(config, checkpoint, evaluation, trial)


def examples(config, part):
    return family.examples(config, part)


def predict(config, checkpoint, evaluation, trial, examples):
    family.predict  # noqa: B018  loads what is replaced
    with planted(config):
        return family.predict(config, checkpoint, evaluation, trial, examples)


def promises(config, evaluation):
    return family.promises(config, evaluation)


def _sweep(name, task, **values):
    return ponderay.Sweep(
        name=f"planted_act_{name.lower()}",
        description=f"{name} in a task of ACT, planted.",
        trainable=__name__,
        base=leaky(Leaky, task.base("laptop", "smoke"), **values),
        conditions=ponderay.grid({"hidden_size": [32]}),
        objectives=(ponderay.Objective(task.error), ponderay.Objective("mean_updates")),
    )


_text = {
    "data": Text(num_steps=24),
    "halting": PonderNet(max_updates=5),
    "training": Optimisation(learning_rate=2e-3, batch_size=8, num_iterations=12, report_every=4),
    "num_validation_sequences": 20,
    "evaluations": (Evaluation(num_sequences=40),),
}
act_batch_statistics = _sweep("batch_statistics", LOGIC, leak="batch_statistics")
act_hash_seed = _sweep("hash_seed", TEXT, leak="hash_seed", **_text)
act_oracle_draws = _sweep("oracle_draws", TEXT, leak="oracle_draws", **_text)
act_two_passes = _sweep("two_passes", LOGIC, leak="two_passes")
act_fixed_start = _sweep("fixed_start", SORT, leak="fixed_start")
# WRONG: three bits have 27 vectors, and training sees each many times before the test asks for the very same
act_small_parity = _sweep("small_parity", PARITY, data=Parity(num_bits=3))
act_clean_running_mean = _sweep("clean_running_mean", LOGIC, leak="clean_running_mean")
