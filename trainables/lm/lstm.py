"""One step of an LSTM layer and its vector-Jacobian product, in closed form (Hochreiter and Schmidhuber 1997)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights of a layer in torch's order of gates: input, forget, cell, output."""

    weight_ih: Float[Tensor, "G I"]
    weight_hh: Float[Tensor, "G H"]
    bias: Float[Tensor, " G"]


@dataclass(frozen=True, eq=False)
class Cell:
    """A layer's activations at one step, with what its derivatives need."""

    input: Tensor
    forget: Tensor
    candidate: Tensor
    output: Tensor
    old_memory: Tensor
    memory: Tensor
    squashed: Tensor
    hidden: Tensor


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`rows` times the transposed `weight`, plus `bias`, in the precision of `rows` whatever multiplies them."""
    if bias is None:
        return _as(rows, rows @ weight.t())
    if rows.ndim > 2:
        return _as(rows, rows @ weight.t()) + bias
    return _as(rows, torch.addmm(bias, rows, weight.t()))


def _as(rows: Tensor, like: Tensor) -> Tensor:
    return like if like.dtype == rows.dtype else like.to(rows.dtype)  # most have it, and to ask takes time too


def cell(gates: Float[Tensor, "R G"], old_memory: Float[Tensor, "R H"]) -> Cell:
    """c = f c_old + i g and h = o tanh(c), of R rows whose `gates` are not yet squashed."""
    size = gates.shape[1] // 4
    input, forget = gates[:, : 2 * size].sigmoid().chunk(2, dim=1)
    candidate, output = gates[:, 2 * size : 3 * size].tanh(), gates[:, 3 * size :].sigmoid()
    memory = torch.addcmul(input * candidate, forget, old_memory)
    squashed = memory.tanh()
    return Cell(input, forget, candidate, output, old_memory, memory, squashed, output * squashed)


def memory_gradient(cell: Cell, hidden: Float[Tensor, "R H"]) -> Float[Tensor, "R H"]:
    """The gradient of the memory c that the gradient `hidden` of h implies: dh o (1 - tanh(c)^2)."""
    return _through_tanh(hidden * cell.output, cell.squashed)


def gates_gradient(cell: Cell, hidden: Float[Tensor, "R H"], memory: Float[Tensor, "R H"]) -> Float[Tensor, "R G"]:
    """The gradient of the gates before squashing.

    Args:
        cell: the step.
        hidden: gradient of h.
        memory: whole gradient of c, also through h.
    """
    return torch.cat(
        [
            _through_sigmoid(memory * cell.candidate, cell.input),
            _through_sigmoid(memory * cell.old_memory, cell.forget),
            _through_tanh(memory * cell.input, cell.candidate),
            _through_sigmoid(hidden * cell.squashed, cell.output),
        ],
        dim=1,
    )


def _through_sigmoid(gradient: Tensor, output: Tensor) -> Tensor:
    """gradient * output * (1 - output), in one pass."""
    slope: Tensor = torch.ops.aten.sigmoid_backward(gradient, output)
    return slope


def _through_tanh(gradient: Tensor, output: Tensor) -> Tensor:
    """gradient * (1 - output^2), in one pass."""
    slope: Tensor = torch.ops.aten.tanh_backward(gradient, output)
    return slope
