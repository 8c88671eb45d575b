"""The steps of many sequences, one behind the other, where PonderNet or confidence halts them.

Of ACT the library has it whole (`recurrent_ponder`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from trainables.conditional.early_exit import exit_early
from trainables.conditional.halted_rows import RowUpdate, State
from trainables.conditional.ponder_net import drawn_update, halt
from trainables.conditional.recurrent_cells import Cell, Update


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the cell reads, of R rows in all.

    Attributes:
        projected: one step behind the other (R P).
        sizes: how many rows each step has; the first ones go on.
        first_flag: what the first update of a step has in addition (P).
        state: before the first step.
        max_updates: the most there are at one step.
    """

    projected: Tensor
    sizes: Sequence[int]
    first_flag: Tensor
    state: State
    max_updates: int


@dataclass(frozen=True, eq=False)
class Halted:
    """All R rows.

    Attributes:
        states: at which they halted, the visible part first.
        num_updates: N.
        outputs: what was read out there, where confidence halts.
    """

    states: State
    num_updates: Int[Tensor, " R"]
    outputs: Tensor | None = None


@dataclass(frozen=True, eq=False)
class EveryUpdate:
    """All R rows, each with all N updates.

    Attributes:
        visible: the visible part of the state behind each update (N R H).
        log_p: log of the weight of each update (R N).
        states: that went on to the next step: behind the update that was drawn.
    """

    visible: Float[Tensor, "N R H"]
    log_p: Float[Tensor, "R N"]
    states: State


def halted_by_draw(cell: Cell, inputs: Inputs, halting: nn.Linear, draws: Float[Tensor, " R"]) -> Halted:
    """PonderNet's steps; rows leave."""

    def unit(state: State) -> Tensor:
        logits: Tensor = halting(state[0]).squeeze(1)
        return logits

    def run(update: RowUpdate, state: State, rows: slice) -> Halted:
        return Halted(*halt(update, state, unit, draws[rows], inputs.max_updates))

    return _joined(list(_each_step(cell.begin(), inputs, run)))


def halted_by_confidence(
    cell: Cell,
    inputs: Inputs,
    readout: Callable[[Tensor], Float[Tensor, "r K C"]],
    is_sure: Callable[[Tensor], Bool[Tensor, " r"]],
) -> Halted:
    """Early exit's steps; rows leave."""

    def run(update: RowUpdate, state: State, rows: slice) -> Halted:
        done = exit_early(update, state, lambda state: readout(state[0]), is_sure, inputs.max_updates)
        return Halted(done.state, done.num_updates, done.output)

    return _joined(list(_each_step(cell.begin(), inputs, run)))


def every_update(
    cell: Cell,
    inputs: Inputs,
    log_p_of: Callable[[Float[Tensor, "r N H"]], Float[Tensor, "r N"]],
    draws: Float[Tensor, " R"],
) -> EveryUpdate:
    """All updates of all steps; what goes on is the state behind an update that is drawn with its weight.

    Args:
        log_p_of: from the visible parts of the states of a step to the logs of the weights of its updates.
    """
    updates: list[tuple[Tensor, Tensor]] = []

    def run(update: RowUpdate, state: State, rows: slice) -> Halted:
        everyone = torch.arange(state[0].shape[0], device=state[0].device)
        states = []
        for n in range(1, inputs.max_updates + 1):
            state = update(state, everyone, n)
            states.append(state)
        parts = tuple(torch.stack(part, 1) for part in zip(*states, strict=True))
        log_p = log_p_of(parts[0])
        drawn = drawn_update(log_p.detach(), draws[rows])
        updates.append((parts[0], log_p))
        return Halted(tuple(part[everyone, drawn] for part in parts), drawn + 1)

    done = _joined(list(_each_step(cell.begin(), inputs, run)))
    visible, log_p = (torch.cat(parts) for parts in zip(*updates, strict=True))
    return EveryUpdate(visible.transpose(0, 1), log_p, done.states)


def _each_step(update: Update, inputs: Inputs, run: Callable[[RowUpdate, State, slice], Halted]) -> Iterator[Halted]:
    state, start = inputs.state, 0
    for alive in inputs.projected.split(list(inputs.sizes)):
        size = alive.shape[0]
        done = run(
            _row_update(update, alive, inputs.first_flag),
            tuple(part[:size] for part in state),
            slice(start, start + size),
        )
        yield done
        state, start = done.states, start + size


def _row_update(update: Update, alive: Tensor, first_flag: Tensor) -> RowUpdate:
    first = alive + first_flag
    return lambda state, rows, n: update(first if n == 1 else alive.index_select(0, rows), state)


def _joined(steps: list[Halted]) -> Halted:
    outputs = [step.outputs for step in steps if step.outputs is not None]
    return Halted(
        tuple(torch.cat(parts) for parts in zip(*(step.states for step in steps), strict=True)),
        torch.cat([step.num_updates for step in steps]),
        torch.cat(outputs) if outputs else None,
    )
