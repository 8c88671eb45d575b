"""A gated recurrent layer on packed sequences whose cost is linear in time; cuDNN's where there is CUDA.

`nn.GRU` on a packed sequence cuts its inputs once for each step, and the gradient of each cut is as large as the whole
batch. Here the products with the inputs and the gradients of the weights are made for blocks of steps, as many as the
cache can hold. The equations are those of `nn.GRU`: with inputs x and state h

    r, z = sigmoid(W x + b + U h + c)    n = tanh(W x + b + r (U h + c))    h' = n + z (h - n)

(Cho et al. 2014, arXiv:1406.1078, with the reset gate behind the product).
"""

import functools
import itertools
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

BLOCK_ROWS: Final = 256
"""Rows that the steps of a block have at least."""


def recur(gru: nn.GRU, packed: PackedSequence) -> PackedSequence:
    """What `gru(packed)[0]` is, for one layer that starts from zeros."""
    if packed.data.is_cuda:
        outputs: PackedSequence = gru(packed)[0]
        return outputs
    return packed._replace(data=_run(gru, packed.data, packed.batch_sizes))


def recur_padded(gru: nn.GRU, inputs: Float[Tensor, "B T I"]) -> Float[Tensor, "B T H"]:
    """What `gru(inputs)[0]` is, for one layer of one direction that starts from zeros."""
    if inputs.is_cuda:
        outputs: Tensor = gru(inputs)[0]
        return outputs
    num_rows, num_steps, _ = inputs.shape
    hidden = _run(gru, inputs.transpose(0, 1).flatten(0, 1), torch.full((num_steps,), num_rows))
    by_row: Tensor = hidden.unflatten(0, (num_steps, num_rows)).transpose(0, 1)
    return by_row.contiguous()


def _run(gru: nn.GRU, rows: Float[Tensor, "N I"], batch_sizes: Int[Tensor, " T"]) -> Float[Tensor, "N DH"]:
    ends = ("", "_reverse") if gru.bidirectional else ("",)
    names = [f"{kind}_l0{end}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for end in ends]
    order, weights = Order(batch_sizes, len(ends)), [getattr(gru, name) for name in names]
    keeps = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (rows, *weights))
    hidden: Tensor = _Recurrence.apply(rows, order, keeps, *weights)
    return hidden


@dataclass(frozen=True)
class Block:
    """Steps that follow each other, and their rows."""

    steps: range
    rows: slice


class Order:
    """Which row follows which.

    Attributes:
        sizes: how many sequences reach each step, the longest ones first.
        starts: the first row of each step.
        turned: for each row, the one in its place where each sequence is read from its end; None where none is.
    """

    def __init__(self, batch_sizes: Int[Tensor, " T"], num_directions: int) -> None:
        self.sizes: list[int] = batch_sizes.tolist()
        self.starts = [0, *itertools.accumulate(self.sizes)]
        self.turned = _turned(batch_sizes) if num_directions == 2 else None

    def blocks(self) -> list[Block]:
        """All steps, in order."""
        blocks, first = [], 0
        for step, end in enumerate(self.starts[1:], 1):
            if end - self.starts[first] >= BLOCK_ROWS or step == len(self.sizes):
                blocks.append(Block(range(first, step), slice(self.starts[first], end)))
                first = step
        return blocks

    def turn(self, rows: Float[Tensor, "D N X"]) -> list[Float[Tensor, "N X"]]:
        """Rows in order of time to rows in the order in which each direction reads, and back."""
        return [rows[0]] if self.turned is None else [rows[0], rows[1].index_select(0, self.turned)]

    def sizes_of(self, block: Block) -> list[int]:
        """The sizes of its steps."""
        return self.sizes[block.steps.start : block.steps.stop]

    def before(self, states: Float[Tensor, "D N H"], step: int) -> Float[Tensor, "D B H"]:
        """The states from which those of `step` are made."""
        if not step:
            return states.new_zeros(len(states), self.sizes[0], states.shape[-1])
        start = self.starts[step - 1]
        return states[:, start : start + self.sizes[step]]


def _turned(batch_sizes: Tensor) -> Tensor:
    starts = torch.cat([batch_sizes.new_zeros(1), batch_sizes.cumsum(0)])
    step = torch.repeat_interleave(torch.arange(len(batch_sizes)), batch_sizes)
    sequence = torch.arange(len(step)) - starts[step]
    return starts[torch.bincount(sequence)[sequence] - 1 - step] + sequence


class _Recurrence(torch.autograd.Function):
    """Rows of packed data to the states of each direction.

    Kept for backward are r, z and the state's part of n (D N 3H), and n (D N H), beside the states.
    """

    @staticmethod
    def forward(context: Any, rows: Tensor, order: Order, keeps: bool, *weights: Tensor) -> Tensor:
        parts, size, blocks = len(weights) // 4, weights[-1].shape[0] // 3, order.blocks()
        num_kept = len(rows) if keeps else max(block.rows.stop - block.rows.start for block in blocks)
        all_gates, all_new = (rows.new_empty(parts, num_kept, width) for width in (3 * size, size))
        states = rows.new_empty(parts, len(rows), size)
        read, of_state = order.turn(rows.expand(parts, -1, -1)), torch.stack(weights[parts : 2 * parts])
        for block in blocks:
            kept = block.rows if keeps else slice(block.rows.stop - block.rows.start)
            gates, new = all_gates[:, kept], all_new[:, kept]
            for part in range(parts):
                _read(gates[part], new[part], read[part][block.rows], *weights[part::parts])
            _advance(gates, new, states, block, order, of_state.transpose(1, 2))
        if keeps:
            context.order = order
            context.save_for_backward(rows, all_gates, all_new, states, *weights)
        return torch.cat(order.turn(states), dim=1)

    @staticmethod
    @once_differentiable
    def backward(context: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        rows, gates, new, states, *weights = context.saved_tensors
        order, parts, size = context.order, len(weights) // 4, new.shape[-1]
        of_states = torch.stack(order.turn(of_outputs.unflatten(1, (parts, -1)).transpose(0, 1)))
        of_weights = [torch.zeros_like(weight) for weight in weights]
        read, of_state = order.turn(rows.expand(parts, -1, -1)), torch.stack(weights[parts : 2 * parts])
        of_read = rows.new_empty(parts, *rows.shape) if context.needs_input_grad[0] else None
        for block in reversed(order.blocks()):
            before = torch.cat([order.before(states, step) for step in block.steps], dim=1)
            kept = (gates[:, block.rows], new[:, block.rows])
            of_gates, of_new = _go_back(*kept, before, of_states, block, order, of_state)
            for part in range(parts):
                of_input, of_recurrent, of_bias, of_state_bias = of_weights[part::parts]
                of_state_bias += of_gates[part].sum(0)
                of_recurrent.addmm_(of_gates[part].t(), before[part])
                of_gates[part, :, 2 * size :] = of_new[part]
                of_bias += of_gates[part].sum(0)
                of_input.addmm_(of_gates[part].t(), read[part][block.rows])
                if of_read is not None:
                    torch.mm(of_gates[part], weights[part], out=of_read[part, block.rows])
        of_rows = None if of_read is None else functools.reduce(torch.add, order.turn(of_read))
        return of_rows, None, None, *of_weights


def _read(
    gates: Tensor, new: Tensor, inputs: Tensor, weight: Tensor, _: Tensor, bias: Tensor, state_bias: Tensor
) -> None:
    """Begins the gates of one direction with what does not need the state."""
    two = 2 * new.shape[-1]
    torch.addmm(bias[:two] + state_bias[:two], inputs, weight[:two].t(), out=gates[:, :two])
    torch.addmm(bias[two:], inputs, weight[two:].t(), out=new)
    gates[:, two:] = state_bias[two:]


def _advance(
    gates: Tensor, new: Tensor, states: Tensor, block: Block, order: Order, weights: Float[Tensor, "D H G"]
) -> None:
    """Makes the states of a block, step by step."""
    sizes, size = order.sizes_of(block), new.shape[-1]
    reset, update, from_state = (part.split(sizes, dim=1) for part in gates.split(size, -1))
    all_gates, both = gates.split(sizes, dim=1), gates[..., : 2 * size].split(sizes, dim=1)
    news, made = new.split(sizes, dim=1), states[:, block.rows].split(sizes, dim=1)
    last = order.before(states, block.steps.start)
    for step, num_rows in enumerate(sizes):
        if last.shape[1] > num_rows:
            last = last[:, :num_rows]
        all_gates[step].baddbmm_(last, weights)
        both[step].sigmoid_()
        news[step].addcmul_(reset[step], from_state[step]).tanh_()
        last = torch.lerp(news[step], last, update[step], out=made[step])


def _go_back(
    gates: Tensor,
    new: Tensor,
    before: Tensor,
    of_states: Tensor,
    block: Block,
    order: Order,
    weights: Float[Tensor, "D G H"],
) -> tuple[Tensor, Tensor]:
    """The gradients of what a block's gates get from the state, and of what n gets from the inputs.

    Adds to `of_states` of each step what comes back from the next one.
    """
    sizes = order.sizes_of(block)
    reset, update, from_state = gates.split(new.shape[-1], -1)
    slope_of_new = (1 - update) * (1 - new * new)
    of_gates = torch.cat(
        [slope_of_new * from_state * reset * (1 - reset), (before - new) * update * (1 - update), slope_of_new * reset],
        dim=-1,
    )
    made = of_states[:, block.rows]
    all_gates, by_gate = of_gates.split(sizes, dim=1), of_gates.unflatten(-1, (3, -1)).split(sizes, dim=1)
    whole, by_row = made.split(sizes, dim=1), made.unsqueeze(2).split(sizes, dim=1)
    updates, first = update.split(sizes, dim=1), block.steps.start
    lasts = [order.before(of_states, first) if first else None, *whole[:-1]]
    for step in reversed(range(len(sizes))):
        by_gate[step].mul_(by_row[step])
        last = lasts[step]
        if last is None:
            break
        last = last[:, : sizes[step]] if last.shape[1] > sizes[step] else last
        last.addcmul_(whole[step], updates[step]).baddbmm_(all_gates[step], weights)
    return of_gates, made * slope_of_new
