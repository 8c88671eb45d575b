"""A recoding LSTM over one window: forward, and back-propagation through it in closed form.

Back-propagation takes the recoding gradients for constants, as the thesis does; no graph is kept at a step, and each
weight's gradient over the window is one product. Activations of L layers are one tensor (A R H), A = 2 L: h and c of
the first layer, h and c of the second, and so on.
"""

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainables.lm.config import FiniteDifference, LipschitzStep, PredictedStep, Recoder, Threshold
from trainables.lm.finite_differences import finite_differences
from trainables.lm.lstm import Cell, Layer, cell, gates_gradient, memory_gradient, product
from trainables.lm.noise import Noise
from trainables.lm.signals.error_signal import ErrorSignal, Reading
from trainables.lm.step_sizes import sizes

CURVATURE_DISTANCE = 0.01
"""How far along a direction the gradient is taken again to see how it changes, as a share of the hidden state's norm.
"""


@dataclass(eq=False)
class Trace:
    """What happened at each of T steps.

    Attributes:
        before: delta (B).
        after: delta of the recoded activations (B), if wanted.
        norms: Euclidean, of the recoding gradient of each activation in each row (A R).
        alphas: step sizes (A R or A 1), before the gate.
        gates: 1 where a row was recoded (R).
        tops, recoded_tops: the top hidden state (R H), before and after.
        losses: of the output, where the error signal is of it (B).
        state: the recoded activations behind the last step (A R H).
    """

    before: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    norms: list[Tensor] = field(default_factory=list)
    alphas: list[Tensor] = field(default_factory=list)
    gates: list[Tensor] = field(default_factory=list)
    tops: list[Tensor] = field(default_factory=list)
    recoded_tops: list[Tensor] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    state: Tensor | None = None


@dataclass(eq=False)
class Tape:
    """What back-propagation needs of each step: its cells, the states before it, and how it was recoded."""

    cells: list[list[Cell]] = field(default_factory=list)
    states: list[Tensor] = field(default_factory=list)
    activations: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Recoding:
    """A window and what runs it; see `Noise` for the masks."""

    recoder: Recoder
    signal: ErrorSignal
    noise: Noise
    targets: Int[Tensor, "T B"]
    num_copies: int
    measures_after: bool


def forward(
    recoding: Recoding,
    inputs: Float[Tensor, "T R E"],
    state: Float[Tensor, "A R H"],
    layers: list[Layer],
    step_tensors: list[Tensor],
    trace: Trace,
    tape: Tape | None = None,
) -> Tensor:
    """Runs all steps; returns the recoded state behind the last, and notes what happened."""
    projected = product(inputs, layers[0].weight_ih, layers[0].bias)
    weights = weights_of_steps(layers)
    for step in range(len(inputs)):
        cells: list[Cell] = []
        for number, layer in enumerate(layers):
            cells.append(_cell(recoding.noise, step, number, cells, state, projected[step], weights[number], layer))
        activations = torch.stack([part for one in cells for part in (one.hidden, one.memory)])
        reading, gradient = _gradient(recoding, step, cells, layers, state)
        gradient, norms = _finite(recoding.recoder, gradient)
        alphas = _alphas(recoding, step, reading, activations, cells, step_tensors)
        gates = _gates(recoding, step, reading)
        if tape is not None:
            tape.cells.append(cells)
            tape.states.append(state)
            tape.activations.append(activations)
            tape.gradients.append(gradient)
            tape.readings.append(reading)
        state = torch.addcmul(activations, gradient, (alphas * gates)[:, :, None], value=-1)
        trace.before.append(reading.delta)
        trace.norms.append(norms)
        trace.alphas.append(alphas)
        trace.gates.append(gates)
        if reading.output:
            trace.losses.append(reading.output.loss)
        trace.tops.append(activations[-2])
        trace.recoded_tops.append(state[-2])
        if recoding.measures_after:
            trace.after.append(recoding.signal.delta(step, list(state[::2])))
    return state


def weights_of_steps(layers: list[Layer]) -> list[Tensor]:
    """What each layer multiplies at a step: the first its state, whose inputs are known before, the others both."""
    return [layers[0].weight_hh, *(torch.cat([layer.weight_ih, layer.weight_hh], 1) for layer in layers[1:])]


def _cell(
    noise: Noise,
    step: int,
    number: int,
    below: list[Cell],
    state: Tensor,
    projected: Tensor,
    weight: Tensor,
    layer: Layer,
) -> Cell:
    """Layer `number` at `step`; `below` are the layers under it."""
    hidden, memory = state[2 * number], state[2 * number + 1]
    hidden = noise.mask_recurrent(number, hidden)
    if number == 0:
        return cell(product(hidden, weight, projected), memory)
    inputs = noise.mask_between(number - 1, step, below[-1].hidden)
    return cell(product(torch.cat([inputs, hidden], 1), weight, layer.bias), memory)


def _gradient(
    recoding: Recoding, step: int, cells: list[Cell], layers: list[Layer], state: Tensor
) -> tuple[Reading, Tensor]:
    """The error signal, and its whole derivative in every activation (A R H)."""
    reading = recoding.signal.read(step, [one.hidden for one in cells])
    config = recoding.recoder.gradient
    if isinstance(config, FiniteDifference):
        return reading, finite_differences(config, recoding.signal, recoding.noise, step, cells, layers, state)
    num_above = len(cells) - 1 - reading.layer
    found = [torch.zeros_like(reading.gradient)] * (2 * num_above) if num_above else []
    hidden = reading.gradient
    for number in range(reading.layer, -1, -1):
        memory = memory_gradient(cells[number], hidden)
        found = [hidden, memory, *found]
        if number:
            below = product(gates_gradient(cells[number], hidden, memory), layers[number].weight_ih.t())
            hidden = recoding.noise.mask_between(number - 1, step, below)
    return reading, torch.stack(found)


def _finite(recoder: Recoder, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient with something else where it is not finite, and its norms (A R) as they were."""
    norms = torch.linalg.vector_norm(gradient, dim=-1)
    if recoder.not_finite == "one":
        return torch.where(gradient.isfinite(), gradient, 1.0), norms
    if not norms.is_cuda and math.isfinite(norms.sum().item()):  # a look costs less than a copy, where none waits
        return gradient, norms
    return torch.where(norms.isfinite()[:, :, None], gradient, 0.0), norms


def _alphas(
    recoding: Recoding, step: int, reading: Reading, activations: Tensor, cells: list[Cell], tensors: list[Tensor]
) -> Float[Tensor, "A S"]:
    """The step sizes, which see what they depend on as a constant."""
    config = recoding.recoder.step
    if isinstance(config, LipschitzStep):
        hidden = [one.hidden for one in cells]
        bound = lipschitz(recoding, config, step, reading, hidden).detach()
        return (config.share / bound).repeat(recoding.num_copies).expand(len(activations), -1)
    return sizes(config, tensors, step_inputs(config, activations, reading.probs).detach())


def step_inputs(config: object, activations: Tensor, probs: Tensor | None) -> Tensor:
    """What a predicting network reads (A R N)."""
    if isinstance(config, PredictedStep) and config.source == "output":
        if probs is None:
            raise ValueError("`step.source` must be activation: this error signal has no output distribution.")
        num_copies = activations.shape[1] // max(1, len(probs))
        return probs.repeat(num_copies, 1).expand(len(activations), -1, -1)
    return activations


def lipschitz(
    recoding: Recoding, config: LipschitzStep, step: int, reading: Reading, hidden: list[Tensor]
) -> Float[Tensor, " B"]:
    """An estimate of how fast the gradient changes with the hidden state that it is of, by power iteration.

    A Hessian's product with a direction is the difference of two gradients; the first direction is the gradient's.
    """

    def norm(rows: Tensor) -> Tensor:
        """Over all copies (B)."""
        by_copy = rows.unflatten(0, (recoding.num_copies, len(rows) // recoding.num_copies))
        found: Tensor = torch.linalg.vector_norm(by_copy, dim=(0, 2))
        return found

    def per_row(norms: Tensor) -> Tensor:
        return norms.clamp_min(1e-12).repeat(recoding.num_copies)[:, None]

    distance = CURVATURE_DISTANCE * per_row(norm(hidden[reading.layer]))

    def product(direction: Tensor) -> Tensor:
        moved = list(hidden)
        moved[reading.layer] = hidden[reading.layer] + distance * direction
        return (recoding.signal.read(step, moved).gradient - reading.gradient) / distance

    direction = reading.gradient
    for _ in range(config.num_iterations):
        direction = product(direction / per_row(norm(direction)))
    return norm(direction).clamp_min(1e-6)


def _gates(recoding: Recoding, step: int, reading: Reading) -> Float[Tensor, " R"]:
    gates = (recoding.targets[step] >= 0).to(reading.delta.dtype)
    if recoding.noise.gates is not None:
        gates = gates * recoding.noise.gates[step]
    if isinstance(recoding.recoder.gate, Threshold):
        gates = gates * (reading.delta > recoding.recoder.gate.min_delta)
    return gates if recoding.num_copies == 1 else gates.repeat(recoding.num_copies)
