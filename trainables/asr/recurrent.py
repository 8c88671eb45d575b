"""A gated recurrent layer on packed sequences whose cost is linear in time; cuDNN's where there is CUDA.

`nn.GRU` on a packed sequence cuts its inputs once for each step, and the gradient of each cut is as large as the whole
batch. Here the products with the inputs and the gradients of the weights are made for blocks of steps, as many as the
cache can hold. The equations are those of `nn.GRU`: with inputs x and state h

    r, z = sigmoid(W x + b + U h + c)    n = tanh(W x + b + r (U h + c))    h' = n + z (h - n)

(Cho et al. 2014, arXiv:1406.1078, with the reset gate behind the product).
"""

import itertools
from collections.abc import Sequence
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
    keeps = torch.is_grad_enabled() and any(one.requires_grad for one in (rows, *weights))
    hidden: Tensor = _Recurrence.apply(rows, order, keeps, *weights)  # type: ignore[no-untyped-call]
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
        found, first = [], 0
        for step, end in enumerate(self.starts[1:], 1):
            if end - self.starts[first] >= BLOCK_ROWS or step == len(self.sizes):
                found.append(Block(range(first, step), slice(self.starts[first], end)))
                first = step
        return found

    def turn(self, rows: Float[Tensor, "N D X"]) -> Float[Tensor, "N D X"]:
        """Rows in order of time to rows in the order in which each direction reads, and back; always a copy."""
        if self.turned is None:
            return rows.clone(memory_format=torch.contiguous_format)
        return torch.stack([rows[:, 0], rows[:, 1].index_select(0, self.turned)], dim=1)

    def sizes_of(self, block: Block) -> list[int]:
        """The sizes of its steps."""
        return self.sizes[block.steps.start : block.steps.stop]

    def before(self, states: Float[Tensor, "N D H"], step: int) -> Float[Tensor, "B D H"]:
        """The states from which those of `step` are made."""
        if not step:
            return states.new_zeros(self.sizes[0], *states.shape[1:])
        start = self.starts[step - 1]
        return states[start : start + self.sizes[step]]


def _turned(batch_sizes: Tensor) -> Tensor:
    starts = torch.cat([batch_sizes.new_zeros(1), batch_sizes.cumsum(0)])
    step = torch.repeat_interleave(torch.arange(len(batch_sizes)), batch_sizes)
    sequence = torch.arange(len(step)) - starts[step]
    return starts[torch.bincount(sequence)[sequence] - 1 - step] + sequence


class _Recurrence(torch.autograd.Function):
    """Rows of packed data to the states of each direction.

    Kept for backward are r, z and the state's part of n (N D 3H), and n (N D H), beside the states.
    """

    @staticmethod
    def forward(context: Any, rows: Tensor, order: Order, keeps: bool, *weights: Tensor) -> Tensor:
        parts, size, blocks = len(weights) // 4, weights[-1].shape[0] // 3, order.blocks()
        num_kept = len(rows) if keeps else max(block.rows.stop - block.rows.start for block in blocks)
        all_gates, all_new = (rows.new_empty(num_kept, parts, width) for width in (3 * size, size))
        states = rows.new_empty(len(rows), parts, size)
        read = [rows] if order.turned is None else [rows, rows.index_select(0, order.turned)]
        for block in blocks:
            kept = block.rows if keeps else slice(block.rows.stop - block.rows.start)
            gates, new = all_gates[kept], all_new[kept]
            for one in range(parts):
                _read(gates[:, one], new[:, one], read[one][block.rows], *weights[one::parts])
            _advance(gates, new, states, block, order, weights[parts : 2 * parts])
        if keeps:
            context.order = order
            context.save_for_backward(rows, all_gates, all_new, states, *weights)
        return order.turn(states).flatten(1)

    @staticmethod
    @once_differentiable
    def backward(context: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        rows, gates, new, states, *weights = context.saved_tensors
        order, parts = context.order, len(weights) // 4
        of_states = order.turn(of_outputs.unflatten(1, (parts, -1)))
        of_weights = [torch.zeros_like(weight) for weight in weights]
        read = [rows] if order.turned is None else [rows, rows.index_select(0, order.turned)]
        of_read = [torch.empty_like(rows) for _ in read if context.needs_input_grad[0]]
        for block in reversed(order.blocks()):
            before = torch.cat([order.before(states, step) for step in block.steps])
            kept = (gates[block.rows], new[block.rows])
            of_gates, of_new = _go_back(*kept, before, of_states, block, order, weights[parts : 2 * parts])
            for one in range(parts):
                of_input, of_recurrent, of_bias, of_state_bias = of_weights[one::parts]
                of_state_bias += of_gates[:, one].sum(0)
                of_recurrent.addmm_(of_gates[:, one].t(), before[:, one])
                of_gates[:, one, -new.shape[-1] :] = of_new[:, one]
                of_bias += of_gates[:, one].sum(0)
                of_input.addmm_(of_gates[:, one].t(), read[one][block.rows])
                if of_read:
                    torch.mm(of_gates[:, one], weights[one], out=of_read[one][block.rows])
        return _both(of_read, order), None, None, *of_weights


def _both(of_read: list[Tensor], order: Order) -> Tensor | None:
    """The gradient of the rows, from that of what each direction read; None where none is wanted."""
    if not of_read:
        return None
    return of_read[0] if order.turned is None else of_read[0] + of_read[1].index_select(0, order.turned)


def _read(
    gates: Tensor, new: Tensor, inputs: Tensor, weight: Tensor, _: Tensor, bias: Tensor, state_bias: Tensor
) -> None:
    """Begins the gates of one direction with what does not need the state."""
    two = 2 * new.shape[-1]
    torch.addmm(bias[:two] + state_bias[:two], inputs, weight[:two].t(), out=gates[:, :two])
    torch.addmm(bias[two:], inputs, weight[two:].t(), out=new)
    gates[:, two:] = state_bias[two:]


def _advance(gates: Tensor, new: Tensor, states: Tensor, block: Block, order: Order, weights: Sequence[Tensor]) -> None:
    """Makes the states of a block, step by step, with each direction's weight."""
    sizes, size, transposed = order.sizes_of(block), new.shape[-1], [weight.t() for weight in weights]
    of_block = states[block.rows]
    reset, update, from_state = (part.split(sizes) for part in gates.split(size, -1))
    both, news, made = gates[..., : 2 * size].split(sizes), new.split(sizes), of_block.split(sizes)
    products, read = _of_directions(gates, sizes), _of_directions(of_block, sizes)
    last = order.before(states, block.steps.start)
    lasts = list(last.unbind(1))
    for step, num_rows in enumerate(sizes):
        if len(last) > num_rows:
            last, lasts = last[:num_rows], [state[:num_rows] for state in lasts]
        for product, state, weight in zip(products, lasts, transposed, strict=True):
            product[step].addmm_(state, weight)
        both[step].sigmoid_()
        news[step].addcmul_(reset[step], from_state[step]).tanh_()
        torch.lerp(news[step], last, update[step], out=made[step])
        last, lasts = made[step], [state[step] for state in read]


def _of_directions(rows: Float[Tensor, "N D *X"], sizes: list[int]) -> list[tuple[Tensor, ...]]:
    """What each direction has at each step."""
    return [part.split(sizes) for part in rows.unbind(1)]


def _go_back(
    gates: Tensor,
    new: Tensor,
    before: Tensor,
    of_states: Tensor,
    block: Block,
    order: Order,
    weights: Sequence[Tensor],
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
    by_gate, updates = of_gates.unflatten(-1, (3, -1)).split(sizes), update.split(sizes)
    products, made = _of_directions(of_gates, sizes), of_states[block.rows]
    whole, one_by_one = (made.split(sizes), made.unsqueeze(2).split(sizes))
    first = block.steps.start
    lasts = [order.before(of_states, first) if first else None, *whole[:-1]]
    for step in reversed(range(len(sizes))):
        by_gate[step].mul_(one_by_one[step])
        last = lasts[step]
        if last is None:
            break
        last = last[: sizes[step]] if len(last) > sizes[step] else last
        last.addcmul_(whole[step], updates[step])
        for state, product, weight in zip(last.unbind(1), products, weights, strict=True):
            state.addmm_(product[step], weight)
    return of_gates, made * slope_of_new
