"""Exit by confidence: a row stops as soon as what is read out of it is sure enough.

Teerapittayanon, McDanel and Kung 2016 (BranchyNet, arXiv:1709.01686): exit where the entropy of the output is below a
threshold. Schuster et al. 2022 (CALM, arXiv:2207.07061): exit where the most probable class is ahead of the second by a
threshold (softmax response); a decoder trained on the mean loss over all exits, later ones weighing more. Training runs
all exits of every row, and must be charged for them. The decision reads the output of that row at that exit alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.conditional.finite import check_finite
from trainables.conditional.halted_rows import RowUpdate, State, update_until


@dataclass(frozen=True, eq=False)
class Exit:
    """The exits of R rows.

    Attributes:
        state: at its exit.
        output: what was read out there (R ...).
        num_updates: how many it had.
    """

    state: State
    output: Tensor
    num_updates: Int[Tensor, " R"]


def exit_weights(num_exits: int, like: Tensor) -> Float[Tensor, " N"]:
    """What the loss of exit i, counted from 1, weighs: i / (1 + 2 + ... + N) (Schuster et al. 2022).

    Args:
        like: a tensor of the type and device to make it on.
    """
    numbers = torch.arange(1, num_exits + 1, dtype=like.dtype, device=like.device)
    return numbers / numbers.sum()


def exits_loss(losses: Float[Tensor, "... N"]) -> Float[Tensor, "..."]:
    """The weighted mean over all exits. ::

        inputs, labels = torch.randn(8, 4), torch.randint(3, (8,))
        layers, readout = nn.ModuleList(nn.Linear(4, 4) for _ in range(5)), nn.Linear(4, 3)
        states, losses = inputs, []
        for layer in layers:
            states = torch.relu(layer(states))
            losses.append(nn.functional.cross_entropy(readout(states), labels, reduction="none"))
        exits_loss(torch.stack(losses, -1)).mean().backward()

    Args:
        losses: of what is read out behind each of the N updates.

    Raises:
        NotFiniteError: a ValueError, if one is NaN or infinite.
    """
    check_finite(losses=losses)
    mean: Tensor = losses @ exit_weights(losses.shape[-1], losses)
    return mean


def entropy(log_probs: Float[Tensor, "... C"]) -> Float[Tensor, "..."]:
    """-sum p log p, in nats; -inf is the log of a probability of 0, and NaN raises NotFiniteError."""
    probs = log_probs.exp()
    check_finite(log_probs=probs)
    nats: Tensor = -torch.special.xlogy(probs, probs).sum(-1)
    return nats


def difference(log_probs: Float[Tensor, "... C"]) -> Float[Tensor, "..."]:
    """The largest probability minus the second, of two classes or more; in [0, 1].

    -inf is the log of a probability of 0, and NaN raises NotFiniteError.
    """
    probs = log_probs.exp()
    check_finite(log_probs=probs)
    first, second = probs.topk(2).values.unbind(-1)
    return first - second


def exit_early(
    update: RowUpdate,
    state: State,
    readout: Callable[[State], Tensor],
    is_sure: Callable[[Tensor], Bool[Tensor, " r"]],
    max_updates: int,
) -> Exit:
    """Updates each row until what is read out of it is sure, or `max_updates` times; rows that are leave the batch. ::

        inputs, readout = torch.randn(8, 4), nn.Linear(4, 3)
        layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(5))
        done = exit_early(
            lambda state, rows, n: (torch.relu(layers[n - 1](state[0])),),
            (inputs,),
            lambda state: readout(state[0]).log_softmax(-1),
            lambda log_probs: difference(log_probs) > 0.9,
            max_updates=5,
        )

    Args:
        readout: from the state of r rows to their output (r ...); behind every update, that of the last one too.
        is_sure: of these rows.
        max_updates: at least 1, else ValueError.
    """
    num_parts = len(state)

    def step(state: State, rows: Tensor, n: int) -> State:
        state = update(state[:num_parts], rows, n)
        return (*state, readout(state))

    (*states, output), num_updates = update_until(
        step, state, lambda state, rows, n: is_sure(state[num_parts]), max_updates
    )
    return Exit(tuple(states), output, num_updates)
