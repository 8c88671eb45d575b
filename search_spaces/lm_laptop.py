"""Sweeps of recoding language models at a laptop's size: 500,000 words of WikiText-2, a small model."""

from collections.abc import Mapping
from typing import Final

from search_spaces.distributions import Distribution, Integer, Real
from search_spaces.lm_conditions import BASELINE, RECODERS, VALIDATED, lm_sweep, recoded
from search_spaces.lm_equal_cost import COSTS, macs_in_testing, widened
from search_spaces.lm_sizes import ENSEMBLE, EQ44, MC_DROPOUT, PRIOR_STD, SURPRISAL, WEIGHT_DECAY, base, brief
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Search, Sweep, SweepFunction
from trainables.lm.config import Evaluation, Recoder, Surprisal
from trainables.lm.step_config import PredictedStep


def laptop(size: Size = "full") -> Sweep:
    """Surprisal, corrected and as in the thesis, at two step sizes, on 500,000 words of WikiText-2."""
    about = "Surprisal (nll, eq44) at two step sizes on a part of WikiText-2; a small model."
    return lm_sweep(
        "laptop", about, (BASELINE, *_conditions(_surprisals())), size, base("laptop", size), seeds=(1, 2, 3)
    )


def signals_laptop(size: Size = "full") -> Sweep:
    """Error signals: surprisal as corrected and as printed, dropout, ensembles, a predicted step.

    With the model, text and epochs of `lm.equal_cost`, beside whose rivals its conditions may be read. `weight_decay`
    is the control of MC dropout: without a recoder, with the weight decay that comes with one of dropout.
    Those of the ensembles are `decoder_start`, without a recoder, whose one decoder starts from their prior, and
    `ensemble,K=1`, whose one decoder is trained by its whole loss and not by a fifth of it. Shared anchors are left
    out: with the thesis's pull they give the same model as own ones.
    """
    single, members = (ENSEMBLE.with_value("signal.num_members", number) for number in (1, 5))
    recoders = _surprisals() | {
        "surprisal,predicted": SURPRISAL.model_copy(update={"step": PredictedStep()}),
        "mc_dropout,K=5": MC_DROPOUT.with_value("signal.num_samples", 5),
        "mc_dropout,moments": MC_DROPOUT.with_value("signal.estimator", "moments"),
        "ensemble,K=1": single,
        "ensemble,K=5": members,
        "ensemble,K=5,own_loss": members.with_value("signal.loss", "own_loss"),
    }
    about = "Surprisal at two steps and predicted, MC dropout, ensembles, on a part of WikiText-2; a small model."
    decayed = Condition("weight_decay", {"recoder": None, "training.weight_decay": WEIGHT_DECAY})
    start = Condition("decoder_start", {"recoder": None, "decoder_std": PRIOR_STD})
    return lm_sweep("signals_laptop", about, (BASELINE, decayed, start, *_conditions(recoders)), size, brief(size))


def converged(size: Size = "full") -> Sweep:
    """Recoding, a wider model of its cost, and a control, each trained until validation is not better.

    The learning rate is halved after an epoch that is not, and training ends behind three of them. `inject` adds the
    decoder's row of the word to the state, as surprisal does, but does not take off the row that the model expects: is
    it the gradient of an error that helps, or the word itself?
    """
    is_smoke = size == "smoke"
    ends = {"training.num_epochs": 3 if is_smoke else 30, "training.patience": 1 if is_smoke else 3}
    config = with_all(base("laptop", size), ends)
    inject = SURPRISAL.model_copy(update={"signal": Surprisal(variant="inject")})
    wide = {**widened(config, macs_in_testing), "evaluations": (Evaluation(),)}
    conditions = (
        BASELINE,
        *_conditions({"surprisal": SURPRISAL, "eq44": EQ44, "inject": inject}),
        Condition("wide,testing", wide, computed_from=COSTS),
    )
    about = "Surprisal (nll, eq44), a control and a wider model, until validation is not better; part of WikiText-2."
    return lm_sweep("converged", about, conditions, size, config)


def search_pareto_laptop(size: Size = "full") -> Sweep:
    """Optuna over the step of surprisal recoding, dropout and width: validation perplexity against cost."""
    is_smoke = size == "smoke"
    space: dict[str, Distribution] = {
        "recoder.step.size": Real(0.1, 10.0, log=True),
        "dropout.rate": Real(0.0, 0.4),
        "hidden_size": Integer(8, 24) if is_smoke else Integer(50, 300, log=True),
        "training.learning_rate": Real(0.5, 30.0, log=True),
    }
    config = base("laptop", size)
    if not is_smoke:
        config = config.with_value("training.num_epochs", 2)
    return Sweep(
        name=sized_name("lm.search_pareto_laptop", size),
        description="Optuna, pruned: surprisal's step, dropout, width, learning rate; part of WikiText-2; small model.",
        trainable="trainables.lm.train",
        base=config.with_value("recoder", SURPRISAL),
        search=Search(space, num_trials=3 if is_smoke else 20, pruned=True),
        objectives=VALIDATED,
        seeds=(1, 2),
    )


def _surprisals() -> dict[str, Recoder]:
    """Surprisal as corrected and as printed, at two step sizes."""
    return {
        f"{name},step={step:g}": RECODERS[name].with_value("step.size", step)
        for name in ("surprisal", "eq44")
        for step in (1.0, 5.0)
    }


def _conditions(recoders: Mapping[str, Recoder]) -> list[Condition]:
    return [Condition(name, recoded(recoder)) for name, recoder in recoders.items()]


SWEEPS: Final[Mapping[str, SweepFunction]] = {
    "laptop": laptop,
    "signals_laptop": signals_laptop,
    "converged": converged,
    "search_pareto_laptop": search_pareto_laptop,
}
