"""The sweeps: bits per byte against multiply-accumulates, by who chooses; `cd examples`, then

ponderay run routed_bytes.sweeps:laptop
"""

from ponderay import Condition, Objective, Prerequisite, Sweep
from routed_bytes import cost
from routed_bytes.config import (
    Always,
    ByRate,
    ByteModel,
    Controller,
    Learned,
    RoutedBytes,
    Text,
    TopK,
    Training,
    Transformer,
)

SMOKE = RoutedBytes(
    text=Text(source="documentation", num_train_bytes=50_000, num_test_bytes=2_000),
    byte_model=ByteModel(num_steps=20),
    model=Transformer(width=16, num_layers=2, num_heads=2, small_width=8, big_width=32, context=32),
    training=Training(num_steps=6, report_every=2, batch_size=4),
)
ONE_GPU = RoutedBytes(
    text=Text(num_test_bytes=1_000_000),
    byte_model=ByteModel(num_read=12, embedding=16, hidden=256, num_steps=20_000),
    model=Transformer(width=512, num_layers=8, num_heads=8, small_width=256, big_width=4096, context=512),
    training=Training(num_steps=20_000, report_every=1000, batch_size=64, learning_rate=6e-4),
)


def laptop(size: str) -> Sweep:
    """One to three minutes a replicate, on one CPU thread."""
    return _sweep("laptop", SMOKE if size == "smoke" else RoutedBytes(), size)


def gpu(size: str) -> Sweep:
    """For one GPU."""
    return _sweep("gpu", SMOKE if size == "smoke" else ONE_GPU, size)


def _sweep(name: str, base: RoutedBytes, size: str) -> Sweep:
    return Sweep(
        name=f"routed_bytes.{name}",
        description="Bytes that take a big feed-forward network: by surprisal, entropy, gate, top-k or at random.",
        trainable="routed_bytes.train",
        base=base,
        conditions=(
            *(Condition(name, {"controller": one}) for name, one in _controllers(size).items()),
            *(_plain(base, rate) for rate in _rates(size)),
        ),
        objectives=(Objective("bits_per_byte"), Objective("macs_per_token")),
        seeds=(1, 2) if size == "smoke" else (1, 2, 3, 4, 5),
        reference="random_25",
        prerequisites=(Prerequisite("byte_model", "routed_bytes.pretrain", "pretraining"),),
    )


def _controllers(size: str) -> dict[str, Controller]:
    """By name; the number is the rate in percent."""
    found: dict[str, Controller] = {kind: Always(kind=kind) for kind in ("always_small", "always_big")}
    for rate in _rates(size):
        percent = f"{100 * rate:.0f}"
        found |= {f"{kind}_{percent}": ByRate(kind=kind, rate=rate) for kind in ("random", "surprisal", "entropy")}
        found |= {f"learned_{percent}": Learned(rate=rate), f"top_k_{percent}": TopK(rate=rate)}
    return found


def _rates(size: str) -> tuple[float, ...]:
    return (0.25,) if size == "smoke" else (0.25, 0.5)


def _plain(base: RoutedBytes, rate: float) -> Condition:
    """One network for all bytes, of the width with which it costs what routing by surprisal does."""
    routed = base.model_copy(update={"controller": ByRate(kind="surprisal", rate=rate)})
    values = {"controller": Always(kind="always_big"), "model.big_width": cost.plain_width(routed, rate)}
    return Condition(f"plain_{100 * rate:.0f}", values, computed_from=("model", "byte_model"))
