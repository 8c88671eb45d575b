"""PonderNet: halting as a random variable whose distribution is learnt (Banino et al. 2021, arXiv:2107.05407).

lambda_n = sigmoid(logit_n) is the chance that update n halts a row that has come so far; that it halts there is p_n =
lambda_n prod_{j<n} (1 - lambda_j). The last of N updates takes what is left, so that p sums to 1. Training runs all N
updates of every row, and must be charged for them; where it is used a row leaves as soon as it has halted.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from trainables.conditional.adaptive_computation_time import HaltingUnit
from trainables.conditional.finite import check_finite
from trainables.conditional.halted_rows import RowUpdate, State, update_until
from trainables.conditional.same_shape import check_same_shape


def log_halting_probabilities(logits: Float[Tensor, "... N"]) -> Float[Tensor, "... N"]:
    """log p_n from the halting unit's logits; that of the last update counts for nothing.

    Raises:
        NotFiniteError: a ValueError, if one is NaN or infinite.
    """
    check_finite(logits=logits)
    log_left = F.pad(F.logsigmoid(-logits[..., :-1]).cumsum(-1), (1, 0))
    return torch.cat([F.logsigmoid(logits[..., :-1]), torch.zeros_like(logits[..., -1:])], -1) + log_left


def log_geometric(lambda_p: float, max_updates: int, like: Tensor) -> Float[Tensor, " N"]:
    """The prior: log of lambda_p (1 - lambda_p)^(n - 1) for n from 1 to N, divided by its sum 1 - (1 - lambda_p)^N.

    Args:
        lambda_p: in (0, 1); the mean of the geometric distribution before it is cut off is 1 / lambda_p.
        like: a tensor of the type and device to make it on.

    Raises:
        ValueError: if `lambda_p` is out of its range.
    """
    if not 0 < lambda_p < 1:
        raise ValueError(f"`lambda_p` must be in (0, 1), but got {lambda_p}.")
    before = torch.arange(max_updates, dtype=like.dtype, device=like.device)
    return (before * torch.log1p(before.new_tensor(-lambda_p))).log_softmax(0)


def ponder_loss(
    losses: Float[Tensor, "... N"], log_p: Float[Tensor, "... N"], lambda_p: float, beta: float
) -> Float[Tensor, "..."]:
    """sum_n p_n losses_n + beta KL(p || geometric prior), in nats; the prior is cut off at N. ::

        inputs, cell, both = torch.randn(8, 4), nn.GRUCell(4, 16), nn.Linear(16, 2)
        states = [cell(inputs)]
        for _ in range(9):
            states.append(cell(inputs, states[-1]))
        outputs, logits = both(torch.stack(states, 1)).unbind(-1)
        losses = (outputs - inputs.sum(1, keepdim=True)).square()
        loss = ponder_loss(losses, log_halting_probabilities(logits), lambda_p=0.2, beta=0.01).mean()
        loss.backward()

    It is `expected` plus beta `divergence`. Where something halts that has no target, such as a step of a sequence at
    which nothing is asked, take these two: the one of what has a target, the other of all that halts.

    Args:
        losses: of what is read out behind each of the N updates.
        log_p: of `log_halting_probabilities`, of the shape of `losses`.
        lambda_p: the prior's chance to halt behind an update, in (0, 1).
        beta: what a nat of divergence weighs, at least 0.

    Raises:
        ValueError: if the shapes differ, `lambda_p` is out of its range, or a number is NaN or infinite.
    """
    check_finite(beta=beta)
    return expected(losses, log_p) + beta * divergence(log_p, lambda_p)


def expected(losses: Float[Tensor, "... N"], log_p: Float[Tensor, "... N"]) -> Float[Tensor, "..."]:
    """sum_n p_n losses_n; of `losses` and `log_p` of one shape, else ValueError."""
    check_same_shape(losses=losses, log_p=log_p)
    check_finite(losses=losses, log_p=log_p)
    return (log_p.exp() * losses).sum(-1)


def divergence(log_p: Float[Tensor, "... N"], lambda_p: float) -> Float[Tensor, "..."]:
    """KL(p || geometric prior cut off at N), in nats.

    Raises:
        ValueError: if `lambda_p` is not in (0, 1), or a number is NaN or infinite.
    """
    check_finite(log_p=log_p)
    log_prior = log_geometric(lambda_p, log_p.shape[-1], log_p)
    return (log_p.exp() * (log_p - log_prior)).sum(-1)


def drawn_update(log_p: Float[Tensor, "R N"], draws: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Which update, counted from 0, halts each row: the first with p_1 + ... + p_n >= its draw, as in `halt`."""
    check_same_shape(column_of_log_p=log_p[:, 0], draws=draws)
    check_finite(log_p=log_p, draws=draws)
    is_left = log_p.exp().cumsum(-1)[:, :-1] < draws[:, None]
    return is_left.sum(-1)


def halt(
    update: RowUpdate, state: State, halting_unit: HaltingUnit, draws: Float[Tensor, " R"], max_updates: int
) -> tuple[State, Int[Tensor, " R"]]:
    """The state at which each row halts, and its number of updates; rows that have halted leave the batch.

    A row halts at the first n with p_1 + ... + p_n >= its draw. With draws uniform in [0, 1) it halts with chance
    lambda_n behind each update n, by one draw for all of them; with a draw of 1/2 for every row at the median of p. ::

        inputs, cell, halting = torch.randn(8, 4), nn.GRUCell(4, 16), nn.Linear(16, 1)
        (found,), num_updates = halt(
            lambda state, rows, n: (cell(inputs[rows], state[0]),),
            (torch.zeros(8, 16),),
            lambda state: halting(state[0]).squeeze(1),
            torch.rand(8),
            max_updates=20,
        )

    Args:
        draws: one for each row, in [0, 1).
        max_updates: at least 1; a row that has not halted by then halts there.

    Raises:
        ValueError: if `max_updates` is below 1, or a number is NaN or infinite.
    """
    check_finite(True, draws=draws)
    left, mass = torch.ones_like(draws), torch.zeros_like(draws)

    def stops(state: State, rows: Tensor, n: int) -> Tensor:
        chance = halting_unit(state).sigmoid()
        mass[rows] += left[rows] * chance
        left[rows] *= 1 - chance
        return mass[rows] >= draws[rows]

    with torch.no_grad():
        return update_until(update, state, stops, max_updates)
