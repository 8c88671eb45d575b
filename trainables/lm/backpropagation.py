"""Back-propagation through a recoded window, in closed form: BPTT in which recoding passes gradients on unchanged.

With a' = a - alpha g and g a constant, the gradient of a is that of a', and the gradient of alpha is -g . da'.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.conditional.gather import take
from trainables.lm.lstm import Layer, gates_gradient, memory_gradient, product
from trainables.lm.recoding import Recoding, Tape, Trace, forward, weights_of_steps
from trainables.lm.signals.surprisal import SurprisalSignal
from trainables.lm.step_config import LearnedStep, PredictedStep
from trainables.lm.step_sizes import sizes


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradients of all that a window reads; `alphas` is (T A R), None where step sizes are not learnt."""

    inputs: Tensor
    layers: list[Layer]
    alphas: Tensor | None


def backward(
    recoding: Recoding,
    tape: Tape,
    inputs: Float[Tensor, "T R E"],
    layers: list[Layer],
    of_tops: Float[Tensor, "T R H"],
    of_losses: Tensor,
    is_recoded: Float[Tensor, "T R"],
) -> Gradients:
    """The gradients from those of recoded top states and losses; `is_recoded` has the `gates` of `Trace`."""
    learns = isinstance(recoding.recoder.step, LearnedStep | PredictedStep)
    weights = weights_of_steps(layers)
    of_state = torch.zeros_like(tape.states[0])
    of_gates: list[list[Tensor]] = [[] for _ in layers]
    of_alphas: list[Tensor] = []
    for step in reversed(range(len(inputs))):
        of_state[-2] += of_tops[step]
        if learns:
            of_alphas.append(-torch.linalg.vecdot(of_state, tape.gradients[step]) * is_recoded[step])
        output = tape.readings[step].output
        if output and output.loss_gradient is not None:
            of_state[-2].addcmul_(output.loss_gradient, of_losses[step][:, None])
        of_state = _step(recoding, tape, step, weights, of_state, of_gates)
    of_layers = [torch.stack(parts[::-1]) for parts in of_gates]
    return Gradients(
        inputs=product(of_layers[0], layers[0].weight_ih.t()),
        layers=[_weights(recoding, tape, number, of_layer, inputs) for number, of_layer in enumerate(of_layers)],
        alphas=torch.stack(of_alphas[::-1]) if learns else None,
    )


def _step(
    recoding: Recoding,
    tape: Tape,
    step: int,
    weights: list[Tensor],
    of_activations: Tensor,
    of_gates: list[list[Tensor]],
) -> Tensor:
    """The gradient of the state before `step`; appends those of each layer's LSTM gates."""
    of_state = torch.empty_like(of_activations)
    from_above: Tensor | None = None
    size = of_activations.shape[-1]
    for number in reversed(range(len(weights))):
        cell = tape.cells[step][number]
        hidden = of_activations[2 * number] if from_above is None else of_activations[2 * number] + from_above
        memory = of_activations[2 * number + 1] + memory_gradient(cell, hidden)
        of_gates[number].append(gates_gradient(cell, hidden, memory))
        read = product(of_gates[number][-1], weights[number].t())
        of_state[2 * number] = recoding.noise.mask_recurrent(number, read[:, -size:])
        of_state[2 * number + 1] = memory * cell.forget
        if number:
            from_above = recoding.noise.mask_between(number - 1, step, read[:, :-size])
    return of_state


def _weights(recoding: Recoding, tape: Tape, number: int, of_gates: Tensor, inputs: Tensor) -> Layer:
    """Gradients of the weights of layer `number`, each one product over all steps."""
    if number:
        inputs = torch.stack([cells[number - 1].hidden for cells in tape.cells])
        inputs = recoding.noise.mask_between(number - 1, slice(None), inputs)
    hidden = torch.stack([state[2 * number] for state in tape.states])
    hidden = recoding.noise.mask_recurrent(number, hidden)
    rows = of_gates.flatten(0, 1).t()
    return Layer(product(rows, inputs.flatten(0, 1).t()), product(rows, hidden.flatten(0, 1).t()), of_gates.sum((0, 1)))


def decoder_gradients(
    recoding: Recoding, tape: Tape, of_losses: Float[Tensor, "T B"], wants_weights: bool = True
) -> tuple[Tensor | None, Tensor]:
    """The gradients of weights (1 V H) and biases (1 V), from those of the losses; uses up the kept distributions."""
    signal = recoding.signal
    assert isinstance(signal, SurprisalSignal)
    outputs = [reading.output for reading in tape.readings if reading.output]
    distributions = [reading.probs for reading in tape.readings if reading.probs is not None]
    slopes = signal.kept if signal.kept is not None else torch.stack(distributions)
    slopes = slopes.mul_(of_losses[:, :, None]).flatten(0, 1)
    gold = recoding.targets.clamp_min(0).flatten()[:, None]
    slopes.scatter_add_(1, gold, -of_losses.flatten()[:, None])
    of_bias = slopes.sum(0)[None]
    if not wants_weights:
        return None, of_bias
    decoded = torch.stack([output.decoded for output in outputs]).flatten(0, 1)
    return product(slopes.t(), decoded.t())[None], of_bias


def step_gradients(
    recoding: Recoding, tape: Tape, tensors: list[Tensor], of_alphas: Float[Tensor, "T A R"]
) -> list[Tensor]:
    """The gradients of the tensors that the step sizes come from."""
    config = recoding.recoder.step
    rows = torch.cat(tape.step_inputs, 1)
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        alphas = sizes(config, leaves, rows)
        wanted = torch.cat([take(of_alpha, 1, at) for of_alpha, at in zip(of_alphas, tape.rows, strict=True)], 1)
        return list(torch.autograd.grad((alphas * wanted).sum(), leaves))


class RecodedWindow(torch.autograd.Function):
    """The recoded top states (T R H) and the losses (T B; none where outputs are recomputed) of a window."""

    @staticmethod
    def forward(
        ctx: Any,
        recoding: Recoding,
        trace: Trace,
        num_layers: int,
        inputs: Tensor,
        state: Tensor,
        decoder_weight: Tensor,
        decoder_bias: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Runs `forward` with `tensors` = three of each layer, then those of the step sizes."""
        layers = [Layer(*tensors[3 * number : 3 * number + 3]) for number in range(num_layers)]
        ctx.recoding, ctx.tape, ctx.num_layers = recoding, Tape(), num_layers
        ctx.autocast = torch.is_autocast_enabled(inputs.device.type)
        trace.state = forward(recoding, inputs, state, layers, list(tensors[3 * num_layers :]), trace, ctx.tape)
        ctx.save_for_backward(inputs, torch.stack(trace.gates), *tensors)
        losses = torch.stack(trace.losses) if trace.losses else inputs.new_zeros(0)
        return torch.stack(trace.recoded_tops), losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_tops: Tensor, of_losses: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs and of all weights; only once, because it uses up what was kept."""
        recoding, tape = ctx.recoding, ctx.tape
        ctx.recoding = ctx.tape = None
        inputs, is_recoded, *tensors = ctx.saved_tensors
        layers = [Layer(*tensors[3 * number : 3 * number + 3]) for number in range(ctx.num_layers)]
        of_decoder: tuple[Tensor | None, Tensor | None] = (None, None)
        with torch.autocast(of_tops.device.type, torch.bfloat16, enabled=ctx.autocast):
            if not any(ctx.needs_input_grad[i] for i in (3, *range(7, len(ctx.needs_input_grad)))):
                of_decoder = decoder_gradients(recoding, tape, of_losses, ctx.needs_input_grad[5])
                return None, None, None, None, None, *of_decoder, *[None] * len(tensors)
            gradients = backward(recoding, tape, inputs, layers, of_tops, of_losses, is_recoded)
            of_steps: list[Tensor] = []
            if gradients.alphas is not None:
                of_steps = step_gradients(recoding, tape, tensors[3 * ctx.num_layers :], gradients.alphas)
            if len(of_losses):
                of_decoder = decoder_gradients(recoding, tape, of_losses)
        of_layers = [part for layer in gradients.layers for part in (layer.weight_ih, layer.weight_hh, layer.bias)]
        return None, None, None, gradients.inputs, None, *of_decoder, *of_layers, *of_steps
