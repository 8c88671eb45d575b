"""Sweeps of surprisal-routed speech recognisers (Lugosch et al. 2020, arXiv:2006.01659)."""

from search_spaces.distributions import Real
from search_spaces.sweep import Condition, Objective, Prerequisite, Resources, Search, Sweep
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Data,
    Features,
    LibriSpeech,
    Network,
    Optimisation,
    Pretraining,
    Random,
    Surprisal,
    Synthetic,
)

AUTOREGRESSIVE = Prerequisite(name="ar", trainable="trainables.asr.pretrain", config_path="pretraining")
OBJECTIVES = (Objective("per"), Objective("macs_per_frame"))


def demo(smoke: bool = False) -> Sweep:
    """Surprisal against random and fixed routing on synthetic speech, in minutes on a laptop."""
    data = (
        Synthetic(num_train_utterances=24, num_validation_utterances=6, num_test_utterances=6) if smoke else Synthetic()
    )
    base = _laptop(data, num_epochs=2 if smoke else 10, num_pretraining_epochs=1 if smoke else 6)
    return Sweep(
        name="asr.demo" + ".smoke" * smoke,
        description="Surprisal, random and fixed routing on synthetic speech; laptop sizes, 2 seeds.",
        trainable="trainables.asr.train",
        base=base,
        conditions=_routing_conditions(base, always_big=Resources(num_workers=1)),
        objectives=OBJECTIVES,
        seeds=(1, 2),
        reference="random",
        prerequisites=(AUTOREGRESSIVE,),
    )


def mini_librispeech(smoke: bool = False) -> Sweep:
    """Surprisal against random and fixed routing on a LibriSpeech-layout folder, at the paper's sizes."""
    base = _small_libri_speech() if smoke else AsrConfig()
    return Sweep(
        name="asr.mini_librispeech" + ".smoke" * smoke,
        description="Surprisal, random and fixed routing on Mini-LibriSpeech at the paper's sizes; 5 seeds.",
        trainable="trainables.asr.train",
        base=base,
        conditions=_routing_conditions(base),
        objectives=OBJECTIVES,
        seeds=(1,) if smoke else (1, 2, 3, 4, 5),
        reference="random",
        prerequisites=(AUTOREGRESSIVE,),
    )


def mini_librispeech_search(smoke: bool = False) -> Sweep:
    """Optuna over learning rate, dropout and mu of the surprisal model; error against cost."""
    space = {
        "training.learning_rate": Real(1e-4, 1e-2, log=True),
        "network.dropout": Real(0.0, 0.6),
        "controller.mu": Real(0.1, 0.9),
    }
    return Sweep(
        name="asr.mini_librispeech_search" + ".smoke" * smoke,
        description="Optuna over learning rate, dropout and mu on Mini-LibriSpeech; 3 seeds per setting.",
        trainable="trainables.asr.train",
        base=_small_libri_speech(num_epochs=2) if smoke else AsrConfig(),
        search=Search(space, num_trials=3 if smoke else 40),
        objectives=OBJECTIVES,
        seeds=(1, 2) if smoke else (1, 2, 3),
        prerequisites=(AUTOREGRESSIVE,),
    )


def _routing_conditions(base: AsrConfig, always_big: Resources | None = None) -> tuple[Condition, ...]:
    """The four controllers, with random at its usual half and at the surprisal controller's own mean rate."""
    mu = base.controller.mu if isinstance(base.controller, Surprisal) else 0.5
    matched = (Condition(f"random_p{mu:g}", {"controller": Random(p_big=mu)}),) if mu != Random().p_big else ()
    return (
        Condition("surprisal"),
        Condition("random", {"controller": Random()}),
        *matched,
        Condition("always_small", {"controller": AlwaysSmall()}),
        Condition("always_big", {"controller": AlwaysBig()}, always_big),
    )


def _laptop(data: Data, num_epochs: int, num_pretraining_epochs: int, keep_every: int = 2) -> AsrConfig:
    """About a fortieth of the paper's multiply-accumulates, and learning rates to match."""
    pretraining = Optimisation(learning_rate=2e-3, decay=0.9, batch_size=4, num_epochs=num_pretraining_epochs)
    return AsrConfig(
        data=data,
        ar=Pretraining(
            features=Features(keep_every=keep_every),
            hidden_size=64,
            dropout=0.0,
            start="data_mean",
            training=pretraining,
        ),
        network=Network(pre_hidden_size=48, big_hidden_size=256, post_hidden_size=48, dropout=0.1),
        controller=Surprisal(mu=0.5),
        training=Optimisation(learning_rate=2e-3, decay=0.95, batch_size=4, num_epochs=num_epochs),
    )


def _small_libri_speech(num_epochs: int = 18) -> AsrConfig:
    """120 utterances in 40 ms frames: CTC leaves its blank plateau within minutes."""
    data = LibriSpeech(num_train_utterances=120, num_validation_utterances=12, num_test_utterances=24)
    return _laptop(data, num_epochs, num_pretraining_epochs=6, keep_every=4)
