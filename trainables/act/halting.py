"""Adaptive Computation Time: at each step of a sequence as many updates as each row asks for.

Graves 2016 (arXiv:1603.08983), section 2. Rows that have halted leave the batch, so that the work follows the mean
number of updates and not the largest.

An update of few rows is a handful of small operations, so forward and backward are written out here. What does not
depend on the next update is done for all updates of a step at once: the halting units' share in the gradients, and the
slopes of the gates. The gradients of the weights are products over many updates.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from trainables.act.cells import ClosedForm, Slopes, State

PRODUCT_ROWS: Final = 256
"""Updated rows at least that one product with the weight's gradient takes in, if there are so many."""


class PonderCell(ClosedForm, Protocol):
    """A cell whose `recurrent` weights are U and c."""

    recurrent: nn.Linear

    def with_bias(self, projected: Tensor, bias: Tensor) -> Tensor:
        """The input of `advance`."""

    def of_inputs(self, of_gates: Tensor) -> Tensor:
        """The gradients of projected inputs from those of the gates (... W)."""


@dataclass(frozen=True, eq=False)
class Limits:
    """h sums to 1 - `epsilon`, in at most `max_updates`."""

    epsilon: float
    max_updates: int


@dataclass(frozen=True, eq=False)
class Ponder:
    """All steps, one behind the other: N rows in all.

    Attributes:
        states: the mean-field mixture of the states between: s_t = sum_n p_t^n s_t^n.
        num_updates: N(t), of each row.
        remainder: R(t), of each row; it carries the gradient of the ponder cost N(t) + R(t), in which N is a constant.
    """

    states: State
    num_updates: Int[Tensor, " N"]
    remainder: Float[Tensor, " N"]


def ponder(
    cell: PonderCell,
    projected: Float[Tensor, "N P"],
    sizes: Sequence[int],
    first_flag: Float[Tensor, " P"],
    state: State,
    halting: nn.Linear,
    limits: Limits,
) -> Ponder:
    """Updates the state at each step until each row's halting probabilities h sum to 1 - epsilon, or so often.

    N = min{M, min{n: sum_{i<=n} h^i >= 1 - epsilon}}; R = 1 - sum_{n<N} h^n; p^n is h^n before N, and R at N.
    h^n = sigmoid(halting(visible part of s^n)).

    Args:
        projected: the inputs of all steps, projected, one step behind the other.
        sizes: how many rows each step has, no more than the step before; the first ones go on.
        first_flag: what the first update has in addition: the weights of the flag that tells it from the others.
        state: before the first step.
    """
    weights = (cell.recurrent.weight, cell.recurrent.bias, halting.weight, halting.bias)
    keeps = torch.is_grad_enabled()
    arguments = (cell, tuple(sizes), limits, keeps, projected, first_flag, *weights, *state)
    *states, num_updates, remainder = _Ponder.apply(*arguments)  # type: ignore[no-untyped-call]
    return Ponder(tuple(states), num_updates, remainder)


@dataclass(eq=False)
class _Step:
    """The updates of one step: of each one its rows, and what came out of it.

    Attributes:
        rows: which of the step's.
        came: which rows of the update before go on to it; None where all do.
        before, after, kept: as in `ClosedForm`.
        h: the halting probabilities (R 1).
        spent: their sum before this update (R 1).
    """

    rows: list[Tensor] = field(default_factory=list)
    came: list[Tensor | None] = field(default_factory=list)
    before: list[State] = field(default_factory=list)
    after: list[State] = field(default_factory=list)
    kept: list[State] = field(default_factory=list)
    h: list[Tensor] = field(default_factory=list)
    spent: list[Tensor] = field(default_factory=list)

    def sum_by_row(self, values: Float[Tensor, "N X"], num_rows: int) -> Float[Tensor, "R X"]:
        """Over all updates; one after the other where a GPU would add them in any order."""
        total = values.new_zeros(num_rows, values.shape[1])
        if not values.is_cuda:
            return total.index_add_(0, torch.cat(self.rows), values)
        for rows, part in zip(self.rows, values.split([len(rows) for rows in self.rows]), strict=True):
            total.index_add_(0, rows, part)
        return total


@dataclass(frozen=True, eq=False)
class _Mixing:
    """How the states of a step's updates are mixed.

    Attributes:
        p: of each updated row (N 1).
        last: the place of each row's last update among the N.
        remainder: of each row.
    """

    p: Tensor
    last: Tensor
    remainder: Tensor


def _run(
    cell: PonderCell,
    base: Tensor,
    first: Tensor,
    before: State,
    weights: Sequence[Tensor],
    limits: Limits,
    threshold: float,
) -> _Step:
    """All updates of a step."""
    weight, bias, halting_weight, halting_bias = weights
    columns, column = weight.t(), halting_weight.t()
    step, inputs = _Step(), first
    rows, came, spent = torch.arange(len(base), device=base.device), None, base.new_zeros(len(base), 1)
    for n in range(1, limits.max_updates + 1):
        after, kept = cell.advance(inputs, before, columns, bias)
        h = torch.addmm(halting_bias, after[0], column).sigmoid_()
        step.rows.append(rows)
        step.came.append(came)
        step.before.append(before)
        step.after.append(after)
        step.kept.append(kept)
        step.h.append(h)
        step.spent.append(spent)
        if n == limits.max_updates:
            break
        before, spent, inputs, came = after, spent + h, base, None
        if len(rows) and spent.max().item() < threshold:
            continue
        came = (spent >= threshold).logical_not_().squeeze(1).nonzero().squeeze(1)
        if not len(came):
            break
        rows, base, spent = (one.index_select(0, came) for one in (rows, base, spent))
        before, inputs = tuple(part.index_select(0, came) for part in before), base
    return step


def _mix(step: _Step, num_rows: int, limits: Limits, threshold: float) -> _Mixing:
    rows, h, spent = torch.cat(step.rows), torch.cat(step.h), torch.cat(step.spent)
    left = 1 - spent
    halts = (spent + h) >= threshold
    if len(step.rows) == limits.max_updates:
        halts[len(halts) - len(step.rows[-1]) :] = True
    at = halts.squeeze(1).nonzero().squeeze(1)
    last = torch.empty(num_rows, dtype=torch.long, device=rows.device).index_copy_(0, rows.index_select(0, at), at)
    return _Mixing(torch.where(halts, left, h), last, left.squeeze(1).index_select(0, last))


class _Ponder(torch.autograd.Function):
    """See `ponder`."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: PonderCell,
        sizes: tuple[int, ...],
        limits: Limits,
        keeps: bool,
        projected: Tensor,
        flag: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        weights, state = tensors[:4], tensors[4:]
        threshold = float(projected.new_tensor(1 - limits.epsilon))  # as it is rounded where it is compared
        steps, found = [], []
        for base in cell.with_bias(projected, weights[1]).split(sizes):
            before = tuple(part[: len(base)] for part in state)
            step = _run(cell, base, base + flag, before, weights, limits, threshold)
            mixing = _mix(step, len(base), limits, threshold)
            state = tuple(step.sum_by_row(mixing.p * torch.cat(parts), len(base)) for parts in zip(*step.after, strict=True))
            num_updates = torch.bincount(torch.cat(step.rows), minlength=len(base))
            found.append((*state, num_updates, mixing.remainder))
            if keeps:
                steps.append((step, mixing))
        if keeps:
            ctx.cell, ctx.sizes, ctx.steps = cell, sizes, steps
            ctx.save_for_backward(*weights)
        flat = tuple(torch.cat(parts) for parts in zip(*found, strict=True))
        ctx.mark_non_differentiable(flat[-2])
        return flat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *of_states, _, of_remainder = gradients
        back = _Backward(ctx.cell, ctx.saved_tensors, of_states, ctx.sizes, any(ctx.needs_input_grad[10:]))
        for number in reversed(range(len(ctx.sizes))):
            back.step(number, *ctx.steps[number], of_remainder)
        return None, None, None, None, *back.found()


class _Backward:
    """The gradients of all that `_Ponder` reads, from those of its states, which it adds to a copy of."""

    def __init__(
        self,
        cell: PonderCell,
        weights: Sequence[Tensor],
        of_states: Sequence[Tensor],
        sizes: tuple[int, ...],
        asks_for_first: bool,
    ) -> None:
        self.cell, self.sizes = cell, sizes
        self.weight, _, self.halting_weight, _ = weights
        starts = [0, *itertools.accumulate(sizes)]
        self.rows = [slice(*ends) for ends in itertools.pairwise(starts)]
        self.of_states = [one.clone(memory_format=torch.contiguous_format) for one in of_states]
        self.of_first = [one.new_zeros(sizes[0], one.shape[1]) for one in of_states] if asks_for_first else []
        self.of_weight, self.of_halting = torch.zeros_like(self.weight), torch.zeros_like(self.halting_weight)
        self.of_halting_bias = self.weight.new_zeros(1)
        self.of_gates: list[Tensor] = []
        self.of_flag: list[Tensor] = []
        self.waiting: list[tuple[Tensor, Tensor]] = []

    def step(self, number: int, step: _Step, mixing: _Mixing, of_remainder: Tensor) -> None:
        """The updates of one step."""
        size, rows = self.sizes[number], self.rows[number]
        before, after, kept = (
            tuple(torch.cat(parts) for parts in zip(*of_updates, strict=True))
            for of_updates in (step.before, step.after, step.kept)
        )
        of_after = self._mixed(step, mixing, after, [one[rows] for one in self.of_states], of_remainder[rows])
        slopes = self.cell.slopes(before, after, kept, of_after)
        earlier = slice(self.rows[number - 1].start, self.rows[number - 1].start + size)
        target = [one[earlier] for one in self.of_states] if number else self.of_first
        self._updates(step, slopes, of_after, target)
        self.of_gates.append(step.sum_by_row(slopes.gates, size))
        self.of_flag.append(slopes.gates[:size].sum(0))
        self.waiting.append((slopes.gates[:, : len(self.weight)], before[0]))
        if sum(len(one) for one, _ in self.waiting) >= PRODUCT_ROWS:
            self._multiply()

    def _mixed(
        self, step: _Step, mixing: _Mixing, after: State, of_mixture: list[Tensor], of_remainder: Tensor
    ) -> State:
        """The gradients of states that come from their mixture and from their halting units.

        d s / d h^n = s^n - s^N and d R / d h^n = -1, for n < N.
        """
        rows, h = torch.cat(step.rows), torch.cat(step.h)
        of_after = tuple(one.index_select(0, rows) for one in of_mixture)
        worth = sum(torch.linalg.vecdot(*both) for both in zip(of_after, after, strict=True))
        assert isinstance(worth, Tensor)
        worth.index_add_(0, mixing.last, of_remainder)
        of_h = worth - worth.index_select(0, mixing.last.index_select(0, rows))
        of_logit = torch.ops.aten.sigmoid_backward(of_h.unsqueeze(1), h)
        self.of_halting.addmm_(of_logit.t(), after[0])
        self.of_halting_bias += of_logit.sum()
        for one in of_after:
            one.mul_(mixing.p)
        of_after[0].addcmul_(of_logit, self.halting_weight)
        return of_after

    def _updates(self, step: _Step, slopes: Slopes, of_after: State, of_first: Sequence[Tensor]) -> None:
        """From the last update to the first: turns slopes to gradients, and adds what goes to the states before."""
        sizes = [len(rows) for rows in step.rows]
        products = slopes.gates[:, : len(self.weight)].split_with_sizes(sizes)
        parts = list(zip(*(one.split_with_sizes(sizes) for one in slopes.parts), strict=True))
        states: list[State] = [tuple(of_first), *zip(*(one.split_with_sizes(sizes) for one in of_after), strict=True)]
        for n in reversed(range(len(sizes))):
            factors = self.cell.go_back(states[n + 1], *parts[n])
            before, came = states[n], step.came[n]
            if not before:
                break
            if came is None:
                before[0].addmm_(products[n], self.weight)
                for target, pair in zip(reversed(before), factors, strict=False):
                    target.addcmul_(*pair)
            else:
                before[0].index_add_(0, came, products[n] @ self.weight)
                for target, (one, other) in zip(reversed(before), factors, strict=False):
                    target.index_add_(0, came, one * other)

    def _multiply(self) -> None:
        of_gates, before = (torch.cat(parts) for parts in zip(*self.waiting, strict=True))
        self.of_weight.addmm_(of_gates.t(), before)
        self.waiting.clear()

    def found(self) -> tuple[Tensor | None, ...]:
        """In the order of `_Ponder`."""
        if self.waiting:
            self._multiply()
        of_gates, of_flag = torch.cat(self.of_gates[::-1]), torch.stack(self.of_flag).sum(0)
        return (
            self.cell.of_inputs(of_gates),
            self.cell.of_inputs(of_flag),
            self.of_weight,
            of_gates.sum(0)[: len(self.weight)],
            self.of_halting,
            self.of_halting_bias,
            *(self.of_first or [None] * len(self.of_states)),
        )
