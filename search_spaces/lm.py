"""Sweeps of recoding language models: the studies of Ulmer 2019, and some more.

All are on WikiText-2 (below PONDERAY_DATA) at the thesis's sizes, unless another text is set; `laptop` is smaller.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from search_spaces import lm_gated, lm_laptop
from search_spaces.distributions import Distribution, Exponential, Integer, Real
from search_spaces.lm_conditions import BASELINE, RECODERS, VALIDATED, lm_sweep, recoded
from search_spaces.lm_equal_cost import equal_cost
from search_spaces.lm_sizes import (
    DECODER_STD,
    DROPOUT,
    ENSEMBLE,
    EQ44,
    MC_DROPOUT,
    SURPRISAL,
    VARIATIONAL,
    WEIGHT_DECAY,
    base,
)
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Prerequisite, Search, Sweep, SweepFunction
from trainables.config import Config
from trainables.lm.config import (
    AnchoredEnsemble,
    Evaluation,
    McDropout,
    Recoder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.step_config import FixedStep, LearnedStep, LipschitzStep, PredictedStep

BASELINE_WEIGHTS: Final = Prerequisite("baseline", "trainables.lm.train", "baseline", each_seed=True)
"""A baseline of each seed, which the trained recoders of that seed are tested on."""

STEP_SIZES: Final = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 5.0, 10.0, 25.0)
NUM_SAMPLES: Final = (1, 5, 10, 25, 50)
RATES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
UNCERTAINTIES: Final[Mapping[str, McDropout | AnchoredEnsemble | Variational]] = {
    "mc_dropout,units": McDropout(num_samples=10),
    "mc_dropout,weights": McDropout(num_samples=10, masks="weights"),
    "mc_dropout,printed": McDropout(num_samples=10, masks="weights", scaling="none"),
    "mc_dropout,moments": McDropout(estimator="moments"),
    "ensemble,corrected": AnchoredEnsemble(num_members=5),
    "ensemble,own_loss": AnchoredEnsemble(num_members=5, loss="own_loss"),
    "ensemble,shared_anchor": AnchoredEnsemble(num_members=5, anchors="shared"),
    "ensemble,printed_pull": AnchoredEnsemble(num_members=5, penalty="norm"),
    "ensemble,released": AnchoredEnsemble(
        num_members=5, entropy="batch", loss="mean_logits", anchors="shared", penalty="norm"
    ),
    "variational": Variational(),
}
"""Signals of uncertainty: corrected, as Equations 4.7 and 3.37 are printed, and as released."""

OF_SIGNALS: Final = {"eq44": EQ44, "mc_dropout": Recoder(signal=McDropout(num_samples=10), step=FixedStep(size=0.1))}
"""The recoders of figures 6.2 and 6.3; in the text the step of the second is .1, in the caption 5."""


def step_size(size: Size = "full") -> Sweep:
    """Table 5.1: eight fixed step sizes for each error signal."""
    steps = STEP_SIZES[1::4] if size == "smoke" else STEP_SIZES
    conditions = [
        Condition(f"{name},step={step:g}", recoded(recoder.with_value("step.size", step)))
        for name, recoder in RECODERS.items()
        for step in steps
    ]
    return lm_sweep("step_size", "Table 5.1: error signals x fixed step sizes.", (BASELINE, *conditions), size)


def samples(size: Size = "full") -> Sweep:
    """Table 5.2: how many samples of MC dropout, or members of an ensemble; and moments in place of samples."""
    counts = NUM_SAMPLES[:2] if size == "smoke" else NUM_SAMPLES
    conditions = [
        Condition(f"{name},K={count}", recoded(RECODERS[name].with_value(f"signal.{path}", count)))
        for name, path in (("mc_dropout", "num_samples"), ("ensemble", "num_members"))
        for count in counts
    ]
    moments = Condition("mc_dropout,moments", recoded(MC_DROPOUT.with_value("signal.estimator", "moments")))
    about = "Table 5.2: samples of MC dropout and members of ensembles; moments beside."
    return lm_sweep("samples", about, (BASELINE, moments, *conditions), size)


def mc_dropout_rate(size: Size = "full") -> Sweep:
    """Figure 5.4: the rate of MC dropout."""
    rates = RATES[::3] if size == "smoke" else RATES
    conditions = (Condition(f"rate={rate}", recoded(MC_DROPOUT.with_value("signal.rate", rate))) for rate in rates)
    return lm_sweep("mc_dropout_rate", "Fig. 5.4: rates of MC dropout.", (BASELINE, *conditions), size)


def dynamic_step(size: Size = "full") -> Sweep:
    """Figure 5.5: step sizes fixed, learned, predicted, or bounded by the gradient's Lipschitz constant."""
    conditions = [
        Condition(f"{name},{kind}", recoded(recoder.model_copy(update={"step": step})))
        for name, recoder in RECODERS.items()
        for kind, step in _steps(recoder).items()
    ]
    about = "Fig. 5.5: fixed, learned, predicted and Lipschitz-bounded step sizes."
    return lm_sweep("dynamic_step", about, (BASELINE, *conditions), size)


def ablation(size: Size = "full") -> Sweep:
    """Figure 5.6: tested without the recoder it was trained with, and the baseline with recoders it was not.

    A fixed step size has nothing to learn: every replicate of the baseline is tested with it. Step sizes that are
    learnt or predicted are those of a trained model, as in the thesis: each of its replicates is tested on the weights
    of the baseline of its own seed (`added`), beside that baseline as it is (`baseline`).
    """
    added, trained = [Evaluation()], []
    tests = (Evaluation(), Evaluation(name="without", recoder="none"))
    on_baseline = (
        Evaluation(name="baseline", recoder="none", weights="baseline"),
        Evaluation(name="added", weights="baseline"),
    )
    for name, recoder in RECODERS.items():
        added.append(Evaluation(name=f"{name}_fixed", recoder=recoder))
        for kind in ("fixed", "learned", "predicted"):
            evaluations = tests if kind == "fixed" else (*tests, *on_baseline)
            equipped = recoder.model_copy(update={"step": _steps(recoder)[kind]})
            values, needed = recoded(equipped) | {"evaluations": evaluations}, () if kind == "fixed" else ("baseline",)
            trained.append(Condition(f"{name},{kind}", values, prerequisites=needed))
    if size == "smoke":
        added, trained = added[::2], [trained[i] for i in (0, 4, 6, 11)]
    baseline = Condition("baseline", {"recoder": None, "evaluations": tuple(added)}, prerequisites=())
    about = "Fig. 5.6: tested without the recoder trained with; the baseline tested with each."
    return lm_sweep("ablation", about, (baseline, *trained), size, prerequisites=(BASELINE_WEIGHTS,))


def confounds(size: Size = "full") -> Sweep:
    """What else differs between the released models: decoder's start, weight decay and dropout, one by one and all."""
    decoder: dict[str, Any] = {"decoder_std": DECODER_STD}
    decay: dict[str, Any] = {"training.weight_decay": WEIGHT_DECAY}
    rates: dict[str, dict[str, Any]] = {name: {"dropout.rate": rate} for name, rate in DROPOUT.items()}
    mc_dropout = decoder | decay | rates["others"]
    of_prior = ENSEMBLE.with_value("signal.prior_variance", DECODER_STD**2)
    conditions = (
        Condition("baseline", rates["baseline"]),
        Condition("dropout_of_surprisal", rates["surprisal"]),
        Condition("dropout_of_others", rates["others"]),
        Condition("decoder_start", rates["baseline"] | decoder),
        Condition("weight_decay", rates["baseline"] | decay),
        Condition("as_mc_dropout_without", mc_dropout),
        Condition("as_ensemble_without", decoder | rates["others"]),
        Condition("no_dropout_between_layers", rates["baseline"] | {"dropout.between_layers": False}),
        Condition("surprisal", rates["surprisal"] | {"recoder": SURPRISAL}),
        Condition("mc_dropout", mc_dropout | {"recoder": MC_DROPOUT}),
        Condition("mc_dropout_as_baseline", rates["baseline"] | {"recoder": MC_DROPOUT}),
        Condition("ensemble", rates["others"] | {"recoder": of_prior}),
        Condition("ensemble_as_baseline", rates["baseline"] | {"recoder": ENSEMBLE}),
    )
    about = "The released models' other differences, each without the recoder."
    return lm_sweep("confounds", about, conditions, size)


def signals(size: Size = "full") -> Sweep:
    """Variants of each error signal side by side: as in the thesis, as released, and corrected."""
    recoders: dict[str, Recoder] = {}
    variants: tuple[Literal["nll", "eq44", "sigmoid"], ...] = ("nll", "eq44", "sigmoid")
    targets: tuple[Literal["gold", "argmax"], ...] = ("gold", "argmax")
    for variant in variants:
        for target in targets:
            step = SURPRISAL.step if variant == "nll" else EQ44.step
            signal = Surprisal(variant=variant, target=target)
            recoders[f"surprisal,{variant},{target}"] = Recoder(signal=signal, step=step)
    for name, uncertainty in UNCERTAINTIES.items():
        recoders[name] = Recoder(signal=uncertainty, step=FixedStep(size=0.001))
    conditions = [Condition(name, recoded(recoder)) for name, recoder in recoders.items()]
    return lm_sweep("signals", "Variants of each error signal.", (BASELINE, *conditions), size)


def error_signal(size: Size = "full") -> Sweep:
    """Figures 6.2, 6.3 and B.6: delta where it recodes, and where it is measured alone, in training and in testing.

    What is measured takes steps of size 0, so that the model is as one without a recoder: of eq44 the baseline, of MC
    dropout a model with the weight decay of its recoded one. Both are tested as they were trained, and with delta
    measured alone.
    """
    recoders = {}
    for name, recoder in OF_SIGNALS.items():
        alone = recoder.model_copy(update={"step": FixedStep(size=0.0)})
        tests = (Evaluation(), Evaluation(name="measured", recoder=alone))
        recoders[f"{name},measured"] = recoded(alone)
        recoders[f"{name},recoded"] = recoded(recoder) | {"evaluations": tests}
    about = "Figs. 6.2, 6.3, B.6: delta with recoding, and measured alone."
    conditions = tuple(Condition(name, values) for name, values in recoders.items())
    return lm_sweep("error_signal", about, (BASELINE, *conditions), size)


def weak_supervision(size: Size = "full") -> Sweep:
    """Recoding by a probe that is told the verb's number, in `ponderay analyse ... agreement`; text has no labels."""
    evaluations = [Evaluation()]
    for layer in (1, 2):
        for step in (1.0,) if size == "smoke" else (0.1, 1.0, 10.0):
            recoder = Recoder(signal=WeakSupervision(layer=layer), step=FixedStep(size=step))
            evaluations.append(Evaluation(name=f"layer_{layer}_step_{step:g}".replace(".", "_"), recoder=recoder))
    baseline = Condition("baseline", {"recoder": None, "evaluations": tuple(evaluations)})
    return lm_sweep("weak_supervision", "Probes on two layers of the baseline, for agreement.", (baseline,), size)


def search_pareto(size: Size = "full") -> Sweep:
    """Optuna over MC dropout's K, rate and step size and the model's width: perplexity against cost per token."""
    is_smoke = size == "smoke"
    space: dict[str, Distribution] = {
        "recoder.signal.num_samples": Integer(1, 3) if is_smoke else Integer(1, 50, log=True),
        "recoder.signal.rate": Real(0.1, 0.6),
        "recoder.step.size": Real(1e-4, 1.0, log=True),
        "hidden_size": Integer(8, 24) if is_smoke else Integer(200, 800, log=True),
    }
    return Sweep(
        name=sized_name("lm.search_pareto", size),
        description="Optuna: MC dropout's K, rate, step size, and width; perplexity against cost.",
        trainable="trainables.lm.train",
        base=base("thesis", size).with_value("recoder", MC_DROPOUT).with_value("training.weight_decay", WEIGHT_DECAY),
        search=Search(space, num_trials=3 if is_smoke else 60),
        objectives=VALIDATED,
        seeds=(1,) if is_smoke else (1, 2, 3),
    )


def _steps(recoder: Recoder) -> dict[str, Config]:
    """Ways to find a step size; a learned one starts at the fixed one."""
    fixed = recoder.step.size if isinstance(recoder.step, FixedStep) else 1.0
    return {
        "fixed": FixedStep(size=fixed),
        "learned": LearnedStep(start=fixed),
        "learned_released": LearnedStep(start="released"),
        "predicted": PredictedStep(),
        "lipschitz": LipschitzStep(),
    }


def _search(name: str, title: str, recoder: Recoder, space: Mapping[str, Distribution], size: Size) -> Sweep:
    """Four epochs, one seed, validation perplexity."""
    is_smoke = size == "smoke"
    num_trials, epochs, length = (3, 1, "1 epoch") if is_smoke else (64, 4, "4 epochs")
    config = base("thesis", size).with_value("recoder", recoder).with_value("training.num_epochs", epochs)
    return Sweep(
        name=sized_name(f"lm.{name}", size),
        description=f"Appendix B.3: random search for {title}, {num_trials} samples, {length}.",
        trainable="trainables.lm.train",
        base=config,
        search=Search(space, num_trials=num_trials, sampler="random"),
        objectives=VALIDATED,
        seeds=(1,),
    )


STEP: Final[Mapping[str, Distribution]] = {"recoder.step.size": Exponential(0.5, 75.0)}
RATE: Final[Mapping[str, Distribution]] = {"dropout.rate": Real(0.1, 0.6)}
OF_DROPOUT: Final[Mapping[str, Distribution]] = {
    "recoder.signal.num_samples": Integer(2, 50),
    "recoder.signal.rate": Real(0.1, 0.6),
    "training.weight_decay": Exponential(1e-4, 1e-2),
    "decoder_std": Real(math.sqrt(0.1), math.sqrt(0.4)),
}

SEARCHES: Final[Mapping[str, tuple[str, Recoder, Mapping[str, Distribution]]]] = {
    "search": ("surprisal as printed (equation 4.4)", EQ44, {**STEP, **RATE}),
    "search_mc_dropout": ("MC dropout", MC_DROPOUT, {**STEP, **RATE, **OF_DROPOUT}),
    "search_variational": ("variational dropout", VARIATIONAL, {**STEP, **OF_DROPOUT}),
    "search_ensemble": (
        "anchored ensembles",
        ENSEMBLE,
        {
            **STEP,
            **RATE,
            "recoder.signal.num_members": Integer(2, 50),
            "recoder.signal.prior_variance": Real(0.1, 0.4),
            "recoder.signal.pull": Exponential(1e-4, 1e-2),
        },
    ),
}
"""Appendix B.3's random searches: the title, the recoder, and the space (tables B.1b and B.2a).

The prior scale is a variance. Of an ensemble it is drawn as such; of dropout it is that of the decoder's start, whose
standard deviation is drawn between the roots of the ends, evenly, where the table draws the variance evenly. An
ensemble's pull is drawn as the table draws the weight decay of dropout, though it is divided by the number of tokens
and so moves nothing. Variational dropout has one rate for all connections. Table B.1b also names the learning rate of
surprisal, for which table B.2a has no range.
"""

FIRST: Final = "laptop"
"""What to begin with."""

SWEEPS: Final[Mapping[str, SweepFunction]] = {
    "step_size": step_size,
    "samples": samples,
    "mc_dropout_rate": mc_dropout_rate,
    "dynamic_step": dynamic_step,
    "ablation": ablation,
    "confounds": confounds,
    "signals": signals,
    "error_signal": error_signal,
    "weak_supervision": weak_supervision,
    "search_pareto": search_pareto,
    **lm_laptop.SWEEPS,
    **lm_gated.SWEEPS,
    "equal_cost": equal_cost,
    **{name: partial(_search, name, *searched) for name, searched in SEARCHES.items()},
}
