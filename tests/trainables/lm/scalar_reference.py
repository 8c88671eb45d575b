"""A recoding LSTM, dynamic evaluation and the continuous cache over plain floats, one number after another."""

import itertools
import math
from dataclasses import dataclass, field

import torch


def weights_of(network: torch.nn.Module) -> dict[str, list]:
    """Every parameter as nested lists."""
    return {name: value.tolist() for name, value in network.state_dict().items()}


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@dataclass
class Read:
    """What was read of a segment.

    Attributes:
        moves: of every word what recoding subtracted from h and c of each layer.
    """

    moves: list[list[tuple[list[float], list[float]]]] = field(default_factory=list)
    nats: list[float] = field(default_factory=list)
    tops: list[list[float]] = field(default_factory=list)
    probs: list[list[float]] = field(default_factory=list)

    @property
    def loss(self) -> float:
        return sum(self.nats) / len(self.nats)


def start(num_layers: int, size: int) -> list[tuple[list[float], list[float]]]:
    return [([0.0] * size, [0.0] * size) for _ in range(num_layers)]


def cell(weights, number, inputs, h, c):
    """i, f, g, o, and the new c."""
    part = {name: weights[f"layers.{number}.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    size = len(h)
    gates = [
        dot(part["weight_ih"][row], inputs)
        + dot(part["weight_hh"][row], h)
        + part["bias_ih"][row]
        + part["bias_hh"][row]
        for row in range(4 * size)
    ]
    i, f, o = ([sigmoid(gates[k * size + unit]) for unit in range(size)] for k in (0, 1, 3))
    g = [math.tanh(gates[2 * size + unit]) for unit in range(size)]
    return i, f, g, o, [f[unit] * c[unit] + i[unit] * g[unit] for unit in range(size)]


def read(weights, state, tokens: list[int], step_size: float = 0.0, moves=None):
    """Reads all but the last of `tokens`; returns what was read and the state behind, recoded by surprisal or not.

    With `moves` of an earlier reading, states move by these, whatever the weights say.
    """
    found = Read()
    for place, (token, following) in enumerate(itertools.pairwise(tokens)):
        values, cells, before = weights["embedding.weight"][token], [], state
        state = []
        for number, (h, c) in enumerate(before):
            i, f, g, o, new = cell(weights, number, values, h, c)
            values = [o[unit] * math.tanh(new[unit]) for unit in range(len(h))]
            cells.append((i, f, g, o, new, c))
            state.append((values, new))
        decoder, bias = weights["decoder_weight"][0], weights["decoder_bias"][0]
        exps = [math.exp(dot(row, values) + b) for row, b in zip(decoder, bias, strict=True)]
        probs = [one / sum(exps) for one in exps]
        found.nats.append(-math.log(probs[following]))
        found.tops.append(values)
        found.probs.append(probs)
        if step_size:
            errors = [p - (word == following) for word, p in enumerate(probs)]
            of_top = [
                sum(errors[word] * decoder[word][unit] for word in range(len(probs))) for unit in range(len(values))
            ]
            found.moves.append(recoding(weights, cells, of_top, step_size))
            state = moved(state, found.moves[-1])
        elif moves:
            state = moved(state, moves[place])
    return found, state


def moved(state, move):
    """Each h and c less what recoding subtracts."""
    pairs = zip(state, move, strict=True)
    return [tuple([a - b for a, b in zip(*two, strict=True)] for two in zip(*pair, strict=True)) for pair in pairs]


def recoding(weights, cells, hidden, step_size):
    """What is subtracted from h and c of each layer: the step times their gradients, made from the top down."""
    found = []
    for number in reversed(range(len(cells))):
        i, f, g, o, new, old = cells[number]
        units = range(len(new))
        memory = [hidden[u] * o[u] * (1 - math.tanh(new[u]) ** 2) for u in units]
        found.append(([step_size * hidden[u] for u in units], [step_size * memory[u] for u in units]))
        of_gates = (
            [memory[u] * g[u] * i[u] * (1 - i[u]) for u in units]
            + [memory[u] * old[u] * f[u] * (1 - f[u]) for u in units]
            + [memory[u] * i[u] * (1 - g[u] ** 2) for u in units]
            + [hidden[u] * math.tanh(new[u]) * o[u] * (1 - o[u]) for u in units]
        )
        weight = weights[f"layers.{number}.weight_ih_l0"]
        hidden = [sum(of_gates[row] * weight[row][unit] for row in range(len(weight))) for unit in units]
    return found[::-1]


def places(weights, names):
    """Where each number of the parameters `names` stands: the list that has it, and its index."""

    def of(values):
        if isinstance(values[0], float):
            return [(values, index) for index in range(len(values))]
        return [place for part in values for place in of(part)]

    return [place for name in names for place in of(weights[name])]


def decoder_gradient(found: list[Read], targets: list[list[int]], with_weights: bool) -> list[float]:
    """Of the mean loss over streams, by p minus one at the word that came: weights, then biases."""
    count = sum(len(one.nats) for one in found)
    size, num_words = len(found[0].tops[0]), len(found[0].probs[0])
    of_weight = [[0.0] * size for _ in range(num_words)]
    of_bias = [0.0] * num_words
    for one, words in zip(found, targets, strict=True):
        for top, probs, target in zip(one.tops, one.probs, words, strict=True):
            for word in range(num_words):
                error = (probs[word] - (word == target)) / count
                of_bias[word] += error
                for unit in range(size):
                    of_weight[word][unit] += error * top[unit]
    return [value for row in of_weight for value in row] * with_weights + of_bias


def differences(loss, found_places, distance=1e-6) -> list[float]:
    """The gradient of `loss()` at each place, by central differences."""
    gradient = []
    for values, index in found_places:
        kept, ends = values[index], []
        for sign in (1, -1):
            values[index] = kept + sign * distance
            ends.append(loss())
        values[index] = kept
        gradient.append((ends[0] - ends[1]) / (2 * distance))
    return gradient


def dynamic_nats(weights, train, tokens, kind, segment, rate, decay, epsilon, step_size=0.0):
    """-log p of every token but the first, with `weights` that move; `train` are the streams of the training text."""
    names = ["decoder_bias"] if kind == "bias" else ["decoder_weight", "decoder_bias"]
    if kind == "all":
        names = [name for name in weights if name not in names] + names
    moving = places(weights, names)
    num_layers = sum(name.endswith("weight_hh_l0") for name in weights)
    size = len(weights["decoder_weight"][0][0])

    def gradient(parts, states):
        found = [read(weights, state, part, step_size) for part, state in zip(parts, states, strict=True)]
        if kind != "all":
            return found, decoder_gradient([one for one, _ in found], [part[1:] for part in parts], kind == "decoder")

        def loss():
            every = []
            for part, state, (one, _) in zip(parts, states, found, strict=True):
                every += read(weights, state, part, moves=one.moves)[0].nats
            return sum(every) / len(every)

        return found, differences(loss, moving)

    squares, count = [0.0] * len(moving), 0
    states = [start(num_layers, size) for _ in train]
    for first in range(0, len(train[0]) - 1, segment):
        parts = [stream[first : first + segment + 1] for stream in train]
        found, now = gradient(parts, states)
        states = [state for _, state in found]
        squares = [old + one * one for old, one in zip(squares, now, strict=True)]
        count += 1
    rms = [math.sqrt(square / count) for square in squares]
    mean = sum(rms) / len(rms)
    trained = [values[index] for values, index in moving]
    state, nats = start(num_layers, size), []
    for first in range(0, len(tokens) - 1, segment):
        part = tokens[first : first + segment + 1]
        found, now = gradient([part], [state])
        ((one, state),) = found
        nats += one.nats
        for (values, index), old, root, slope in zip(moving, trained, rms, now, strict=True):
            pull = min(decay * root / mean, 1.0)
            values[index] += pull * (old - values[index]) - rate * slope / (root + epsilon)
    return nats


def cached_nats(weights, tokens, size, theta, share, step_size=0.0):
    """-log p of every token but the first, mixed with a cache of the last `size` states before recoding."""
    num_layers = sum(name.endswith("weight_hh_l0") for name in weights)
    found, _ = read(weights, start(num_layers, len(weights["decoder_weight"][0][0])), tokens, step_size)
    nats = []
    for step, top in enumerate(found.tops):
        kept = range(max(0, step - size), step)
        scores = {i: math.exp(theta * dot(top, found.tops[i])) for i in kept}
        p = math.exp(-found.nats[step])
        if scores:
            hits = sum(score for i, score in scores.items() if tokens[i + 1] == tokens[step + 1])
            p = (1 - share) * p + share * hits / sum(scores.values())
        nats.append(-math.log(p))
    return nats
