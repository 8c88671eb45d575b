"""NaN and infinity are a ValueError in every public function of every block, but for those that only move rows."""

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest
import torch
from torch import nn

from trainables import conditional
from trainables.conditional.adaptive_computation_time import Limits, adaptive_computation_time
from trainables.conditional.early_exit import difference, entropy, exit_early, exits_loss
from trainables.conditional.finite import check_finite
from trainables.conditional.halted_rows import check_max_updates, update_until
from trainables.conditional.ponder_net import (
    divergence,
    drawn_update,
    expected,
    halt,
    log_geometric,
    log_halting_probabilities,
    ponder_loss,
)
from trainables.conditional.recurrent_cells import GruCell
from trainables.conditional.recurrent_ponder import ponder
from trainables.conditional.route import mix
from trainables.conditional.straight_through import squared_deviation, squared_excess, threshold
from trainables.conditional.surprisal_controller import SurprisalFit, choose, p_big
from trainables.conditional.surprisal_fit import fit_in_one_pass, fit_surprisal, fit_with_mean
from trainables.conditional.top_k import TopKRouter, highest, num_chosen, weighted
from trainables.errors import DivergedError

GOOD = torch.full((2, 3), 0.25)
LOG = GOOD.log()
ZEROS = torch.zeros(2, 12)
FIT = SurprisalFit(w=0.5, b=0.0, mean_p=0.5, var_p=0.04)
ORDER = torch.Generator()


def with_bad(bad: float) -> torch.Tensor:
    found = GOOD.clone()
    found[1, 1] = bad
    return found


def pondered(projected=ZEROS, state=ZEROS[:, :4], flag=ZEROS[0], epsilon=0.01):
    return ponder(GruCell(4), projected, [2], flag, (state,), nn.Linear(4, 1), Limits(epsilon, 5))


def updated(run, *rest):
    """`run` with an update that changes nothing, from a bad state."""
    return lambda bad: run(lambda state, rows, n: state, (with_bad(bad),), *rest)


def first(state):
    return state[0][:, 0]


def wide(values: torch.Tensor, width: int) -> torch.Tensor:
    """As wide as that, of the first column."""
    return values[:, 1:2].expand(-1, width)


CALLS = {
    "adaptive_computation_time": [updated(adaptive_computation_time, first, Limits(0.01, 5))],
    "check_finite": [lambda bad: check_finite(x=with_bad(bad)), lambda bad: check_finite(x=bad)],
    "check_max_updates": [],
    "choose": [lambda bad: choose(with_bad(bad)), lambda bad: choose(GOOD, with_bad(bad))],
    "difference": [lambda bad: difference(with_bad(abs(bad)))],
    "divergence": [lambda bad: divergence(with_bad(bad), 0.2), lambda bad: divergence(LOG, bad)],
    "drawn_update": [
        lambda bad: drawn_update(with_bad(bad), GOOD[:, 0]),
        lambda bad: drawn_update(LOG, with_bad(bad)[:, 1]),
    ],
    "entropy": [lambda bad: entropy(with_bad(abs(bad)))],
    "exit_early": [updated(exit_early, first, lambda outputs: outputs > 1, 5)],
    "exits_loss": [lambda bad: exits_loss(with_bad(bad))],
    "expected": [lambda bad: expected(with_bad(bad), LOG), lambda bad: expected(GOOD, with_bad(bad))],
    "fit_in_one_pass": [
        lambda bad: fit_in_one_pass([GOOD[0].numpy(), with_bad(bad)[1].numpy()], 0.5, 0.04, "paper", ORDER),
        lambda bad: fit_in_one_pass([GOOD[0].numpy()], bad, 0.04, "released", ORDER),
    ],
    "fit_surprisal": [
        lambda bad: fit_surprisal(np.array([1.0, 2.0, bad]), 0.5, 0.04),
        lambda bad: fit_surprisal(np.array([1.0, 2.0]), bad, 0.04),
        lambda bad: fit_surprisal(np.array([1.0, 2.0]), 0.5, bad),
    ],
    "fit_with_mean": [
        lambda bad: fit_with_mean(np.array([1.0, 2.0, bad]), 0.5, 0.04),
        lambda bad: fit_with_mean(np.array([1.0, 2.0]), bad, 0.04),
        lambda bad: fit_with_mean(np.array([1.0, 2.0]), 0.5, bad),
    ],
    "halt": [
        updated(halt, first, torch.full((2,), 0.5), 5),
        lambda bad: halt(lambda state, rows, n: state, (GOOD,), first, with_bad(bad)[:, 1], 5),
    ],
    "highest": [lambda bad: highest(with_bad(bad), 1)],
    "log_geometric": [lambda bad: log_geometric(bad, 3, GOOD)],
    "log_halting_probabilities": [lambda bad: log_halting_probabilities(with_bad(bad))],
    "mix": [lambda bad: mix(GOOD, with_bad(bad)[:, 1], nn.Identity(), nn.Identity())],
    "num_chosen": [lambda bad: num_chosen(bad, 4)],
    "p_big": [lambda bad: p_big(FIT, with_bad(bad)), lambda bad: p_big(FIT.raised(bad), GOOD)],
    "ponder": [
        lambda bad: pondered(projected=wide(with_bad(bad), 12)),
        lambda bad: pondered(state=wide(with_bad(bad), 4)),
        lambda bad: pondered(flag=torch.full((12,), bad)),
        lambda bad: pondered(epsilon=bad),
    ],
    "ponder_loss": [
        lambda bad: ponder_loss(with_bad(bad), LOG, 0.2, 0.01),
        lambda bad: ponder_loss(GOOD, with_bad(bad), 0.2, 0.01),
        lambda bad: ponder_loss(GOOD, LOG, bad, 0.01),
        lambda bad: ponder_loss(GOOD, LOG, 0.2, bad),
    ],
    "squared_deviation": [lambda bad: squared_deviation(with_bad(bad), GOOD > 0)],
    "squared_excess": [
        lambda bad: squared_excess(with_bad(bad), GOOD > 0, 0.5),
        lambda bad: squared_excess(GOOD, GOOD > 0, bad),
    ],
    "threshold": [lambda bad: threshold(with_bad(bad))],
    "update_until": [updated(update_until, lambda state, rows, n: rows >= 0, 5)],
    "weighted": [
        lambda bad: weighted(with_bad(bad), GOOD[:, 0], GOOD[:, 0] > 0),
        lambda bad: weighted(GOOD, with_bad(bad)[:, 1], GOOD[:, 0] > 0),
    ],
}
OF_CLASSES = {
    "SurprisalFit": lambda bad: SurprisalFit(bad, 0.0, 0.5, 0.04),
    "TopKRouter in training": lambda bad: TopKRouter(3, 4)(with_bad(bad)[None], 1),
    "TopKRouter in evaluation": lambda bad: TopKRouter(3, 4).eval()(with_bad(bad)[None], 1),
}
MOVE_ROWS = {"take", "put_back", "route"}
"""They compute nothing of the values; a gradient that is no number passes them, and is counted by who asked for it."""

NO_NUMBERS = {"check_same_shape", "count_macs", "defer_weight_gradient", "exit_weights", "router_macs"}
"""They take a model, or whole numbers alone."""

BAD = pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])


def test_every_public_function_is_known_here():
    public = set()
    for module in pkgutil.iter_modules(conditional.__path__):
        block = importlib.import_module(f"{conditional.__name__}.{module.name}")
        functions = inspect.getmembers(block, inspect.isfunction)
        public |= {n for n, f in functions if f.__module__ == block.__name__ and not n.startswith("_")}
    assert public == CALLS.keys() | MOVE_ROWS | NO_NUMBERS


@BAD
@pytest.mark.parametrize("call", [pytest.param(c, id=f"{n} {i}") for n in CALLS for i, c in enumerate(CALLS[n])])
def test_a_function_refuses_what_is_no_number(call, bad):
    with pytest.raises(ValueError, match=r"must (be|have)"):
        call(bad)


@BAD
@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_class_refuses_what_is_no_number(name, bad):
    with pytest.raises(ValueError, match="must be finite"):
        OF_CLASSES[name](bad)


def test_what_was_given_is_named_and_counts_as_a_divergence():
    with pytest.raises(DivergedError, match="`surprisals` must be finite, but has nan; what gave it has diverged"):
        p_big(FIT, with_bad(math.nan))


def test_large_numbers_are_numbers():
    """Their sum is not."""
    huge = torch.tensor([3e38, 3e38])
    assert choose(huge).all()
    with pytest.raises(ValueError, match="`spread_of_surprisals` must be finite"):
        fit_surprisal(np.array([-1e308, 1e308]), 0.5, 0.04)


def test_an_impossible_class_is_no_fault():
    log_probs = torch.tensor([[-math.inf, 0.0, -math.inf]])
    assert (entropy(log_probs).item(), difference(log_probs).item()) == (0.0, 1.0)


def test_no_surprisals_at_all_have_no_fit():
    for fit in (lambda: fit_surprisal(np.empty(0), 0.5, 0.04), lambda: fit_in_one_pass([], 0.5, 0.04, "paper", ORDER)):
        with pytest.raises(ValueError, match="`surprisals` must have at least one number"):
            fit()


def test_rows_without_an_update_have_no_state():
    for call in (
        lambda: check_max_updates(0),
        lambda: Limits(0.01, 0),
        lambda: updated(update_until, lambda state, rows, n: rows >= 0, 0)(0.0),
    ):
        with pytest.raises(ValueError, match="`max_updates` must be at least 1, but got 0"):
            call()
