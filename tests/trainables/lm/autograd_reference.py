"""Recoding language models by autograd in float64: slow, plain, and sharing no code with the fast ones.

T tokens, B rows of the batch, K samples or members, R rows of the state (B, for variational dropout K * B with row
k * B + b), H hidden units, V words.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from trainables.lm.config import (
    AnchoredEnsemble,
    McDropout,
    Recoder,
    SecondOrder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.gate_config import Chance, EntropyThreshold, Threshold

State = list[tuple[Tensor, Tensor]]
StepSize = Callable[[int, int, str, Tensor, Tensor], Tensor]


@dataclass
class Layer:
    """An LSTM layer's weights [4H, I] and [4H, H] and biases [4H]; gates in torch's order i, f, g, o."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor
    b_hh: Tensor


@dataclass
class Masks:
    """Factors of dropout, already scaled; None: ones."""

    between: list[Tensor] | None = None  # one for each gap between layers, [T, R, H]
    decoder_input: Tensor | None = None  # [T, R, H]
    recurrent: list[Tensor] | None = None  # one for each layer, [R, H]
    samples: Tensor | None = None  # MC dropout of units, [T, K, B, H]
    weights: Tensor | None = None  # MC dropout of the decoder's weights, [T, K, V, H]


@dataclass
class Result:
    """All [T, B] but `gradients` (token, layer, h and c; as used, before the gate) and `state` (layer, h and c).

    `gates` is None without a recoder.
    """

    loss: Tensor
    predictive: Tensor
    delta_before: Tensor
    delta_after: Tensor
    gradients: list[State]
    state: State
    gates: Tensor | None


@dataclass
class Token:
    """All that delta and output of one step depend on besides activations."""

    signal: Surprisal | McDropout | AnchoredEnsemble | Variational | WeakSupervision | None
    weight: Tensor  # [M, V, H]
    bias: Tensor  # [M, V]
    gold: Tensor  # [B]
    decoder_input: Tensor | None = None  # [R, H]
    samples: Tensor | None = None  # [K, B, H]
    weights: Tensor | None = None  # [K, V, H]
    probe: tuple[Tensor, Tensor | float] | None = None
    labels: Tensor | None = None  # [B]
    target: Tensor = field(init=False)  # [B], the token whose surprisal is delta

    def __post_init__(self) -> None:
        self.target = self.gold
        if self.weight.shape[0] != 1 and not isinstance(self.signal, AnchoredEnsemble):
            raise ValueError("more than one decoder without an ensemble")


def times(value: Tensor, mask: Tensor | None) -> Tensor:
    """The value under a mask, if there is one."""
    return value if mask is None else value * mask


def cell(layer: Layer, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM's next h and c."""
    gates = x @ layer.w_ih.T + layer.b_ih + h @ layer.w_hh.T + layer.b_hh
    i, f, g, o = gates.chunk(4, dim=1)
    next_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    if not next_c.requires_grad:
        next_c.requires_grad_()
    return torch.sigmoid(o) * torch.tanh(next_c), next_c


def decode(token: Token, member: int, hidden: Tensor) -> Tensor:
    """Logits of one decoder."""
    return hidden @ token.weight[member].T + token.bias[member]


def member_logits(token: Token, top: Tensor) -> Tensor:
    """Logits of each member or variational sample under the mask of the decoder's input, [K, B, V]; else K = 1."""
    hidden = times(top, token.decoder_input)
    logits = torch.stack([decode(token, member, hidden) for member in range(token.weight.shape[0])])
    batch = token.gold.shape[0]
    if isinstance(token.signal, Variational):
        return logits[0].reshape(token.signal.num_samples, batch, -1)
    return logits


def log_mean(log_probs: Tensor) -> Tensor:
    """Logarithm of the mean over the first axis of exp."""
    return torch.logsumexp(log_probs, dim=0) - math.log(log_probs.shape[0])


def entropy(log_probs: Tensor) -> Tensor:
    """In nats, over the last axis."""
    return -(log_probs.exp() * log_probs).sum(-1)


def dropout_logits(token: Token, signal: McDropout, sample: int, top: Tensor) -> Tensor:
    """Logits under one of MC dropout's masks, [B, V]."""
    if signal.masks == "units":
        return decode(token, 0, times(top, None if token.samples is None else token.samples[sample]))
    weight = times(token.weight[0], None if token.weights is None else token.weights[sample])
    return top @ weight.T + token.bias[0]


def dropout_moments(token: Token, signal: McDropout, top: Tensor) -> Tensor:
    """Mean logits, each plus 2 (1 - exp(-s / 4)), s its variance, under masks of units, beside their mean; [B, V]."""
    weight, rows = token.weight[0], []
    for one in top:
        mean = weight @ one + token.bias[0]
        expected = mean.softmax(dim=0) @ weight
        variances = [(((word - expected) * one) ** 2).sum() * signal.rate / (1 - signal.rate) for word in weight]
        rows.append(mean + 2 * (1 - torch.exp(-torch.stack(variances) / 4)))
    return torch.stack(rows)


def log_distribution(token: Token, top: Tensor) -> Tensor:
    """Log-probabilities that the signal looks at, [B, V]: of the mean where there are several."""
    match token.signal:
        case McDropout(estimator="moments") as signal:
            return F.log_softmax(dropout_moments(token, signal, top), dim=-1)
        case McDropout() as signal:
            logits = torch.stack([dropout_logits(token, signal, k, top) for k in range(signal.num_samples)])
            return log_mean(F.log_softmax(logits, dim=-1))
        case AnchoredEnsemble(entropy="batch"):
            return F.log_softmax(member_logits(token, top).mean(dim=0), dim=-1)
        case _:
            return log_mean(F.log_softmax(member_logits(token, top), dim=-1))


def surprisal(token: Token, signal: Surprisal, top: Tensor) -> Tensor:
    """Delta of the target's probability, [B]."""
    logits = member_logits(token, top)[0]
    if signal.variant == "inject":
        return -logits.gather(1, token.target[:, None])[:, 0]
    log_probs = F.logsigmoid(logits) if signal.variant == "sigmoid" else F.log_softmax(logits, dim=-1)
    log_p = log_probs.gather(1, token.target[:, None])[:, 0]
    return -log_p if signal.variant == "nll" else torch.exp(-log_p.exp() * log_p) - 1


def probe_loss(token: Token, hidden: Tensor) -> Tensor:
    """Binary cross-entropy of the probe, [B]; 0 in rows without a label."""
    if token.labels is None:
        return 0 * hidden.sum(dim=1)
    if token.probe is None:
        raise ValueError("labels without a probe")
    weight, bias = token.probe
    labelled = ~token.labels.isnan()
    labels = torch.where(labelled, token.labels, torch.zeros_like(token.labels))
    p_log, not_p_log = F.logsigmoid(hidden @ weight + bias), F.logsigmoid(-(hidden @ weight + bias))
    return torch.where(labelled, -labels * p_log - (1 - labels) * not_p_log, torch.zeros_like(p_log))


def delta(token: Token, hidden: list[Tensor]) -> Tensor:
    """The error signal, [B], given h of every layer."""
    match token.signal:
        case Surprisal() as signal:
            return surprisal(token, signal, hidden[-1])
        case WeakSupervision() as signal:
            return probe_loss(token, hidden[signal.layer - 1])
        case AnchoredEnsemble(entropy="batch"):
            return entropy(log_mean(log_distribution(token, hidden[-1]))).expand(token.gold.shape[0])
        case _:
            return entropy(log_distribution(token, hidden[-1]))


def output(token: Token, top: Tensor) -> tuple[Tensor, Tensor]:
    """Training loss and -log predictive probability of the gold token, each [B]."""
    if isinstance(token.signal, AnchoredEnsemble) and token.signal.loss == "own_loss":
        of_mean = token.signal.model_copy(update={"loss": "mean_loss"})
        shared, nats = output(
            replace(token, signal=of_mean, weight=token.weight.detach(), bias=token.bias.detach()), top
        )
        of_members, _ = output(replace(token, signal=of_mean), top.detach())
        each = len(token.weight) * of_members
        return shared + each - each.detach(), nats
    logits = member_logits(token, top)
    if isinstance(token.signal, AnchoredEnsemble) and token.signal.loss == "mean_logits":
        logits = logits.mean(dim=0, keepdim=True)
    log_p = torch.stack([row.gather(1, token.gold[:, None])[:, 0] for row in F.log_softmax(logits, dim=-1)])
    return -log_p.mean(dim=0), -log_mean(log_p)


def usable(gradient: Tensor, not_finite: str) -> Tensor:
    """The gradient with 0 in every row that has a non-finite entry, or with 1 in place of such entries."""
    finite = gradient.isfinite()
    if not_finite == "one":
        return torch.where(finite, gradient, torch.ones_like(gradient))
    return torch.where(finite.all(dim=1, keepdim=True), gradient, torch.zeros_like(gradient))


def total_gradients(recoder: Recoder, deltas: Tensor, state: State) -> State:
    """Total derivatives of delta with respect to every h and c of this step."""
    one_number = isinstance(recoder.signal, AnchoredEnsemble) and recoder.signal.entropy == "batch"
    second_order = isinstance(recoder.gradient, SecondOrder)
    flat = torch.autograd.grad(
        deltas[0] if one_number else deltas.sum(),
        [activation for pair in state for activation in pair],
        retain_graph=True,
        create_graph=second_order,
        materialize_grads=True,
    )
    clean = [usable(gradient if second_order else gradient.detach(), recoder.not_finite) for gradient in flat]
    return list(zip(clean[0::2], clean[1::2], strict=True))


def gate_of(recoder: Recoder, given: Tensor | None, deltas: Tensor, log_probs: Tensor) -> Tensor:
    """Which rows are recoded, [B]: as given, or else by the recoder's threshold, or else all."""
    if given is not None:
        return given
    if isinstance(recoder.gate, Chance):
        raise ValueError("draw the gate outside")
    if isinstance(recoder.gate, Threshold):
        return (deltas > recoder.gate.min_delta).double()
    if isinstance(recoder.gate, EntropyThreshold):
        return (entropy(log_probs) > recoder.gate.min_entropy).double()
    return torch.ones_like(deltas)


def read(t: int, x: Tensor, state: State, layers: list[Layer], masks: Masks) -> State:
    """The state behind token t, whose embedding [R, E] is x."""
    new_state: State = []
    for index, layer in enumerate(layers):
        h, c = state[index]
        if index > 0:
            x = times(new_state[-1][0], None if masks.between is None else masks.between[index - 1][t])
        h = times(h, None if masks.recurrent is None else masks.recurrent[index])
        new_state.append(cell(layer, x, h, c))
    return new_state


def recode(t: int, state: State, steps: State, gates: Tensor, step_size: StepSize, log_probs: Tensor) -> State:
    """The state a step down the gradients `steps`, where the gates [R, 1] are open."""
    recoded: State = []
    for index, (pair, pair_steps) in enumerate(zip(state, steps, strict=True)):
        moved = []
        for kind, activation, step in zip("hc", pair, pair_steps, strict=True):
            size = step_size(t, index, kind, activation.detach(), log_probs)
            alpha = torch.as_tensor(size, dtype=torch.float64)
            moved.append(activation - gates * alpha.reshape(-1, 1) * step)
        recoded.append((moved[0], moved[1]))
    return recoded


def run(
    inputs: Tensor,
    gold: Tensor,
    state: State,
    layers: list[Layer],
    decoder_weight: Tensor,
    decoder_bias: Tensor,
    recoder: Recoder | None,
    step_size: StepSize,
    masks: Masks | None = None,
    probe: tuple[Tensor, Tensor | float] | None = None,
    labels: Tensor | None = None,
    gate: Tensor | None = None,
) -> Result:
    """Read inputs [T, R, E] and predict gold [T, B], recoding after every token.

    All must be float64. `step_size` has (token, layer, "h" or "c", activation [R, H], log-probabilities [B, V]), both
    detached, and returns a scalar or [R]. Gradients that the recoder estimates by finite differences are exact here.
    """
    for tensor in (inputs, decoder_weight, decoder_bias, *(t for pair in state for t in pair)):
        if tensor.dtype != torch.float64:
            raise TypeError("not float64")
    masks = masks or Masks()
    losses, predictives, before, after, gradients, all_gates = [], [], [], [], [], []
    with torch.enable_grad():
        for t in range(inputs.shape[0]):
            state = read(t, inputs[t], state, layers, masks)
            token = Token(
                recoder.signal if recoder else None,
                decoder_weight,
                decoder_bias,
                gold[t],
                None if masks.decoder_input is None else masks.decoder_input[t],
                None if masks.samples is None else masks.samples[t],
                None if masks.weights is None else masks.weights[t],
                probe,
                labels,
            )
            top = state[-1][0]
            if recoder is None:
                deltas = deltas_after = torch.zeros(gold.shape[1], dtype=torch.float64)
            else:
                if isinstance(recoder.signal, Surprisal) and recoder.signal.target == "argmax":
                    token.target = member_logits(token, top)[0].argmax(dim=-1)
                deltas = delta(token, [h for h, _ in state])
                log_probs = log_distribution(token, top).detach()
                gates = gate_of(recoder, None if gate is None else gate[t], deltas.detach(), log_probs)
                all_gates.append(gates)
                gates = gates.repeat(top.shape[0] // gold.shape[1])[:, None]
                steps = total_gradients(recoder, deltas, state)
                state = recode(t, state, steps, gates, step_size, log_probs)
                deltas_after = delta(token, [h for h, _ in state])
                gradients.append([(h.detach(), c.detach()) for h, c in steps])

            unchanged = recoder is None or isinstance(recoder.signal, Surprisal)
            loss, predictive = output(token, top if unchanged else state[-1][0])
            losses.append(loss)
            predictives.append(predictive)
            before.append(deltas.detach())
            after.append(deltas_after.detach())
    return Result(
        torch.stack(losses),
        torch.stack(predictives),
        torch.stack(before),
        torch.stack(after),
        gradients,
        state,
        torch.stack(all_gates) if all_gates else None,
    )


def gradients_by_finite_differences(
    delta_fn: Callable[[Tensor], Tensor], activation: Tensor, epsilon: float = 1e-6
) -> Tensor:
    """Gradient of a scalar-valued function by central differences, one entry after another."""
    gradient = torch.zeros_like(activation)
    for entry in range(activation.numel()):
        step = torch.zeros_like(activation)
        step.view(-1)[entry] = epsilon
        difference = delta_fn(activation.detach() + step) - delta_fn(activation.detach() - step)
        gradient.view(-1)[entry] = difference.detach() / (2 * epsilon)
    return gradient
