"""Analytic multiply-accumulates of a token, one for each weight used once; elementwise steps are not counted."""

from trainables.cost import linear_macs
from trainables.lm.config import (
    AnchoredEnsemble,
    FiniteDifference,
    LmConfig,
    McDropout,
    Recoder,
    Signal,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.shapes import HIDDEN_SIZES, lowest_recoded, num_copies, num_predictor_inputs, recoded_activations
from trainables.lm.step_config import LipschitzStep, PredictedStep


def macs_per_token(
    config: LmConfig, recoder: Recoder | None, vocabulary_size: int, share_recoded: float = 1.0
) -> float:
    """Multiply-accumulates of the forward pass with everything that recoding adds to it, as far as it ran.

    Args:
        config: of the model.
        recoder: that it is tested with.
        vocabulary_size: words.
        share_recoded: of the tokens, in 0 to 1; counts where the recoder leaves the others out.
    """
    decode = linear_macs(config.hidden_size, vocabulary_size)
    members = _num_members(config)
    if recoder is None or isinstance(recoder.signal, WeakSupervision):
        return sum(_layers(config)) + members * decode
    copies = num_copies(recoder)
    total = copies * sum(_layers(config))
    if not isinstance(recoder.signal, Surprisal):
        total += copies * members * decode
    values, slopes = _reading(recoder.signal, decode)
    if isinstance(recoder.gradient, FiniteDifference):
        return total + values + slopes + _finding(config, recoder, vocabulary_size)
    share = share_recoded if recoder.skips_shut_rows else 1.0
    if share < 1 and recoder.knows_gate_first:
        values *= share
    return total + values + share * (slopes + _finding(config, recoder, vocabulary_size))


def training_macs_per_token(config: LmConfig, vocabulary_size: int, share_recoded: float | None = 1.0) -> float:
    """Multiply-accumulates of forward and backward passes; not of a graph through the recoding gradient.

    Args:
        config: of the model and its recoder.
        vocabulary_size: words.
        share_recoded: as above; None while the recoder is not in use, as in plain epochs.
    """
    decode, members = linear_macs(config.hidden_size, vocabulary_size), _num_members(config)
    recoder, share_recoded = (None, 0.0) if share_recoded is None else (config.recoder, share_recoded)
    if recoder and isinstance(recoder.signal, WeakSupervision):
        recoder = None  # on text it never runs
    forward = macs_per_token(config, recoder, vocabulary_size, share_recoded)
    copies = num_copies(recoder)
    backward: float = 2 * copies * (sum(_layers(config)) + members * decode)
    share = share_recoded if recoder and recoder.skips_shut_rows else 1.0
    if recoder and isinstance(recoder.signal, Surprisal) and recoder.signal.compares:
        backward -= share * decode  # the loss's gradient in the top state is found on the way
    if recoder and isinstance(recoder.step, PredictedStep):  # once more forward, then back, but not to what is read
        num_inputs = num_predictor_inputs(recoder.step, config.hidden_size, vocabulary_size)
        first = 2 * config.num_layers * linear_macs(num_inputs, HIDDEN_SIZES[0])
        backward += share * copies * (3 * _predicting(config, recoder, vocabulary_size) - first)
    return forward + backward


def _finding(config: LmConfig, recoder: Recoder, vocabulary_size: int) -> float:
    """The cost of the gradient in every recoded activation, from that in the top state, and of the step sizes."""
    copies, decode = num_copies(recoder), linear_macs(config.hidden_size, vocabulary_size)
    if isinstance(recoder.gradient, FiniteDifference):
        # a value of the error signal for each activation moved, with the layers above it
        numbers, layers = recoded_activations(recoder.step, config.num_layers), _layers(config)
        above = sum(copies * sum(layers[number // 2 + 1 :]) for number in numbers)
        value = decode if isinstance(recoder.signal, Surprisal) else _reading(recoder.signal, decode)[0]
        total = recoder.gradient.num_directions * 2 * (above + len(numbers) * value)
    else:
        num_products = config.num_layers - 1 - lowest_recoded(recoder.step, config.num_layers)
        total = copies * num_products * linear_macs(4 * config.hidden_size, config.hidden_size)
    if isinstance(recoder.step, LipschitzStep):
        total += recoder.step.num_iterations * sum(_reading(recoder.signal, decode))
    return total + copies * _predicting(config, recoder, vocabulary_size)


def _layers(config: LmConfig) -> list[int]:
    """The cost of one step of each LSTM layer: four gates, each reading input and state."""
    inputs = [config.embedding_size] + [config.hidden_size] * (config.num_layers - 1)
    return [4 * linear_macs(size + config.hidden_size, config.hidden_size) for size in inputs]


def _reading(signal: Signal, decode: int) -> tuple[float, float]:
    """The cost of an error signal, and of its gradient in the top state."""
    match signal:
        case Surprisal():
            return decode, decode if signal.compares else 0.0
        case McDropout(estimator="moments"):
            return 4 * decode, 4 * decode
        case McDropout() | Variational():
            return signal.num_samples * decode, signal.num_samples * decode
        case AnchoredEnsemble():
            return signal.num_members * decode, signal.num_members * decode
        case WeakSupervision():
            return 0.0, 0.0


def _predicting(config: LmConfig, recoder: Recoder, vocabulary_size: int) -> float:
    """The cost of networks that predict the step sizes of one row."""
    if not isinstance(recoder.step, PredictedStep):
        return 0.0
    num_inputs = num_predictor_inputs(recoder.step, config.hidden_size, vocabulary_size)
    first, second = HIDDEN_SIZES
    return 2 * config.num_layers * (linear_macs(num_inputs, first) + linear_macs(first, second) + second)


def _num_members(config: LmConfig) -> int:
    """Decoders that the model has itself."""
    signal = config.recoder.signal if config.recoder else None
    return signal.num_members if isinstance(signal, AnchoredEnsemble) and signal.loss != "mean_logits" else 1
