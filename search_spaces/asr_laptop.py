"""Sweeps of speech recognisers at a laptop's sizes: minutes a replicate on one thread."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from search_spaces import asr_controls
from search_spaces.asr_conditions import (
    ALWAYS,
    AUTOREGRESSIVE,
    AUTOREGRESSIVE_OF_EACH_SEED,
    LEARNED,
    NUM_LABELS,
    VALIDATED,
    equal_cost,
    plain,
    random_routing,
    speech_sweep,
)
from search_spaces.asr_sizes import laptop
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Search, Sweep, SweepFunction
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Convolutional,
    Evaluation,
    Learned,
    Random,
    Surprisal,
)
from trainables.asr.data.config import LibriSpeech

HALF_AN_HOUR: Final = 143
"""So many of the 1,519 utterances of train-clean-5, which last 5.31 hours."""
NEW_SEEDS: Final = tuple(range(6, 21))
"""The seeds of `confirm_model3`: `laptop_model3` has those from 1 to 5."""

CLAIMS: Final = str(Path(__file__).with_name("published") / "laptop.toml")
CONTROL_CLAIMS: Final = str(Path(__file__).with_name("published") / "controls.toml")


def control(name: str, kind: asr_controls.Kind, size: Size = "full") -> Sweep:
    """A corpus on which routing by surprisal must win (positive), or cannot (negative)."""
    conditions = (Condition("surprisal"), *asr_controls.CONDITIONS[kind], *ALWAYS)
    answer = "must win: only frames that need the big network surprise" if kind == "positive" else "cannot win"
    about = f"A control with a known answer: routing by surprisal {answer}; made-up sounds."
    sweep = speech_sweep(name, size, about, asr_controls.base(kind, size), conditions, reference="random")
    return replace(sweep, claims=CONTROL_CLAIMS)


def demo(size: Size = "full") -> Sweep:
    """The positive control with few seeds: minutes on a laptop."""
    sweep = control("demo", "positive", size)
    about = "A control with a known answer: routing by surprisal must win; made-up sounds, few seeds."
    conditions = tuple(condition for condition in sweep.conditions if condition.name != "random_p0.25")
    return replace(sweep, description=about, conditions=conditions, seeds=(1, 2) if size == "smoke" else (1, 2, 3))


def laptop_librispeech(size: Size = "full") -> Sweep:
    """Small nets on what there is of train-clean-5, trained until CTC has left its blank plateau.

    An hour of it takes minutes a run, all 5.3 hours six times as long.
    """
    excerpt = "120 utterances of LibriSpeech, 1 seed" if size == "smoke" else "LibriSpeech's train-clean-5, 3 seeds"
    config = _laptop_librispeech(size)
    conditions = (*ALWAYS, Condition("surprisal"), *random_routing(config))
    about = f"Surprisal, random and fixed routing on {excerpt}; small networks."
    return speech_sweep(
        "laptop_librispeech", size, about, config, conditions, reference="always_small", seeds=(1, 2, 3)
    )


def _laptop_librispeech(size: Size) -> AsrConfig:
    if size == "smoke":
        few = LibriSpeech(num_train_utterances=120, num_validation_utterances=12, num_test_utterances=24)
        return laptop(few, num_epochs=18, num_pretraining_epochs=6, keep_every=4)
    config = laptop(LibriSpeech(), num_epochs=40, num_pretraining_epochs=6, keep_every=4)
    # with a faster decay some seeds never leave the plateau
    return config.with_value("training.decay", 0.98)


def equal_cost_laptop(size: Size = "full") -> Sweep:
    """Routing against plain networks of equal cost; small nets on what there is of train-clean-5."""
    excerpt = "120 utterances of LibriSpeech" if size == "smoke" else "LibriSpeech's train-clean-5"
    return equal_cost("equal_cost_laptop", size, f"{excerpt}, small networks", _laptop_librispeech(size), mu=0.5)


def _mini_librispeech(size: Size) -> AsrConfig:
    """5.3 hours of speech in 20 epochs; small, a minute of it in 2."""
    few = LibriSpeech(num_train_utterances=40, num_validation_utterances=6, num_test_utterances=8)
    num_epochs = 2 if size == "smoke" else 20
    config = laptop(few if size == "smoke" else LibriSpeech(), num_epochs, num_pretraining_epochs=4, keep_every=4)
    return config.with_value("training.batch_size", 8)


def _around(width: int) -> dict[str, object]:
    """Units of the layers before and behind the small and the big network."""
    return {"network.pre_hidden_size": width, "network.post_hidden_size": width}


def laptop_size(size: Size = "full") -> Sweep:
    """The small and the big network alone, at three widths of the layers around them and two of the big network.

    Finds a size for a laptop at which the big network is worth its cost; without that no routing can be.
    """
    networks = {"small": {"controller": AlwaysSmall()}} | {
        f"big={width}": {"controller": AlwaysBig(), "network.big_hidden_size": width} for width in (512, 2048)
    }
    conditions = [
        Condition(f"around={around},{name}", {**_around(around), **values})
        for around in (16, 32, 64)
        for name, values in networks.items()
    ]
    about = "Small and big network alone, three widths of the layers around them; a laptop's sizes, Mini-LibriSpeech."
    return speech_sweep(
        "laptop_size", size, about, _mini_librispeech(size), conditions, reference="around=32,small", seeds=(1, 2)
    )


def _wide_big(size: Size) -> AsrConfig:
    """The size of `laptop_size` at which one seed found the big network worth its cost."""
    return with_all(_mini_librispeech(size), _around(16) | {"network.big_hidden_size": 2048})


def laptop_table2(size: Size = "full") -> Sweep:
    """Table 2 at the size which one seed of `laptop_size` favoured."""
    about = "Table 2 with small nets around a wide big one, 5.3 hours of Mini-LibriSpeech; plain nets of equal cost."
    return _all_controllers("laptop_table2", size, about, _wide_big(size))


def laptop_model3(size: Size = "full") -> Sweep:
    """The same with model 3 on a narrower autoregressive model; its small network is linear."""
    config = _mini_librispeech(size).with_value("network", Convolutional(kind="model3", width=512, dropout=0.1))
    about = "Table 7 (linear small network, nothing around), 5.3 hours of Mini-LibriSpeech; plain nets of equal cost."
    return _all_controllers("laptop_model3", size, about, config)


def confirm_model3(size: Size = "full") -> Sweep:
    """What `laptop_model3` showed of deterministic routing, asked of seeds that it does not have."""
    deterministic = Evaluation(name="deterministic", routing="deterministic")
    conditions = (
        Condition("surprisal", {"controller": Surprisal(mu=0.5), "evaluations": (Evaluation(), deterministic)}),
        Condition("random", {"controller": Random(p_big=0.5)}),
        *ALWAYS,
    )
    about = "Deterministic surprisal against the line small - random - big of model 3: 15 new seeds of laptop_model3."
    sweep = speech_sweep("confirm_model3", size, about, laptop_model3(size).base, conditions, reference="random")
    seeds = NEW_SEEDS[:1] if size == "smoke" else NEW_SEEDS
    return replace(sweep, seeds=seeds, prerequisites=(AUTOREGRESSIVE_OF_EACH_SEED,))


def _all_controllers(name: str, size: Size, about: str, config: AsrConfig) -> Sweep:
    """Each controller, plain networks of the cost of routing, and an autoregressive model of half an hour of speech.

    The ablation, deterministic routing and raised biases are tests of the same trained models.
    """
    surprisal, random = Surprisal(mu=0.5), Random(p_big=0.5)
    deterministic = Evaluation(name="deterministic", routing="deterministic")
    raised = (Evaluation(name=f"bias_{by}", bias_raise=by, checkpoint_of=Evaluation().name) for by in (1, 2, 3, 4))
    with_random, with_surprisal = (Evaluation(name=f"tested_{c.kind}", controller=c) for c in (random, surprisal))
    routed = (
        Condition(
            "surprisal",
            {"controller": surprisal, "evaluations": (Evaluation(), deterministic, with_random, *raised)},
        ),
        Condition("random", {"controller": random, "evaluations": (Evaluation(), with_surprisal)}),
    )
    rivals = (plain(config, controller, NUM_LABELS) for controller in routed)
    less = LibriSpeech(num_train_utterances=20 if size == "smoke" else HALF_AN_HOUR)
    corpus = [Condition(f"{c.kind},ar=half_an_hour", {"controller": c, "ar.data": less}) for c in (surprisal, random)]
    conditions = (*routed, *ALWAYS, *rivals, *LEARNED, *corpus)
    return replace(speech_sweep(name, size, about, config, conditions, "random"), claims=CLAIMS)


def laptop_search_learned(size: Size = "full") -> Sweep:
    """Optuna over the learned controller's weight and target, dropout, width and learning rate, at that size."""
    is_smoke = size == "smoke"
    space: dict[str, Distribution] = {
        "controller.weight": Real(1.0, 1e4, log=True),
        "controller.target": Real(0.1, 0.9),
        "network.dropout": Real(0.0, 0.3),
        "network.big_hidden_size": Choice((128, 256) if is_smoke else (512, 1024, 2048)),
        "training.learning_rate": Real(5e-4, 5e-3, log=True),
    }
    return Sweep(
        name=sized_name("asr.laptop_search_learned", size),
        description="Optuna, pruned: the learned controller and what is around it; small nets on Mini-LibriSpeech.",
        trainable="trainables.asr.train",
        base=_wide_big(size).with_value("controller", Learned()),
        search=Search(space, num_trials=3 if is_smoke else 20, pruned=True),
        objectives=VALIDATED,
        seeds=(1, 2),
        prerequisites=(AUTOREGRESSIVE,),
    )


SWEEPS: Final[Mapping[str, SweepFunction]] = {
    "demo": demo,
    "control_positive": partial(control, "control_positive", "positive"),
    "control_negative": partial(control, "control_negative", "negative"),
    "laptop_librispeech": laptop_librispeech,
    "equal_cost_laptop": equal_cost_laptop,
    "laptop_size": laptop_size,
    "laptop_table2": laptop_table2,
    "laptop_model3": laptop_model3,
    "confirm_model3": confirm_model3,
    "laptop_search_learned": laptop_search_learned,
}
