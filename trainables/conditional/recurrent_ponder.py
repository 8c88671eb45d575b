"""Adaptive Computation Time of recurrent cells: at each step of a sequence as many updates as each row asks for.

Graves 2016 (arXiv:1603.08983), section 2; `adaptive_computation_time` does the same for any update, by autograd. Rows
that have halted leave the batch, so that the work follows the mean number of updates and not the largest.

An update of few rows is a handful of small operations, so forward and backward are written out here. What does not
depend on the next update is done for all updates of a step at once: the halting units' share in the gradients, and the
slopes of the gates. The gradients of the weights are products over many updates.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from trainables.conditional.adaptive_computation_time import Limits, Ponder
from trainables.conditional.finite import check_finite
from trainables.conditional.halted_rows import State
from trainables.conditional.recurrent_cells import Cell, Slopes

PRODUCT_ROWS: Final = 256
"""Updated rows at least that one product with the weight's gradient takes in, if there are so many."""


def ponder(
    cell: Cell,
    projected: Float[Tensor, "N P"],
    sizes: Sequence[int],
    first_flag: Float[Tensor, " P"],
    state: State,
    halting: nn.Linear,
    limits: Limits,
) -> Ponder:
    """Updates the state at each step until the halting probabilities h of each row sum to 1 - epsilon, or M times.

    N = min{M, min{n: sum_{i<=n} h^i >= 1 - epsilon}}; R = 1 - sum_{n<N} h^n; p^n is h^n before N, and R at N.
    h^n = sigmoid(halting(visible part of s^n)). Two sequences of 3 and 2 steps, from states of zeros::

        cell, halting, inputs = GruCell(16), nn.Linear(16, 1), nn.Linear(4, 3 * 16)
        flag, state = torch.zeros(3 * 16), (torch.zeros(2, 16),)
        done = ponder(cell, inputs(torch.randn(5, 4)), [2, 2, 1], flag, state, halting, Limits(0.01, 20))
        (done.states[0].square().sum() + 1e-3 * (done.num_updates + done.remainder).sum()).backward()

    All is of one precision: call it outside of `torch.autocast`, or within `torch.autocast(device, enabled=False)`.

    Args:
        projected: the inputs of all steps, projected, one step behind the other.
        sizes: how many rows each step has, no more than the step before; the first ones go on. Of no step nothing
            comes back: no rows.
        first_flag: what the first update has in addition: the weights of the flag that tells it from the others.
        state: before the first step.
        halting: from the visible part of a state (H) to one logit, with a bias.

    Raises:
        NotFiniteError: a ValueError, if an input or the state is not finite.
    """
    parts = {f"state[{number}]": part for number, part in enumerate(state)}
    check_finite(True, projected=projected, first_flag=first_flag, **parts)
    if not sizes:
        sizes, state = (0,), tuple(part[:0] for part in state)
    weights = (cell.recurrent.weight, cell.recurrent.bias, halting.weight, halting.bias)
    keeps = torch.is_grad_enabled()
    arguments = (cell, tuple(sizes), limits, keeps, projected, first_flag, *weights, *state)
    *states, num_updates, remainder = _Ponder.apply(*arguments)
    return Ponder(tuple(states), num_updates, remainder)


@dataclass(frozen=True, eq=False)
class _Step:
    """The updates of one step.

    Attributes:
        rows: of each update, which of the step's it has.
        sizes: how many.
        came: of each update, which rows of the one before it go on to it; None where all do.
        before, after, kept: of each update, as in `Cell`.
        all_rows: those of all updates, one update behind the other (N).
        h: the halting probabilities (N 1).
        p: how much of each state is mixed (N 1).
        last: the place of each row's last update among the N.
    """

    rows: list[Tensor]
    sizes: list[int]
    came: list[Tensor | None]
    before: list[State]
    after: list[State]
    kept: list[State]
    all_rows: Tensor
    h: Tensor
    p: Tensor
    last: Tensor

    def sum_by_row(self, values: Float[Tensor, "N X"]) -> Float[Tensor, "R X"]:
        """Over all updates; one after the other where a GPU would add them in any order."""
        if self.sizes[-1] == self.sizes[0]:
            by_update: Tensor = values.unflatten(0, (len(self.sizes), self.sizes[0]))
            return by_update.sum(0)
        total = values.new_zeros(self.sizes[0], values.shape[1])
        if not values.is_cuda:
            return total.index_add_(0, self.all_rows, values)
        for rows, part in zip(self.rows, values.split_with_sizes(self.sizes), strict=True):
            total.index_add_(0, rows, part)
        return total


def _run(
    cell: Cell,
    base: Tensor,
    first: Tensor,
    before: State,
    weights: Sequence[Tensor],
    limits: Limits,
    threshold: float,
) -> _Step:
    """All updates of a step."""
    weight, bias, halting_weight, halting_bias = weights
    columns, column, inputs = weight.t(), halting_weight.t(), first
    size, came, spent = base.shape[0], None, base.new_zeros(base.shape[0], 1)
    rows = torch.arange(size, device=base.device)
    updates: list[tuple[Any, ...]] = []
    for n in range(1, limits.max_updates + 1):
        after, kept = cell.advance(inputs, before, columns, bias)
        h = torch.addmm(halting_bias, after[0], column).sigmoid_()
        updates.append((rows, size, came, before, after, kept, h, spent))
        before, spent, inputs, came = after, spent + h, base, None
        if n == limits.max_updates or (size and spent.max().item() < threshold):
            continue
        came = (spent >= threshold).logical_not_().squeeze(1).nonzero().squeeze(1)
        size = came.shape[0]
        if not size:
            break
        rows, base, spent = (tensor.index_select(0, came) for tensor in (rows, base, spent))
        before, inputs = tuple(part.index_select(0, came) for part in before), base
    return _noted(updates, limits, threshold)


def _noted(updates: list[tuple[Any, ...]], limits: Limits, threshold: float) -> _Step:
    rows, sizes, came, before, after, kept, h, spent = map(list, zip(*updates, strict=True))
    all_rows = _joined(rows)
    if sizes[-1] == sizes[0]:  # all halt at once
        p = _joined([*h[:-1], 1 - spent[-1]])
        last = torch.arange(p.shape[0] - sizes[-1], p.shape[0], device=p.device)
    else:
        halts = torch.cat(spent) + torch.cat(h) >= threshold
        if len(sizes) == limits.max_updates:
            halts[halts.shape[0] - sizes[-1] :] = True
        p = torch.where(halts, 1 - torch.cat(spent), torch.cat(h))
        at = halts.squeeze(1).nonzero().squeeze(1)
        last = torch.empty_like(rows[0]).index_copy_(0, all_rows.index_select(0, at), at)
    return _Step(rows, sizes, came, before, after, kept, all_rows, _joined(h), p, last)


def _joined(parts: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _joined_each(of_updates: list[State]) -> State:
    """What belongs together of all updates."""
    return tuple(map(_joined, zip(*of_updates, strict=True)))


class _Ponder(torch.autograd.Function):
    """See `ponder`."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        sizes: tuple[int, ...],
        limits: Limits,
        keeps: bool,
        projected: Tensor,
        flag: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        weights, state = tensors[:4], tensors[4:]
        threshold = torch.tensor(1 - limits.epsilon, dtype=projected.dtype).item()  # rounded as where it is compared
        steps, found = [], []
        for base in cell.with_bias(projected, weights[1]).split_with_sizes(sizes):
            num_rows = base.shape[0]
            before = tuple(part[:num_rows] for part in state)
            step = _run(cell, base, base + flag, before, weights, limits, threshold)
            state = tuple(step.sum_by_row(step.p * part) for part in _joined_each(step.after))
            num_updates = torch.bincount(step.all_rows, minlength=num_rows)
            found.append((*state, num_updates, step.p.squeeze(1).index_select(0, step.last)))
            if keeps:
                steps.append(step)
        if keeps:
            ctx.cell, ctx.sizes, ctx.steps = cell, sizes, steps
            ctx.save_for_backward(*weights)
        flat = _joined_each(found)
        ctx.mark_non_differentiable(flat[-2])
        return flat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *of_states, _, of_remainder = gradients
        back = _Backward(ctx.cell, ctx.saved_tensors, of_states, ctx.sizes, any(ctx.needs_input_grad[10:]))
        for number in reversed(range(len(ctx.sizes))):
            back.step(number, ctx.steps[number], of_remainder)
        return None, None, None, None, *back.found()


class _Backward:
    """The gradients of all that `_Ponder` reads, from those of its states, which it adds to a copy of."""

    def __init__(
        self,
        cell: Cell,
        weights: Sequence[Tensor],
        of_states: Sequence[Tensor],
        sizes: tuple[int, ...],
        asks_for_first: bool,
    ) -> None:
        self.cell, self.sizes = cell, sizes
        self.weight, _, self.halting_weight, _ = weights
        self.num_gates = self.weight.shape[0]
        starts = [0, *itertools.accumulate(sizes)]
        self.rows = [slice(*ends) for ends in itertools.pairwise(starts)]
        self.of_states = [state.clone(memory_format=torch.contiguous_format) for state in of_states]
        self.of_first = [state.new_zeros(sizes[0], state.shape[1]) for state in of_states] if asks_for_first else []
        self.of_weights: list[Tensor] = []
        self.of_gates: list[Tensor] = []
        self.of_flag: list[Tensor] = []
        self.waiting: list[State] = []

    def step(self, number: int, step: _Step, of_remainder: Tensor) -> None:
        """The updates of one step."""
        size, rows = self.sizes[number], self.rows[number]
        before, after, kept = map(_joined_each, (step.before, step.after, step.kept))
        of_after, of_logit = self._mixed(step, after, [state[rows] for state in self.of_states], of_remainder[rows])
        slopes = self.cell.slopes(before, after, kept, of_after)
        earlier = slice(self.rows[number - 1].start, self.rows[number - 1].start + size)
        self._updates(step, slopes, of_after, [state[earlier] for state in self.of_states] if number else self.of_first)
        self.of_gates.append(step.sum_by_row(slopes.gates))
        self.of_flag.append(slopes.gates[:size].sum(0))
        self.waiting.append((slopes.gates[:, : self.num_gates], before[0], of_logit, after[0]))
        if sum(factors[0].shape[0] for factors in self.waiting) >= PRODUCT_ROWS:
            self._multiply()

    def _mixed(self, step: _Step, after: State, of_mixture: list[Tensor], of_remainder: Tensor) -> tuple[State, Tensor]:
        """The gradients of states that come from their mixture and from their halting units, and those of the units.

        d s / d h^n = s^n - s^N and d R / d h^n = -1, for n < N.
        """
        of_after = tuple(state.index_select(0, step.all_rows) for state in of_mixture)
        worth = torch.linalg.vecdot(of_after[0], after[0])
        for both in zip(of_after[1:], after[1:], strict=True):
            worth += torch.linalg.vecdot(*both)
        worth.index_add_(0, step.last, of_remainder)
        of_h = worth - worth.index_select(0, step.last.index_select(0, step.all_rows))
        of_logit = torch.ops.aten.sigmoid_backward(of_h.unsqueeze(1), step.h)
        for state in of_after:
            state.mul_(step.p)
        of_after[0].addcmul_(of_logit, self.halting_weight)
        return of_after, of_logit

    def _updates(self, step: _Step, slopes: Slopes, of_after: State, of_first: list[Tensor]) -> None:
        """Goes from the last update to the first: turns slopes to gradients, adds what goes to the states before."""
        products = slopes.gates[:, : self.num_gates].split_with_sizes(step.sizes)
        parts = list(zip(*(one.split_with_sizes(step.sizes) for one in slopes.parts), strict=True))
        states = list(zip(*(one.split_with_sizes(step.sizes) for one in of_after), strict=True))
        for n in reversed(range(len(step.sizes))):
            factors = self.cell.go_back(states[n], *parts[n])
            before, came = states[n - 1] if n else of_first, step.came[n]
            if not before:
                break
            if came is None:
                before[0].addmm_(products[n], self.weight)
                for one, other in factors:
                    before[-1].addcmul_(one, other)
            else:
                before[0].index_add_(0, came, products[n] @ self.weight)
                for one, other in factors:
                    before[-1].index_add_(0, came, one * other)

    def _multiply(self) -> None:
        """The gradients of the weights so far."""
        of_gates, before, of_logit, after = _joined_each(self.waiting)
        self.waiting.clear()
        if self.of_weights:
            self.of_weights[0].addmm_(of_gates.t(), before)
            self.of_weights[1].addmm_(of_logit.t(), after)
            self.of_weights[2].add_(of_logit.sum(0))
        else:
            self.of_weights = [of_gates.t() @ before, of_logit.t() @ after, of_logit.sum(0)]

    def found(self) -> tuple[Tensor | None, ...]:
        """The gradients in the order of `_Ponder`'s arguments."""
        if self.waiting:
            self._multiply()
        of_gates, (of_weight, *of_halting) = _joined(self.of_gates[::-1]), self.of_weights
        of_flag = self.of_flag[0] if len(self.of_flag) == 1 else torch.stack(self.of_flag).sum(0)
        of_bias = of_gates.sum(0)[: self.num_gates]
        of_first: Sequence[Tensor | None] = self.of_first or [None] * len(self.of_states)
        return self.cell.of_inputs(of_gates), self.cell.of_inputs(of_flag), of_weight, of_bias, *of_halting, *of_first
