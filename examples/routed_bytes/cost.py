"""Multiply-accumulates that really run, a byte: of what is chosen, and of what chooses."""

from dataclasses import dataclass

from routed_bytes.byte_model import NUM_BYTES
from routed_bytes.config import Always, ByRate, Learned, RoutedBytes, TopK
from trainables.conditional.top_k import router_macs
from trainables.cost import causal_attention_macs, linear_macs


@dataclass(frozen=True)
class Costs:
    """The costs of one byte.

    Attributes:
        fixed: attention, output layer, and what chooses, whatever it chooses.
        small, big: of the feed-forward network of one layer.
    """

    fixed: float
    small: int
    big: int


def costs(config: RoutedBytes) -> Costs:
    """In a sequence of `context` bytes; attention to later bytes is not needed, and not counted."""
    model = config.model
    attention = causal_attention_macs(model.width, model.width, model.context, model.context) / model.context
    return Costs(
        fixed=model.num_layers * (attention + _gate_macs(config))
        + linear_macs(model.width, NUM_BYTES)
        + (byte_model_macs(config) if asks_byte_model(config) else 0),
        small=2 * linear_macs(model.width, model.small_width),
        big=2 * linear_macs(model.width, model.big_width),
    )


def macs_per_token(config: RoutedBytes, big_share: float) -> float:
    """In testing, where `big_share` of the choices of all layers were big."""
    one = costs(config)
    return one.fixed + config.model.num_layers * (big_share * one.big + (1 - big_share) * one.small)


def training_macs_per_token(config: RoutedBytes, big_share: float) -> float:
    """Multiply-accumulates of the forward pass in training, where a learned gate runs both networks on every byte."""
    if isinstance(config.controller, Learned):
        one = costs(config)
        return one.fixed + config.model.num_layers * (one.big + one.small)
    return macs_per_token(config, big_share)


def plain_width(config: RoutedBytes, rate: float) -> int:
    """Hidden units of one network for all bytes that costs what `config` does where `rate` of its choices are big."""
    plain = costs(config.model_copy(update={"controller": Always(kind="always_big")}))
    one_unit = config.model.num_layers * 2 * linear_macs(config.model.width, 1)
    return round((macs_per_token(config, rate) - plain.fixed) / one_unit)


def asks_byte_model(config: RoutedBytes) -> bool:
    """Whether the controller must know what the frozen model says."""
    return isinstance(config.controller, ByRate) and config.controller.kind != "random"


def byte_model_macs(config: RoutedBytes) -> int:
    """Multiply-accumulates of the frozen model, which runs once for each byte; embeddings are looked up."""
    asked = config.byte_model
    return linear_macs(asked.num_read * asked.embedding, asked.hidden) + linear_macs(asked.hidden, NUM_BYTES)


def _gate_macs(config: RoutedBytes) -> int:
    """Multiply-accumulates of the gate of one layer."""
    match config.controller:
        case Learned():
            return linear_macs(config.model.width, 1)
        case TopK(predictor_width=predictor_width):
            return router_macs(config.model.width, predictor_width)
    return 0
