"""Recurrent cells whose part behind the input can be updated again and again.

The input of a step is projected once and serves all of its updates. Gates are ordered as in torch's cells.
"""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainables.act.deferred_weight_gradient import defer_weight_gradient

State = tuple[Tensor, ...]
"""Tensors (R H); the first is the one that halting unit and readout see."""

Update = Callable[[Float[Tensor, "R P"], State], State]
"""From a projected input and a state to the next state; any number of rows."""


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
            taken, kept, new, shown = (projected + recur(hidden)).chunk(4, dim=1)
            memory = torch.sigmoid(kept) * memory + torch.sigmoid(taken) * torch.tanh(new)
            return torch.sigmoid(shown) * torch.tanh(memory), memory

        return update


CELLS: Final[dict[str, type[TanhCell] | type[GruCell] | type[LstmCell]]] = {
    "rnn": TanhCell,
    "gru": GruCell,
    "lstm": LstmCell,
}
"""What Adaptive Computation Time can wrap: `begin` gives the update; a projected input is `num_gates` times as wide as
a tensor of the state, of which there are `num_states`."""
