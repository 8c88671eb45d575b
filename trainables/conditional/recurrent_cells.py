"""Recurrent cells whose part behind the input can be updated again and again, by autograd and in closed form.

The input of a step is projected once and serves all of its updates. Gates are ordered as in torch's cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainables.conditional.deferred_weight_gradient import defer_weight_gradient
from trainables.conditional.halted_rows import State

Update = Callable[[Float[Tensor, "R P"], State], State]
"""A function from a projected input and a state to the next state; any number of rows.

A state has tensors (R H); the first is the one that halting unit and readout see.
"""

Factors = tuple[tuple[Tensor, Tensor], ...]
"""Two factors of the gradient that the last tensor of a state gets past the recurrent product; or none."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """What the gradients of N updated rows need, before those of the states are known.

    Attributes:
        gates: what they are multiplied with to be the gradients of the gates (N W): first those that the recurrent
            product makes, then what else the input reaches.
        parts: tensors (N ...) of which `go_back` takes those of one update; some share memory with `gates`.
    """

    gates: Tensor
    parts: tuple[Tensor, ...]


class TanhCell(nn.Module):
    """s' = tanh(a + U s + c), with the projected input a."""

    num_gates = 1
    num_states = 1

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden_size, hidden_size)

    def begin(self) -> Update:
        """The update, for one forward pass."""
        recur = defer_weight_gradient(self.recurrent)
        return lambda projected, state: (torch.tanh(projected + recur(state[0])),)

    def with_bias(self, projected: Tensor, bias: Tensor) -> Tensor:
        """The input of `advance`."""
        return projected + bias

    def of_inputs(self, of_gates: Tensor) -> Tensor:
        """The gradients of projected inputs from those of the gates (... W)."""
        return of_gates

    def advance(self, inputs: Tensor, before: State, columns: Tensor, bias: Tensor) -> tuple[State, State]:
        """The next state of R rows, and what `slopes` needs beside the states.

        Args:
            inputs: from `with_bias` (R P).
            before: the state.
            columns: the recurrent weight, transposed (H G).
            bias: the recurrent one (G), for a cell whose `inputs` do not have it.
        """
        return (torch.addmm(inputs, before[0], columns).tanh_(),), ()

    def slopes(self, before: State, after: State, kept: State, of_after: State) -> Slopes:
        """The slopes of N updated rows; `of_after` is where the gradients of the states behind the updates will be."""
        gates = after[0].square().neg_().add_(1)
        return Slopes(gates, (gates,))

    def go_back(self, of_after: State, *parts: Tensor) -> Factors:
        """Turns `parts` of one update to the gradients of its gates; needs those of the states behind it."""
        parts[0].mul_(of_after[0])
        return ()


class GruCell(nn.Module):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078), with the reset gate behind U as in torch; r, z, n."""

    num_gates = 3
    num_states = 1

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden_size, 3 * hidden_size)

    def begin(self) -> Update:
        """The update, for one forward pass."""
        recur = defer_weight_gradient(self.recurrent)

        def update(projected: Tensor, state: State) -> State:
            (hidden,) = state
            size = hidden.shape[1]
            gates, candidate = projected.split((2 * size, size), dim=1)
            from_gates, from_candidate = recur(hidden).split((2 * size, size), dim=1)
            reset, kept = torch.sigmoid(gates + from_gates).chunk(2, dim=1)
            new = torch.tanh(candidate + reset * from_candidate)
            return (new + kept * (hidden - new),)

        return update

    def with_bias(self, projected: Tensor, bias: Tensor) -> Tensor:
        """The input of `advance`; the bias is behind the reset gate."""
        return projected

    def of_inputs(self, of_gates: Tensor) -> Tensor:
        """The gradients of projected inputs from those of the gates (... W): r, z, U's part of n, n."""
        reset, kept, _, new = of_gates.chunk(4, dim=-1)
        return torch.cat([reset, kept, new], dim=-1)

    def advance(self, inputs: Tensor, before: State, columns: Tensor, bias: Tensor) -> tuple[State, State]:
        """The step of `TanhCell.advance`; keeps r and z, U's part of n, and n."""
        size = len(columns)
        both, candidate = inputs.split((2 * size, size), dim=1)
        gates, from_state = torch.addmm(bias, before[0], columns).split((2 * size, size), dim=1)
        gates.add_(both).sigmoid_()
        reset, kept = gates.chunk(2, dim=1)
        new = torch.addcmul(candidate, reset, from_state).tanh_()
        return (torch.lerp(new, before[0], kept),), (gates, from_state, new)

    def slopes(self, before: State, after: State, kept: State, of_after: State) -> Slopes:
        """The slopes, as `TanhCell.slopes` gives them."""
        both, from_state, new = kept
        reset, keep = both.chunk(2, dim=1)
        of_new = (1 - keep) * (1 - new * new)
        of_reset = of_new * from_state * reset * (1 - reset)
        gates = torch.cat([of_reset, (before[0] - new) * keep * (1 - keep), of_new * reset, of_new], dim=1)
        return Slopes(gates, (gates.unflatten(1, (4, -1)), of_after[0].unsqueeze(1), keep))

    def go_back(self, of_after: State, *parts: Tensor) -> Factors:
        """The way back, as `TanhCell.go_back` goes it."""
        gates, of_hidden, keep = parts
        gates.mul_(of_hidden)
        return ((of_after[0], keep),)


class LstmCell(nn.Module):
    """Long short-term memory with forget gate (Gers et al. 2000); gates i, f, g, o; the state is (h, c)."""

    num_gates = 4
    num_states = 2

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden_size, 4 * hidden_size)

    def begin(self) -> Update:
        """The update, for one forward pass."""
        recur = defer_weight_gradient(self.recurrent)

        def update(projected: Tensor, state: State) -> State:
            hidden, memory = state
            taken, kept, new, output = (projected + recur(hidden)).chunk(4, dim=1)
            memory = torch.sigmoid(kept) * memory + torch.sigmoid(taken) * torch.tanh(new)
            return torch.sigmoid(output) * torch.tanh(memory), memory

        return update

    def with_bias(self, projected: Tensor, bias: Tensor) -> Tensor:
        """The input of `advance`."""
        return projected + bias

    def of_inputs(self, of_gates: Tensor) -> Tensor:
        """The gradients of projected inputs from those of the gates (... W)."""
        return of_gates

    def advance(self, inputs: Tensor, before: State, columns: Tensor, bias: Tensor) -> tuple[State, State]:
        """The step of `TanhCell.advance`; keeps i, f, a place for the gradient of g, o; tanh(g); tanh(c)."""
        gates = torch.addmm(inputs, before[0], columns)
        taken, kept, candidate, output = gates.chunk(4, dim=1)
        new = candidate.tanh()
        gates.sigmoid_()  # that of g, which nothing reads, costs less than to leave it out
        memory = (taken * new).addcmul_(kept, before[1])
        squashed = memory.tanh()
        return (output * squashed, memory), (gates, new, squashed)

    def slopes(self, before: State, after: State, kept: State, of_after: State) -> Slopes:
        """The slopes, as `TanhCell.slopes` gives them."""
        gates, new, squashed = kept
        taken, keep, _, output = gates.chunk(4, dim=1)
        slopes = gates.addcmul(gates, gates, value=-1).unflatten(1, (4, -1))
        slopes[:, 0].mul_(new)
        slopes[:, 1].mul_(before[1])
        torch.addcmul(taken, taken * new, new, value=-1, out=slopes[:, 2])
        slopes[:, 3].mul_(squashed)
        of_memory = torch.addcmul(output, after[0], squashed, value=-1)
        return Slopes(slopes.flatten(1), (slopes[:, :3], slopes[:, 3], of_memory, of_after[1].unsqueeze(1), keep))

    def go_back(self, of_after: State, *parts: Tensor) -> Factors:
        """The way back, as `TanhCell.go_back` goes it."""
        gates, output, through, of_memory_by_gate, keep = parts
        of_hidden, of_memory = of_after
        of_memory.addcmul_(of_hidden, through)
        gates.mul_(of_memory_by_gate)
        output.mul_(of_hidden)
        return ((of_memory, keep),)


Cell = TanhCell | GruCell | LstmCell
CELLS: Final[dict[str, type[TanhCell] | type[GruCell] | type[LstmCell]]] = {
    "rnn": TanhCell,
    "gru": GruCell,
    "lstm": LstmCell,
}
"""What Adaptive Computation Time can wrap: `begin` gives the update; a projected input is `num_gates` times as wide as
a tensor of the state, of which there are `num_states`. `advance`, `slopes` and `go_back` are the same update without
autograd, and its gradients."""
