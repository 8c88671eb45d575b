"""What sweeps of speech recognisers are made of: ways of routing as conditions, and the rest of a sweep."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from search_spaces.resources import Resources
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Objective, Prerequisite, Sweep
from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig, Evaluation, Learned, Random, Surprisal
from trainables.asr.macs import plain_width, width_of_big

AUTOREGRESSIVE = Prerequisite("ar", "trainables.asr.pretrain", "pretraining", Resources(num_workers="all"))
AUTOREGRESSIVE_OF_EACH_SEED = replace(AUTOREGRESSIVE, each_seed=True)
"""Trained with the replicate's seed in place of `ar.seed`: what it varies by is then part of the spread over seeds."""
NUM_LABELS: Final = 41
"""Labels of LibriSpeech with the phones of the dictionary, silence and spoken noise."""
CLAIMS: Final = str(Path(__file__).with_name("published") / "asr.toml")
OBJECTIVES = (Objective("per"), Objective("macs_per_frame"))
VALIDATED = (Objective("valid_per"), Objective("valid_macs_per_frame"))
"""Objectives of searches, which must not choose by the test."""
ALWAYS = (
    Condition("always_small", {"controller": AlwaysSmall()}),
    Condition("always_big", {"controller": AlwaysBig()}),
)
LEARNED = (
    Condition("learned", {"controller": Learned()}),
    Condition("learned_paper", {"controller": Learned(penalty="paper", weight=1e-3)}),
    Condition("learned_released", {"controller": Learned(gate_input="pre_net", penalty="released", weight=1e-3)}),
)
"""The learned controller with each penalty: ours, that of the paper, and that of its released code."""
COSTS: Final = (
    "inputs",
    "controller.mu",
    "controller.p_big",
    "ar.features",
    "ar.hidden_size",
    "ar.encoder",
    *(
        f"network.{name}"
        for name in ("pre_hidden_size", "big_hidden_size", "post_hidden_size", "width", "kernel_frames")
    ),
)
"""What decides the width of a plain network of equal cost."""
LOW_RATE: Final = 0.3
"""A rate of the big network well below the paper's, beside which routing is asked of a plain network of equal cost."""


def random_routing(config: AsrConfig) -> tuple[Condition, ...]:
    """Random routing at the paper's half and at the surprisal controller's own mean rate, where that is another."""
    mu = config.controller.mu if isinstance(config.controller, Surprisal) else 0.5
    matched = (Condition(f"random_p{mu:g}", {"controller": Random(p_big=mu)}),) if mu != Random().p_big else ()
    return (Condition("random", {"controller": Random()}), *matched)


def tested_as_trained(condition: Condition) -> Condition:
    """The same with one evaluation, under its own controller."""
    return Condition(condition.name, {"evaluations": (Evaluation(),)} | dict(condition.values), condition.resources)


def equal_cost(name: str, size: Size, title: str, config: AsrConfig, mu: float) -> Sweep:
    """Surprisal and random routing, each at two rates, beside an always big network narrow enough to cost the same.

    With AR features all pay for the autoregressive model; on frames only surprisal does, and so does its plain rival,
    by a wider network. One wider than the big network also stands there with half of the learning rate: the rate that
    suits the others can keep it at blanks alone.
    """
    conditions = [
        condition
        for prefix, inputs, rates in (("ar", "ar_features", (LOW_RATE, mu)), ("no_ar", "frames", (mu,)))
        for rate in rates
        for controller in (Surprisal(mu=rate), Random(p_big=rate))
        for routed in [Condition(f"{prefix},{controller.kind}_{rate:g}", {"inputs": inputs, "controller": controller})]
        for condition in (routed, *_plain_rivals(config, routed))
    ]
    about = f"Surprisal and random routing, each beside a plain network of equal cost; {title}."
    reference = f"ar,surprisal_{mu:g},plain"
    return speech_sweep(name, size, about, config, (*ALWAYS, *conditions), reference)


def plain(config: AsrConfig, routed: Condition, num_labels: int | None = None) -> Condition:
    """An always big network of the width with which it costs what the routed one does; see `plain_width`."""
    config = with_all(config, routed.values)
    width = {f"network.{width_of_big(config.network)}": plain_width(config, num_labels)}
    values = {"inputs": config.inputs, "controller": AlwaysBig()} | width
    return Condition(f"{routed.name},plain", values, computed_from=COSTS)


def _plain_rivals(config: AsrConfig, routed: Condition) -> tuple[Condition, ...]:
    rival, width = plain(config, routed), width_of_big(config.network)
    if getattr(with_all(config, rival.values).network, width) <= getattr(config.network, width):
        return (rival,)
    half = {"training.learning_rate": config.training.learning_rate / 2}
    computed_from = (*COSTS, "training.learning_rate")
    return rival, Condition(f"{rival.name},half_rate", {**rival.values, **half}, computed_from=computed_from)


def speech_sweep(
    name: str,
    size: Size,
    description: str,
    config: AsrConfig,
    conditions: Iterable[Condition],
    reference: str | None = None,
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5),
) -> Sweep:
    return Sweep(
        name=sized_name(f"asr.{name}", size),
        description=description,
        trainable="trainables.asr.train",
        claims=CLAIMS,
        base=config,
        conditions=tuple(conditions),
        objectives=OBJECTIVES,
        seeds=(1,) if size == "smoke" else seeds,
        reference=reference,
        prerequisites=(AUTOREGRESSIVE,),
    )
