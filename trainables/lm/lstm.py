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
        return (rows @ weight.t()).to(rows.dtype)
    if rows.ndim > 2:
        return (rows @ weight.t()).to(rows.dtype) + bias
    return torch.addmm(bias, rows, weight.t()).to(rows.dtype)


def cell(gates: Float[Tensor, "R G"], old_memory: Float[Tensor, "R H"]) -> Cell:
    """c = f c_old + i g and h = o tanh(c), of R rows whose `gates` are not yet squashed."""
    input, forget, candidate, output = gates.chunk(4, dim=1)
    input, forget, output = input.sigmoid(), forget.sigmoid(), output.sigmoid()
    candidate = candidate.tanh()
    memory = torch.addcmul(input * candidate, forget, old_memory)
    squashed = memory.tanh()
    return Cell(input, forget, candidate, output, old_memory, memory, squashed, output * squashed)


def memory_gradient(cell: Cell, hidden: Float[Tensor, "R H"]) -> Float[Tensor, "R H"]:
    """The gradient of the memory c that the gradient `hidden` of h implies: dh o (1 - tanh(c)^2)."""
    through: Tensor = hidden * cell.output
    return torch.addcmul(through, through, cell.squashed * cell.squashed, value=-1)


def gates_gradient(cell: Cell, hidden: Float[Tensor, "R H"], memory: Float[Tensor, "R H"]) -> Float[Tensor, "R G"]:
    """The gradient of the gates before squashing.

    Args:
        cell: the step.
        hidden: gradient of h.
        memory: whole gradient of c, also through h.
    """
    return torch.cat(
        [
            memory * cell.candidate * (cell.input * (1 - cell.input)),
            memory * cell.old_memory * (cell.forget * (1 - cell.forget)),
            memory * cell.input * (1 - cell.candidate * cell.candidate),
            hidden * cell.squashed * (cell.output * (1 - cell.output)),
        ],
        dim=1,
    )
