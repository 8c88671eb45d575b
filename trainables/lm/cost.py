"""Analytic multiply-accumulates of a token, one for each weight used once; elementwise steps are not counted."""

from trainables.cost import linear_macs
from trainables.lm.config import (
    AnchoredEnsemble,
    FiniteDifference,
    LipschitzStep,
    LmConfig,
    McDropout,
    PredictedStep,
    Recoder,
    Signal,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.shapes import HIDDEN_SIZES, num_copies, num_predictor_inputs


def macs_per_token(config: LmConfig, recoder: Recoder | None, vocabulary_size: int) -> float:
    """Of the forward pass with everything that recoding adds to it; a gate that stays shut saves nothing."""
    decode = linear_macs(config.hidden_size, vocabulary_size)
    members = _num_members(config)
    if recoder is None or isinstance(recoder.signal, WeakSupervision):
        return sum(_layers(config)) + members * decode
    copies = num_copies(recoder)
    total = copies * sum(_layers(config)) + _reading(recoder.signal, decode)
    if not isinstance(recoder.signal, Surprisal):
        total += copies * members * decode
    if isinstance(recoder.gradient, FiniteDifference):
        total += recoder.gradient.num_directions * 2 * _differences(config, recoder, decode)
    else:
        total += copies * (config.num_layers - 1) * linear_macs(4 * config.hidden_size, config.hidden_size)
    if isinstance(recoder.step, LipschitzStep):
        total += recoder.step.num_iterations * _reading(recoder.signal, decode)
    return total + copies * _predicting(config, recoder, vocabulary_size)


def training_macs_per_token(config: LmConfig, vocabulary_size: int) -> float:
    """Of forward and backward passes; not of a graph through the recoding gradient."""
    decode, recoder, members = linear_macs(config.hidden_size, vocabulary_size), config.recoder, _num_members(config)
    forward = macs_per_token(config, recoder, vocabulary_size)
    copies = num_copies(recoder)
    backward: float = 2 * copies * (sum(_layers(config)) + members * decode)
    if recoder and isinstance(recoder.signal, Surprisal):
        backward -= decode  # the loss's gradient in the top state has been found on the way
        if recoder.signal.variant == "sigmoid":
            backward += decode
    if recoder and isinstance(recoder.step, PredictedStep):  # once more forward, then back, but not to what is read
        num_inputs = num_predictor_inputs(recoder.step, config.hidden_size, vocabulary_size)
        first = 2 * config.num_layers * linear_macs(num_inputs, HIDDEN_SIZES[0])
        backward += copies * (3 * _predicting(config, recoder, vocabulary_size) - first)
    return forward + backward


def _layers(config: LmConfig) -> list[int]:
    """Of one step of each LSTM layer: four gates, each reading input and state."""
    inputs = [config.embedding_size] + [config.hidden_size] * (config.num_layers - 1)
    return [4 * linear_macs(size + config.hidden_size, config.hidden_size) for size in inputs]


def _reading(signal: Signal, decode: int) -> float:
    """Of an error signal and its gradient in the top state."""
    match signal:
        case Surprisal():
            return decode if signal.variant == "sigmoid" else 2 * decode
        case McDropout():
            return 8 * decode if signal.estimator == "moments" else 2 * signal.num_samples * decode
        case AnchoredEnsemble():
            return 2 * signal.num_members * decode
        case Variational():
            return 2 * signal.num_samples * decode
        case WeakSupervision():
            return 0.0


def _differences(config: LmConfig, recoder: Recoder, decode: int) -> float:
    """Of one value of the error signal for each activation moved, with the layers above it."""
    copies, layers = num_copies(recoder), _layers(config)
    above = sum(2 * copies * sum(layers[number + 1 :]) for number in range(config.num_layers))
    value = decode if isinstance(recoder.signal, Surprisal) else _reading(recoder.signal, decode) / 2
    return above + 2 * config.num_layers * value


def _predicting(config: LmConfig, recoder: Recoder, vocabulary_size: int) -> float:
    """Of networks that predict the step sizes of one row."""
    if not isinstance(recoder.step, PredictedStep):
        return 0.0
    num_inputs = num_predictor_inputs(recoder.step, config.hidden_size, vocabulary_size)
    first, second = HIDDEN_SIZES
    return 2 * config.num_layers * (linear_macs(num_inputs, first) + linear_macs(first, second) + second)


def _num_members(config: LmConfig) -> int:
    """Decoders that the model has itself."""
    signal = config.recoder.signal if config.recoder else None
    return signal.num_members if isinstance(signal, AnchoredEnsemble) and signal.loss != "mean_logits" else 1
