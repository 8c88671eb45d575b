"""Networks of the family `act`, two with a planted fault and one that only looks like it; each is a config."""

from contextlib import contextmanager
from unittest.mock import patch

import torch

from search_spaces.act_sizes import LOGIC, TEXT
from search_spaces.settings import with_all
from search_spaces.sweep import Condition, Sweep
from trainables.act import evaluation, iterations, network, steps
from trainables.act import predict as asked
from trainables.act import train as family
from trainables.act.config import ActConfig, Adaptive, Difference, EarlyExit, Evaluation
from trainables.act.network import sureness
from trainables.conditional.adaptive_computation_time import Ponder
from trainables.conditional.early_exit import exit_early

metrics, reads, fingerprint = family.metrics, family.reads, family.fingerprint
selection, num_steps, examples, promises = family.selection, family.num_steps, asked.examples, asked.promises


class Oracle(ActConfig):
    """From the third update on a step of early exit also ends where its answer is right."""


class Dense(ActConfig):
    """Of eight sequences and more all rows take all updates, masked; few rows leave as they halt."""


class Smoothed(ActConfig):
    """Right: one target of twenty is another byte in training, so as not to be too sure; tests are as they were."""


def draws_of(config, sequences, halts, *stream):
    """The place of the draws, which early exit does not need in a test, has the answers."""
    if stream:
        return evaluation_draws(config, sequences, halts, *stream)
    return sequences.targets[:, :, 0].float()


evaluation_draws = evaluation.draws_of


def halted(self, inputs, answers, halts):
    sure, answers = sureness(halts), answers.long()

    def run(update, state, rows):
        now = {}

        def noted(state, alive, n):
            now.update(right=answers[rows][alive], n=n)
            return update(state, alive, n)

        def is_done(log_probs):
            is_right = log_probs[:, 0].argmax(-1) == now["right"]
            return sure(log_probs) | (is_right & (now["n"] >= 3))

        done = exit_early(noted, state, lambda state: self._read_out(state[0]), is_done, inputs.max_updates)
        return steps.Halted(done.state, done.num_updates, done.output)

    found = steps._joined(list(steps._each_step(self.cell.begin(), inputs, run)))
    return Ponder(found.states, found.num_updates, torch.ones_like(answers).float()), found.outputs


def ponder(cell, projected, sizes, first_flag, state, halting, limits):
    """Without the bookkeeping of rows, which does not pay for many."""
    if torch.is_grad_enabled() or sizes[0] < 8:
        return family_ponder(cell, projected, sizes, first_flag, state, halting, limits)
    update, found = cell.begin(), []
    for alive in projected.split(list(sizes)):
        state = tuple(part[: len(alive)] for part in state)
        spent, mixture = alive.new_zeros(len(alive)), tuple(torch.zeros_like(part) for part in state)
        remainder, is_on, count = torch.zeros_like(spent), spent == 0, torch.zeros(len(alive), dtype=torch.long)
        for n in range(1, limits.max_updates + 1):
            state = update(alive + first_flag if n == 1 else alive, state)
            h = halting(state[0]).sigmoid()[:, 0]
            ends = is_on & ((spent + h >= 1 - limits.epsilon) | (n == limits.max_updates))
            p = torch.where(ends, 1 - spent, h) * is_on
            mixture = tuple(m + p[:, None] * part for m, part in zip(mixture, state, strict=True))
            remainder, spent = torch.where(ends, p, remainder), spent + p
            count, is_on = count + is_on, is_on & ~ends
        state = mixture
        found.append((*mixture, count, remainder))
    *states, num_updates, remainder = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Ponder(tuple(states), num_updates, remainder)


family_ponder = network.ponder


def losses_of(config, run, targets, tau):
    is_other = torch.arange(len(targets)) % 20 == 7
    other = torch.where(is_other[:, None], (targets + 1) % 256, targets)
    return family_losses(config, run, other, tau)


family_losses = iterations.losses_of


@contextmanager
def planted(config):
    match config:
        case Oracle():
            of_draws = (patch.object(module, "draws_of", draws_of) for module in (asked, evaluation, iterations))
            patches = [*of_draws, patch.object(network.Network, "_halted", halted)]
        case Dense():
            patches = [patch.object(network, "ponder", ponder)]
        case Smoothed():
            patches = [patch.object(iterations, "losses_of", losses_of)]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def train(config, trial):
    with planted(config):
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with planted(config):
        family.evaluate(config, checkpoint, evaluation, trial)


def predict(config, checkpoint, evaluation, trial, examples):
    with planted(config):
        return asked.predict(config, checkpoint, evaluation, trial, examples)


SURE = {
    "halting": EarlyExit(max_updates=6),
    "evaluations": (Evaluation(num_sequences=100, halts=Difference(above=0.9)),),
}


def _sweep(name, kind, task, values):
    config = with_all(task.base("laptop", "smoke"), {"hidden_size": 32, "training.num_iterations": 90} | values)
    return Sweep(
        name=name, description=kind.__doc__, trainable=__name__, base=kind(**dict(config)),
        conditions=(Condition("one"),), objectives=task.objectives(),
    )  # fmt: skip


oracle = _sweep("oracle", Oracle, LOGIC, SURE)
dense = _sweep("dense", Dense, TEXT, {"halting": Adaptive(max_updates=5, halting_bias=0.0)})
smoothed = _sweep("smoothed", Smoothed, TEXT, SURE)
