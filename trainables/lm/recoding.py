"""A recoding LSTM over one window: forward, and back-propagation through it in closed form.

Back-propagation takes the recoding gradients for constants, as the thesis does; no graph is kept at a step, and each
weight's gradient over the window is one product. Activations of L layers are one tensor (A R H), A = 2 L: h and c of
the first layer, h and c of the second, and so on.
"""

import math
from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainables.conditional.gather import put_back, take
from trainables.lm.config import FiniteDifference, Recoder
from trainables.lm.finite_differences import finite_differences
from trainables.lm.gate_config import EntropyThreshold, Threshold
from trainables.lm.lstm import Cell, Layer, cell, gates_gradient, memory_gradient, product
from trainables.lm.noise import Noise
from trainables.lm.shapes import lowest_recoded, recoded_activations
from trainables.lm.signals.error_signal import ErrorSignal, Reading, rows_of
from trainables.lm.step_config import LipschitzStep, PredictedStep
from trainables.lm.step_sizes import sizes

CURVATURE_DISTANCE = 0.01
"""How far along a direction the gradient is taken again to see how it changes, as a share of the hidden state's norm.
"""


@dataclass(eq=False)
class Trace:
    """What happened at each of T steps.

    Attributes:
        before: delta (B); NaN where it was not read, because a gate known before was shut.
        after: delta of the recoded activations (B), if wanted.
        norms: Euclidean, of the recoding gradient of each activation in each row (A R); 0 in rows left out.
        alphas: step sizes (A R or A 1), before the gate; 0 in rows left out.
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

    def num_recoded(self) -> float:
        """Rows that were recoded, over all steps."""
        return torch.stack(self.gates).double().sum().item()


@dataclass(eq=False)
class Tape:
    """What back-propagation needs of each step: its cells, the states before it, and how it was recoded.

    What the step sizes read is of the `rows` that were computed; None: all.
    """

    cells: list[list[Cell]] = field(default_factory=list)
    states: list[Tensor] = field(default_factory=list)
    step_inputs: list[Tensor] = field(default_factory=list)
    rows: list[Tensor | None] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Recoded:
    """A step: how its activations were moved, and the `state` that came of it; the rest as in `Trace` and `Tape`."""

    reading: Reading
    rows: Tensor | None
    step_inputs: Tensor
    gradient: Tensor
    norms: Tensor
    alphas: Tensor
    gates: Tensor
    state: Tensor


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
        activations = torch.stack([part for cell in cells for part in (cell.hidden, cell.memory)])
        recoded = _recode(recoding, step, cells, activations, layers, state, step_tensors)
        if tape is not None:
            tape.cells.append(cells)
            tape.states.append(state)
            tape.step_inputs.append(recoded.step_inputs)
            tape.rows.append(recoded.rows)
            tape.gradients.append(recoded.gradient)
            tape.readings.append(recoded.reading)
        state = recoded.state
        trace.before.append(recoded.reading.delta)
        trace.norms.append(recoded.norms)
        trace.alphas.append(recoded.alphas)
        trace.gates.append(recoded.gates)
        if recoded.reading.output:
            trace.losses.append(recoded.reading.output.loss)
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


def _recode(
    recoding: Recoding,
    step: int,
    cells: list[Cell],
    activations: Tensor,
    layers: list[Layer],
    state: Tensor,
    step_tensors: list[Tensor],
) -> Recoded:
    """Moves the activations; where the recoder skips shut rows, only those whose gate is open are computed."""
    reading = _read(recoding, step, [cell.hidden for cell in cells])
    rows = rows_of(reading.opened, recoding.targets.shape[1], recoding.num_copies)
    part = (
        cells
        if rows is None
        else [Cell(*(take(getattr(cell, f.name), 0, rows) for f in fields(cell))) for cell in cells]
    )
    gradient, norms = _finite(recoding.recoder, _gradient(recoding, step, reading, rows, part, layers, state))
    probs = None if reading.probs is None else take(reading.probs, 0, reading.opened)
    moved = take(activations, 1, rows)
    inputs = step_inputs(recoding.recoder.step, moved, probs).detach()
    alphas = _alphas(recoding, step, reading, inputs, part, step_tensors)
    if rows is None:
        gates = _gates(recoding, step, reading.delta, reading.probs)
        gates = gates if recoding.num_copies == 1 else gates.repeat(recoding.num_copies)
        state = torch.addcmul(activations, gradient, (alphas * gates)[:, :, None], value=-1)
        return Recoded(reading, rows, inputs, gradient, norms, alphas, gates, state)
    state = activations.index_copy(1, rows, torch.addcmul(moved, gradient, alphas[:, :, None], value=-1))
    gates = activations.new_zeros(activations.shape[1]).index_fill(0, rows, 1.0)
    gradient, norms = (put_back(tensor, 1, rows, len(gates)) for tensor in (gradient, norms))
    alphas = put_back(alphas.expand(-1, len(rows)), 1, rows, len(gates))
    return Recoded(reading, rows, inputs, gradient, norms, alphas, gates, state)


def _read(recoding: Recoding, step: int, hidden: list[Tensor]) -> Reading:
    """The error signal: of all streams, or of those whose gate is known to be open before it is read."""
    recoder, signal = recoding.recoder, recoding.signal
    if not recoder.skips_shut_rows:
        return signal.read(step, hidden)
    if recoder.knows_gate_first and not recoding.measures_after:
        streams, num_streams = _is_target(recoding, step).nonzero()[:, 0], recoding.targets.shape[1]
        rows = rows_of(streams, num_streams, recoding.num_copies)
        reading = signal.read(step, [take(layer, 0, rows) for layer in hidden], streams=streams)
        # of the other streams delta is NaN, and the distribution 0
        delta = put_back(reading.delta, 0, streams, num_streams, math.nan)
        probs = None if reading.probs is None else put_back(reading.probs, 0, streams, num_streams)
        return replace(reading, delta=delta, probs=probs, opened=streams)

    def opens(delta: Tensor, probs: Tensor | None) -> Tensor:
        return _gates(recoding, step, delta, probs).nonzero()[:, 0]

    return signal.read(step, hidden, opens=opens)


def _gradient(
    recoding: Recoding,
    step: int,
    reading: Reading,
    rows: Tensor | None,
    cells: list[Cell],
    layers: list[Layer],
    state: Tensor,
) -> Tensor:
    """The error signal's whole derivative in every activation (A R H), 0 in those below the lowest one recoded.

    Args:
        rows: those of `reading.gradient` and of `cells`; None: all.
    """
    config = recoding.recoder.gradient
    if isinstance(config, FiniteDifference):
        numbers = recoded_activations(recoding.recoder.step, len(cells))
        return finite_differences(config, recoding.signal, recoding.noise, step, cells, layers, state, numbers)
    lowest = lowest_recoded(recoding.recoder.step, len(cells))
    zeros = torch.zeros_like(reading.gradient)
    parts = [zeros] * (2 * len(cells))
    hidden = reading.gradient
    for number in range(reading.layer, lowest - 1, -1):
        memory = memory_gradient(cells[number], hidden)
        parts[2 * number : 2 * number + 2] = [hidden, memory]
        if number > lowest:
            below = product(gates_gradient(cells[number], hidden, memory), layers[number].weight_ih.t())
            hidden = recoding.noise.mask_between(number - 1, step, below, rows)
    return torch.stack(parts)


def _finite(recoder: Recoder, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient with something else where it is not finite, and its norms (A R) as they were."""
    norms = torch.linalg.vector_norm(gradient, dim=-1)
    if recoder.not_finite == "one":
        return torch.where(gradient.isfinite(), gradient, 1.0), norms
    if not norms.is_cuda and math.isfinite(norms.sum().item()):  # a look costs less than a copy, where none waits
        return gradient, norms
    return torch.where(norms.isfinite()[:, :, None], gradient, 0.0), norms


def _alphas(
    recoding: Recoding, step: int, reading: Reading, inputs: Tensor, cells: list[Cell], tensors: list[Tensor]
) -> Float[Tensor, "A S"]:
    """The step sizes of the rows of `cells`; `inputs` are `step_inputs`.

    What is not finite is 0 where it may come from a distribution that is not, whose gradient is not followed either.
    """
    config = recoding.recoder.step
    if isinstance(config, LipschitzStep):
        hidden = [cell.hidden for cell in cells]
        bound = lipschitz(recoding, config, step, reading, hidden).detach()
        alphas = (config.share / bound).repeat(recoding.num_copies).expand(len(inputs), -1)
        return torch.where(alphas.isfinite(), alphas, 0.0)
    alphas = sizes(config, tensors, inputs)
    if isinstance(config, PredictedStep) and config.source == "output":
        return torch.where(alphas.isfinite(), alphas, 0.0)
    return alphas


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
        norms: Tensor = torch.linalg.vector_norm(by_copy, dim=(0, 2))
        return norms

    def per_row(norms: Tensor) -> Tensor:
        return norms.clamp_min(1e-12).repeat(recoding.num_copies)[:, None]

    distance = CURVATURE_DISTANCE * per_row(norm(hidden[reading.layer]))

    def product(direction: Tensor) -> Tensor:
        moved = list(hidden)
        moved[reading.layer] = hidden[reading.layer] + distance * direction
        return (recoding.signal.read(step, moved, reading.opened).gradient - reading.gradient) / distance

    direction = reading.gradient
    for _ in range(config.num_iterations):
        direction = product(direction / per_row(norm(direction)))
    return norm(direction).clamp_min(1e-6)


def _is_target(recoding: Recoding, step: int) -> Float[Tensor, " B"]:
    """1 where a target is to come and the drawn gate, if there is one, is open; both are known before the word."""
    gates = (recoding.targets[step] >= 0).float()
    return gates if recoding.noise.gates is None else gates * recoding.noise.gates[step]


def _gates(recoding: Recoding, step: int, delta: Tensor, probs: Tensor | None) -> Float[Tensor, " B"]:
    gates, gate = _is_target(recoding, step).to(delta.dtype), recoding.recoder.gate
    if isinstance(gate, Threshold):
        return gates * (delta > gate.min_delta)
    if isinstance(gate, EntropyThreshold):
        assert probs is not None
        entropy: Tensor = torch.special.entr(probs).sum(-1)
        return gates * (entropy > gate.min_entropy)
    return gates
