"""The recoding gradient from differences of delta alone, along random directions."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.lm.config import FiniteDifference
from trainables.lm.lstm import Cell, Layer, cell
from trainables.lm.noise import Noise
from trainables.lm.signals.error_signal import ErrorSignal


def finite_differences(
    config: FiniteDifference,
    signal: ErrorSignal,
    noise: Noise,
    step: int,
    cells: list[Cell],
    layers: list[Layer],
    state: Tensor,
    numbers: Sequence[int],
) -> Float[Tensor, "A R H"]:
    """The gradient of each activation a: the mean over directions z of z (delta(a + d z) - delta(a - d z)) / 2d.

    Its expectation is the gradient, but for terms of order d^2: E[z z^T] = 1.

    Args:
        state: the recoded activations of the step before (A R H).
        numbers: of the activations to differentiate in; 0 in the others.
    """
    assert noise.directions is not None
    directions = noise.directions[step]
    differences = torch.zeros_like(directions[0])
    for direction in directions:
        for number in numbers:
            deltas = [
                signal.delta(step, _hidden(noise, step, cells, layers, state, number, sign * direction[number]))
                for sign in (config.distance, -config.distance)
            ]
            slope = (deltas[0] - deltas[1]) / (2 * config.distance)
            num_copies = differences.shape[1] // max(1, len(slope))
            differences[number] += slope.repeat(num_copies)[:, None] * direction[number] / len(directions)
    return differences


def _hidden(
    noise: Noise, step: int, cells: list[Cell], layers: list[Layer], state: Tensor, number: int, moved_by: Tensor
) -> list[Tensor]:
    """The hidden states of all layers when activation `number` is moved, and what lies above it with it."""
    changed, is_memory = divmod(number, 2)
    hidden = [one.hidden for one in cells]
    old = cells[changed]
    hidden[changed] = old.output * (old.memory + moved_by).tanh() if is_memory else old.hidden + moved_by
    for upper in range(changed + 1, len(cells)):
        inputs = noise.mask_between(upper - 1, step, hidden[upper - 1])
        before = noise.mask_recurrent(upper, state[2 * upper])
        layer = layers[upper]
        gates = layer.bias + inputs @ layer.weight_ih.t() + before @ layer.weight_hh.t()
        hidden[upper] = cell(gates, state[2 * upper + 1]).hidden
    return hidden
