"""Adaptive Computation Time (Graves 2016, arXiv:1603.08983) in plain floats, forward and backward, one sequence.

Slow on purpose: every derivative is written out by hand, so that a batched implementation has something to agree with.
In the code `a` is the projected input W x + b (+ flag column), `u` the recurrent projection U s + c, and `d_z` the
derivative of the loss with respect to z. The number of updates N is a constant in differentiation.
"""

import math
from dataclasses import dataclass

from tests.trainables.conditional.scalar_arithmetic import (
    Matrix,
    Vector,
    add,
    add_outer,
    add_to,
    dot,
    mix,
    scale,
    sigmoid,
    subtract,
    times,
    transposed_times,
)


@dataclass
class Weights:
    """The parameters of a cell with G gates; their gradients have the same type."""

    input_weight: Matrix  # [G*H][I]
    first_flag: Vector  # [G*H], added to the projected input on the first update of a step
    input_bias: Vector  # [G*H]
    recurrent_weight: Matrix  # [G*H][H]
    recurrent_bias: Vector  # [G*H]
    halting_weight: Vector  # [H]
    halting_bias: float
    output_weight: Matrix  # [O][H]
    output_bias: Vector  # [O]


@dataclass
class Result:
    """What one sequence gives; S is the size of the whole state, H or (lstm) 2H."""

    outputs: Matrix  # [T][O]
    final_state: Vector  # [S]
    num_updates: list[int]  # [T]
    remainders: Vector  # [T]
    loss: float
    gradients: Weights
    input_gradients: Matrix  # [T][I]


@dataclass
class Update:
    """One application of the cell within a step."""

    old: Vector  # the state before, [S]
    a: Vector  # [G*H]
    u: Vector  # [G*H]
    new: Vector  # the state after, [S]
    halting: float  # h
    output: Vector  # [O], before mixing


@dataclass
class Step:
    """One input step: its N updates, the weights p of the mixture, and the mixtures."""

    inputs: Vector
    updates: list[Update]
    remainder: float
    probabilities: Vector  # [N]
    state: Vector  # [S]
    output: Vector  # [O]


def run(
    kind: str,
    weights: Weights,
    inputs: Matrix,
    epsilon: float,
    max_updates: int,
    output_weights: Matrix,
    state_weights: Vector,
    ponder_weight: float,
) -> Result:
    """Run a "rnn", "gru" or "lstm" over one sequence and differentiate the weighted sum of its results."""
    steps, final_state = forward(kind, weights, inputs, epsilon, max_updates)
    gradients, input_gradients = backward(kind, weights, steps, output_weights, state_weights, ponder_weight)
    return Result(
        outputs=[step.output for step in steps],
        final_state=final_state,
        num_updates=[len(step.updates) for step in steps],
        remainders=[step.remainder for step in steps],
        loss=weighted_loss(steps, final_state, output_weights, state_weights, ponder_weight),
        gradients=gradients,
        input_gradients=input_gradients,
    )


def weighted_loss(
    steps: list[Step], final_state: Vector, output_weights: Matrix, state_weights: Vector, ponder_weight: float
) -> float:
    """Weigh the outputs, the final state and the ponder N + R of every step."""
    loss = dot(state_weights, final_state)
    for step, output_weight in zip(steps, output_weights, strict=True):
        loss += dot(output_weight, step.output)
        loss += ponder_weight * (len(step.updates) + step.remainder)
    return loss


# Forward


def forward(kind: str, weights: Weights, inputs: Matrix, epsilon: float, max_updates: int) -> tuple[list[Step], Vector]:
    """Run every step from the zero state; also give the final state."""
    hidden = len(weights.halting_weight)
    state = [0.0] * (2 * hidden if kind == "lstm" else hidden)
    steps = []
    for x in inputs:
        step = run_step(kind, weights, x, state, epsilon, max_updates)
        steps.append(step)
        state = step.state
    return steps, state


def run_step(kind: str, weights: Weights, x: Vector, state: Vector, epsilon: float, max_updates: int) -> Step:
    """Update until the halting sum reaches 1 - epsilon or max_updates is hit, then mix."""
    updates: list[Update] = []
    total = 0.0  # of the halting units up to and with the latest update
    remainder = 1.0  # 1 minus the halting units before the latest update
    while not updates or (total < 1 - epsilon and len(updates) < max_updates):
        remainder = 1 - total
        update = run_update(kind, weights, x, state, first=not updates)
        updates.append(update)
        total += update.halting
        state = update.new
    probabilities = [update.halting for update in updates[:-1]] + [remainder]
    return Step(
        inputs=x,
        updates=updates,
        remainder=remainder,
        probabilities=probabilities,
        state=mix(probabilities, [update.new for update in updates]),
        output=mix(probabilities, [update.output for update in updates]),
    )


def run_update(kind: str, weights: Weights, x: Vector, state: Vector, first: bool) -> Update:
    """Apply the cell once, with its halting unit and its output."""
    hidden = len(weights.halting_weight)
    a = add(times(weights.input_weight, x), weights.input_bias)
    if first:
        a = add(a, weights.first_flag)
    u = add(times(weights.recurrent_weight, state[:hidden]), weights.recurrent_bias)
    new = cell_forward(kind, a, u, state)
    visible = new[:hidden]
    return Update(
        old=state,
        a=a,
        u=u,
        new=new,
        halting=sigmoid(dot(weights.halting_weight, visible) + weights.halting_bias),
        output=add(times(weights.output_weight, visible), weights.output_bias),
    )


def cell_forward(kind: str, a: Vector, u: Vector, state: Vector) -> Vector:
    """Give the state after one application of the cell."""
    if kind == "rnn":
        return rnn_forward(a, u)
    if kind == "gru":
        return gru_forward(a, u, state)
    if kind == "lstm":
        return lstm_forward(a, u, state)
    raise ValueError(f"unknown kind of cell: {kind}")


def rnn_forward(a: Vector, u: Vector) -> Vector:
    """s' = tanh(a + u)."""
    return [math.tanh(a[k] + u[k]) for k in range(len(a))]


def gru_gates(a: Vector, u: Vector, k: int, hidden: int) -> tuple[float, float, float]:
    """r, z and n of unit k."""
    r = sigmoid(a[k] + u[k])
    z = sigmoid(a[hidden + k] + u[hidden + k])
    n = math.tanh(a[2 * hidden + k] + r * u[2 * hidden + k])
    return r, z, n


def gru_forward(a: Vector, u: Vector, state: Vector) -> Vector:
    """s' = (1 - z) n + z s."""
    hidden = len(state)
    new = []
    for k in range(hidden):
        _, z, n = gru_gates(a, u, k, hidden)
        new.append((1 - z) * n + z * state[k])
    return new


def lstm_gates(a: Vector, u: Vector, k: int, hidden: int) -> tuple[float, float, float, float]:
    """i, f, g and o of unit k."""
    i = sigmoid(a[k] + u[k])
    f = sigmoid(a[hidden + k] + u[hidden + k])
    g = math.tanh(a[2 * hidden + k] + u[2 * hidden + k])
    o = sigmoid(a[3 * hidden + k] + u[3 * hidden + k])
    return i, f, g, o


def lstm_forward(a: Vector, u: Vector, state: Vector) -> Vector:
    """c' = f c + i g and h' = o tanh(c'), with the state (h, c)."""
    hidden = len(state) // 2
    visible, memory = [], []
    for k in range(hidden):
        i, f, g, o = lstm_gates(a, u, k, hidden)
        c = f * state[hidden + k] + i * g
        visible.append(o * math.tanh(c))
        memory.append(c)
    return visible + memory


# Backward


def backward(
    kind: str,
    weights: Weights,
    steps: list[Step],
    output_weights: Matrix,
    state_weights: Vector,
    ponder_weight: float,
) -> tuple[Weights, Matrix]:
    """Go through the steps from the last to the first; give the gradients of the weights and of the inputs."""
    gradients = zeros_like(weights)
    d_inputs = [[0.0] * len(step.inputs) for step in steps]
    d_state = list(state_weights)
    for t in reversed(range(len(steps))):
        d_output = output_weights[t]
        d_state = step_backward(kind, weights, steps[t], d_output, d_state, ponder_weight, gradients, d_inputs[t])
    return gradients, d_inputs


def step_backward(
    kind: str,
    weights: Weights,
    step: Step,
    d_output: Vector,
    d_state: Vector,
    ponder_weight: float,
    gradients: Weights,
    d_x: Vector,
) -> Vector:
    """Add to gradients and d_x what the step's mixtures and ponder give; return d of the state before the step."""
    d_later = [0.0] * len(d_state)  # what reaches s^n through s^{n+1}
    for n in reversed(range(len(step.updates))):
        update = step.updates[n]
        p = step.probabilities[n]
        d_halting = halting_gradient(step, n, d_output, d_state, ponder_weight)
        d_new = add(scale(p, d_state), d_later)
        d_visible = readout_backward(weights, update, scale(p, d_output), d_halting, gradients)
        for k in range(len(d_visible)):
            d_new[k] += d_visible[k]
        d_later = update_backward(kind, weights, step.inputs, update, d_new, n == 0, gradients, d_x)
    return d_later


def halting_gradient(step: Step, n: int, d_output: Vector, d_state: Vector, ponder_weight: float) -> float:
    """d h^n: h^n is the weight of update n and lowers the remainder, which is the last update's weight."""
    update, last = step.updates[n], step.updates[-1]
    if update is last:
        return 0.0
    through_output = dot(d_output, subtract(update.output, last.output))
    through_state = dot(d_state, subtract(update.new, last.new))
    return through_output + through_state - ponder_weight


def readout_backward(
    weights: Weights, update: Update, d_output: Vector, d_halting: float, gradients: Weights
) -> Vector:
    """Go back through y^n = W_y v + b_y and h^n = sigmoid(w_h . v + b_h); return d v."""
    visible = update.new[: len(weights.halting_weight)]
    d_logit = d_halting * update.halting * (1 - update.halting)
    add_outer(gradients.output_weight, d_output, visible)
    add_to(gradients.output_bias, d_output)
    add_to(gradients.halting_weight, scale(d_logit, visible))
    gradients.halting_bias += d_logit
    return add(transposed_times(weights.output_weight, d_output), scale(d_logit, weights.halting_weight))


def update_backward(
    kind: str,
    weights: Weights,
    x: Vector,
    update: Update,
    d_new: Vector,
    first: bool,
    gradients: Weights,
    d_x: Vector,
) -> Vector:
    """Go back through one application of the cell; return d of the state before it."""
    visible = update.old[: len(weights.halting_weight)]
    d_a, d_u, d_old = cell_backward(kind, update, d_new)
    add_outer(gradients.input_weight, d_a, x)
    add_to(gradients.input_bias, d_a)
    if first:
        add_to(gradients.first_flag, d_a)
    add_outer(gradients.recurrent_weight, d_u, visible)
    add_to(gradients.recurrent_bias, d_u)
    add_to(d_x, transposed_times(weights.input_weight, d_a))
    for k, d_visible in enumerate(transposed_times(weights.recurrent_weight, d_u)):
        d_old[k] += d_visible
    return d_old


def cell_backward(kind: str, update: Update, d_new: Vector) -> tuple[Vector, Vector, Vector]:
    """Give d a, d u, and d of the old state where it enters other than through u."""
    if kind == "rnn":
        return rnn_backward(update, d_new)
    if kind == "gru":
        return gru_backward(update, d_new)
    if kind == "lstm":
        return lstm_backward(update, d_new)
    raise ValueError(f"unknown kind of cell: {kind}")


def rnn_backward(update: Update, d_new: Vector) -> tuple[Vector, Vector, Vector]:
    """tanh' = 1 - tanh^2; the old state enters only through u."""
    d_sum = [d_new[k] * (1 - update.new[k] ** 2) for k in range(len(d_new))]
    return d_sum, list(d_sum), [0.0] * len(d_new)


def gru_backward(update: Update, d_new: Vector) -> tuple[Vector, Vector, Vector]:
    """The candidate's u is multiplied by r, so there d u = r d a."""
    hidden = len(d_new)
    d_a, d_u, d_old = [0.0] * (3 * hidden), [0.0] * (3 * hidden), [0.0] * hidden
    for k in range(hidden):
        r, z, n = gru_gates(update.a, update.u, k, hidden)
        d_candidate = d_new[k] * (1 - z) * (1 - n**2)
        d_reset = d_candidate * update.u[2 * hidden + k] * r * (1 - r)
        d_mixing = d_new[k] * (update.old[k] - n) * z * (1 - z)
        d_a[k] = d_u[k] = d_reset
        d_a[hidden + k] = d_u[hidden + k] = d_mixing
        d_a[2 * hidden + k] = d_candidate
        d_u[2 * hidden + k] = d_candidate * r
        d_old[k] = d_new[k] * z
    return d_a, d_u, d_old


def lstm_backward(update: Update, d_new: Vector) -> tuple[Vector, Vector, Vector]:
    """The new memory cell is reached both directly and through h' = o tanh(c')."""
    hidden = len(d_new) // 2
    d_sum, d_old = [0.0] * (4 * hidden), [0.0] * (2 * hidden)
    for k in range(hidden):
        i, f, g, o = lstm_gates(update.a, update.u, k, hidden)
        old_c, tanh_c = update.old[hidden + k], math.tanh(update.new[hidden + k])
        d_c = d_new[hidden + k] + d_new[k] * o * (1 - tanh_c**2)
        d_sum[k] = d_c * g * i * (1 - i)
        d_sum[hidden + k] = d_c * old_c * f * (1 - f)
        d_sum[2 * hidden + k] = d_c * i * (1 - g**2)
        d_sum[3 * hidden + k] = d_new[k] * tanh_c * o * (1 - o)
        d_old[hidden + k] = d_c * f
    return d_sum, list(d_sum), d_old


def zeros_like(weights: Weights) -> Weights:
    """Zero gradients of the same sizes."""
    return Weights(
        input_weight=[[0.0] * len(row) for row in weights.input_weight],
        first_flag=[0.0] * len(weights.first_flag),
        input_bias=[0.0] * len(weights.input_bias),
        recurrent_weight=[[0.0] * len(row) for row in weights.recurrent_weight],
        recurrent_bias=[0.0] * len(weights.recurrent_bias),
        halting_weight=[0.0] * len(weights.halting_weight),
        halting_bias=0.0,
        output_weight=[[0.0] * len(row) for row in weights.output_weight],
        output_bias=[0.0] * len(weights.output_bias),
    )
