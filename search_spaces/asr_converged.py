"""Speech sweeps at the paper's sizes on Mini-LibriSpeech's 5.3 hours alone, trained until validation is not better.

Each seed has an autoregressive model of its own, which table 2 and model 3 share.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from search_spaces.asr_conditions import (
    ALWAYS,
    AUTOREGRESSIVE_OF_EACH_SEED,
    COSTS,
    NUM_LABELS,
    plain,
    speech_sweep,
)
from search_spaces.asr_sizes import MINI_LIBRISPEECH, laptop
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Objective, Sweep, SweepFunction
from trainables.asr.config import (
    AsrConfig,
    Convolutional,
    Evaluation,
    Learned,
    Optimisation,
    Pretraining,
    Random,
    Surprisal,
)
from trainables.asr.data.config import LibriSpeech
from trainables.asr.macs import part_macs

AR: Final = Pretraining(
    dropout=0.2,
    start="data_mean",
    training=Optimisation(learning_rate=1e-3, decay=0.95, batch_size=8, num_epochs=40, patience=4),
)
"""The paper's sizes, but not its batches and rate, which are for 960 hours; `ar_converged` chose dropout and decay."""

TRIED: Final = ((0.0, 0.95), (0.2, 0.95), (0.3, 0.95), (0.5, 0.95), (0.3, 0.98))
"""Dropout of the autoregressive model, and by what its learning rate is multiplied after an epoch."""

RECOGNISER: Final = Optimisation(num_epochs=50, patience=6)
"""The paper's, which has no rule. Longer than the blank plateau of CTC, about four epochs here."""

MU: Final = MINI_LIBRISPEECH.mu


def ar_converged(size: Size = "full") -> Sweep:
    """The autoregressive model alone: which dropout and decay of the learning rate foresee most."""
    config = _base(size)
    conditions = [
        Condition(f"dropout={dropout:g},decay={decay:g}", {"dropout": dropout, "training.decay": decay})
        for dropout, decay in TRIED
    ]
    return Sweep(
        name=sized_name("asr.ar_converged", size),
        description="Dropout and decay of the autoregressive model at the paper's size, 5.3 hours of Mini-LibriSpeech.",
        trainable="trainables.asr.pretrain",
        base=config.ar.model_copy(update={"data": config.data}),
        conditions=tuple(conditions),
        objectives=(Objective("valid_surprisal_nats"),),
        seeds=(1,) if size == "smoke" else (1, 2, 3),
        reference=conditions[0].name,
    )


def table2_converged(size: Size = "full") -> Sweep:
    """Table 2: surprisal, random routing at its rate, each network alone; a learned gate, a plain network."""
    about = "Table 2 at the paper's sizes on 5.3 hours of Mini-LibriSpeech, until validation is not better."
    conditions = (_surprisal(), Condition(f"random_p{MU:g}", {"controller": Random(p_big=MU)}))
    learned = Condition("learned", {"controller": Learned()})
    return _sweep("table2_converged", size, about, _base(size), (*conditions, *ALWAYS, learned), (1, 2, 3))


def model3_converged(size: Size = "full") -> Sweep:
    """Table 7: surprisal, random routing of its cost, each network alone; a plain network.

    What surprisal pays for the regressor buys random routing a higher rate.
    """
    small: Mapping[str, object] = {"width": 64, "dropout": 0.1} if size == "smoke" else {}
    config = _base(size).with_value("network", Convolutional.model_validate({"kind": "model3"} | dict(small)))
    parts = part_macs(config, NUM_LABELS)
    rate = round(MU + parts.regressor / (parts.big - parts.small), 4)
    about = "Table 7 (model 3) at the paper's sizes on 5.3 hours of Mini-LibriSpeech, until validation is not better."
    random = Condition("random", {"controller": Random(p_big=rate)}, computed_from=COSTS)
    return _sweep("model3_converged", size, about, config, (_surprisal(), random, *ALWAYS), (1, 2, 3, 4, 5))


def _sweep(
    name: str, size: Size, about: str, config: AsrConfig, conditions: tuple[Condition, ...], seeds: tuple[int, ...]
) -> Sweep:
    """With a plain network of the cost of surprisal, the first condition; random routing is the reference."""
    every = (*conditions, plain(config, conditions[0], NUM_LABELS))
    sweep = speech_sweep(name, size, about, config, every, reference=conditions[1].name, seeds=seeds)
    return replace(sweep, prerequisites=(AUTOREGRESSIVE_OF_EACH_SEED,))


def _surprisal() -> Condition:
    """Surprisal routing, whose tests share a checkpoint, so that training ends by one metric, as elsewhere."""
    deterministic = Evaluation(name="deterministic", routing="deterministic", checkpoint_of=Evaluation().name)
    return Condition("surprisal", {"controller": Surprisal(mu=MU), "evaluations": (Evaluation(), deterministic)})


def _base(size: Size) -> AsrConfig:
    """Tested on LibriSpeech's `test-clean`, or what there is of it; in the small size a minute of speech."""
    config = AsrConfig(data=LibriSpeech(), ar=AR, training=RECOGNISER)
    if size == "smoke":
        few = laptop(MINI_LIBRISPEECH.excerpt, num_epochs=2, num_pretraining_epochs=2, keep_every=4)
        config = with_all(few, {"ar.training.patience": 1, "training.patience": 1})
    return config.with_value("controller", Surprisal(mu=MU))


SWEEPS: Final[Mapping[str, SweepFunction]] = {
    "ar_converged": ar_converged,
    "table2_converged": table2_converged,
    "model3_converged": model3_converged,
}
