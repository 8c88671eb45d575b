"""Sweeps of surprisal-routed speech recognisers: every study of Lugosch et al. 2020 (arXiv:2006.01659), and some more.

`NAME` and `NAME_mini_librispeech` are on Mini-LibriSpeech, `NAME_timit` on TIMIT; the three models of appendix A are on
TIMIT without an ending, as in the paper. All conditions that differ only in testing are evaluations of the same
training runs.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal

from search_spaces import asr_converged, asr_laptop
from search_spaces.asr_conditions import (
    ALWAYS,
    AUTOREGRESSIVE,
    LEARNED,
    VALIDATED,
    equal_cost,
    random_routing,
    speech_sweep,
    tested_as_trained,
)
from search_spaces.asr_sizes import LIBRISPEECH_960, MINI_LIBRISPEECH, TIMIT, Task, base
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Search, Sweep, SweepFunction
from trainables.asr.config import (
    Budget,
    CausalConvolution,
    Convolutional,
    Evaluation,
    Gru,
    Learned,
    MaskedSelfAttention,
    Random,
    Surprisal,
)
from trainables.asr.data.config import LibriSpeech

BIASES = 10
LARGEST_RAISE: Final = 4.0
"""The largest raise of the controller's bias in appendix B, from its fitted value in uniform steps.

The text does not say how many steps."""


def _table2(name: str, task: Task, size: Size) -> Sweep:
    """Table 2: surprisal, random, learned and fixed routing."""
    config = base(task, size)
    conditions = (
        Condition("surprisal"),
        *random_routing(config),
        *LEARNED,
        *ALWAYS,
    )
    about = f"Table 2 on {task.title}: surprisal, random, learned and fixed routing."
    return speech_sweep(name, size, about, config, conditions, reference="random")


def _appendix_a(name: str, task: Task, size: Size, kind: Literal["model1", "model2", "model3"]) -> Sweep:
    """Appendix A: Model 1 has a convolution before and no post-net, Model 2 also dropout, Model 3 nothing around."""
    small: dict[str, Any] = {"width": 64, "big_hidden_size": 256, "dropout": 0.1} if size == "smoke" else {}
    values = {"network": Convolutional(kind=kind, **small), "controller": Surprisal(mu=0.65)}
    return _ablation(name, task, size, inputs=("ar_features",), values=values)


def _ablation(
    name: str, task: Task, size: Size, inputs: tuple[str, ...], values: Mapping[str, Any] | None = None
) -> Sweep:
    """Tables 3 and 4: surprisal in training and in testing, AR features where there is a choice, on and off."""
    config = with_all(base(task, size), values or {})
    surprisal = config.controller
    config = config.with_value(
        "evaluations",
        (
            Evaluation(name="random", controller=Random()),
            Evaluation(name="surprisal", controller=surprisal),
            *(Evaluation(name="random_matched", controller=c.values["controller"]) for c in random_routing(config)[1:]),
        ),
    )
    controllers = {"surprisal": surprisal} | {c.name: c.values["controller"] for c in random_routing(config)}
    conditions = [
        Condition(f"{'ar' if read == 'ar_features' else 'no_ar'},{kind}", {"inputs": read, "controller": controller})
        for read in inputs
        for kind, controller in controllers.items()
    ]
    fixed = [tested_as_trained(controller) for controller in ALWAYS]
    about = f"{task.title}: surprisal in training (conditions) and in testing (evaluations), on and off"
    about += ", with AR features and without." if len(inputs) > 1 else f"; {config.network.kind} network."
    return speech_sweep(name, size, about, config, (*conditions, *fixed), reference="ar,random")


def _controller_bias(name: str, task: Task, size: Size) -> Sweep:
    """Appendix B: the controller's fitted bias raised by up to 4, in testing only, beside each network alone."""
    raised = tuple(
        Evaluation(
            name=f"bias_{step}",
            bias_raise=LARGEST_RAISE * step / (BIASES - 1),
            checkpoint_of="bias_0" if step else None,
        )
        for step in range(BIASES)
    )
    config = base(task, size).with_value("evaluations", raised)
    about = f"Appendix B on {task.title}: {BIASES} biases from the fitted b to b + 4, on the same trained models."
    alone = (tested_as_trained(controller) for controller in ALWAYS)
    return speech_sweep(name, size, about, config, (Condition("surprisal"), _matched_random(task), *alone))


def _deterministic(name: str, task: Task, size: Size) -> Sweep:
    """Appendix C: stochastic and deterministic routing, in training and in testing."""
    both = (Evaluation(), Evaluation(name="deterministic", routing="deterministic"))
    config = base(task, size).with_value("evaluations", both)
    conditions = (
        Condition("train_stochastic"),
        Condition("train_deterministic", {"training_routing": "deterministic"}),
    )
    about = f"Appendix C on {task.title}: stochastic or deterministic routing in training x in testing."
    with_control = (*conditions, _matched_random(task))
    return speech_sweep(name, size, about, config, with_control, reference="train_stochastic")


def _lambda_grid(name: str, task: Task, size: Size) -> Sweep:
    """Appendix D: the learned controller's lambda under each penalty."""
    published, ours = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5), (1.0, 10.0, 100.0, 1000.0, 10000.0)
    gates = [
        *(Learned(gate_input="pre_net", penalty="released", weight=weight) for weight in published),
        *(Learned(penalty="paper", weight=weight) for weight in published),
        *(Learned(weight=weight) for weight in ours),
    ]
    conditions = [Condition(f"{gate.penalty},lambda={gate.weight:g}", {"controller": gate}) for gate in gates]
    about = f"Appendix D on {task.title}: lambda of the learned controller under each of the three penalties."
    config = base(task, size)
    return speech_sweep(name, size, about, config, (*random_routing(config), *conditions), reference="random")


def _ar_corpus(name: str, task: Task, size: Size) -> Sweep:
    """The autoregressive model learnt from the task's own audio or from a larger corpus."""
    larger = LibriSpeech(num_train_utterances=120) if size == "smoke" else LIBRISPEECH_960
    conditions = [
        Condition(f"{corpus},{kind}", {"ar.data": data, "controller": controller})
        for corpus, data in (("own_audio", None), ("larger_corpus", larger))
        for kind, controller in (("surprisal", Surprisal(mu=task.mu)), ("random", Random(p_big=task.mu)))
    ]
    about = f"The autoregressive model of {task.title} learnt from the task's own audio or from a larger corpus."
    return speech_sweep(name, size, about, base(task, size), conditions, reference="own_audio,surprisal")


def _search(name: str, task: Task, size: Size, learned: Learned | None = None) -> Sweep:
    """Optuna over the network and the surprisal controller's targets, or the learned one's; error against cost."""
    is_smoke = size == "smoke"
    seeds = (1, 2) if is_smoke else (1, 2, 3)
    targets: dict[str, Distribution] = {"controller.mu": Real(0.1, 0.9), "controller.sigma2": Real(0.005, 0.08)}
    if learned:
        targets = {"controller.weight": Real(1.0, 1e4, log=True), "controller.target": Real(0.1, 0.9)}
    space = targets | {
        "network.dropout": Real(0.0, 0.6),
        "network.big_hidden_size": Choice((128, 256, 512) if is_smoke else (1024, 2048, 4096)),
        "training.learning_rate": Real(1e-4, 1e-2, log=True),
    }
    config = base(task, size)
    about = (
        f"Optuna on {task.title}: {', '.join(path.rpartition('.')[2] for path in space)}; {len(seeds)} seeds a setting."
    )
    return Sweep(
        name=sized_name(f"asr.{name}", size),
        description=about,
        trainable="trainables.asr.train",
        base=config.with_value("controller", learned) if learned else config,
        search=Search(space, num_trials=3 if is_smoke else 60),
        objectives=VALIDATED,
        seeds=seeds,
        prerequisites=(AUTOREGRESSIVE,),
    )


def _budget(name: str, task: Task, size: Size) -> Sweep:
    """Surprisal controllers fitted to budgets of multiply-accumulates."""
    budgets = (160e3, 170e3, 180e3) if size == "smoke" else (6.0e6, 6.3e6, 6.6e6, 6.9e6, 7.2e6)
    conditions = [
        Condition(f"budget_{macs:.3g}".replace("+", ""), {"controller": Budget(macs_per_frame=macs)})
        for macs in budgets
    ]
    about = f"{task.title}: surprisal routing fitted to a budget of multiply-accumulates per frame."
    return speech_sweep(
        name, size, about, base(task, size), (*conditions, _matched_random(task), *ALWAYS), "always_big"
    )


def _equal_cost_of(name: str, task: Task, size: Size) -> Sweep:
    """Routing against plain networks of equal cost, on a corpus of the paper."""
    return equal_cost(name, size, task.title, base(task, size), task.mu)


def ar_encoder(size: Size = "full") -> Sweep:
    """Recurrent, convolutional and attentive autoregressive models, on Mini-LibriSpeech."""
    encoders = {"gru": Gru(), "convolution": CausalConvolution(), "attention": MaskedSelfAttention()}
    mu = MINI_LIBRISPEECH.mu
    conditions = [
        Condition(f"{encoder},{routing}", {"ar.encoder": kind, "controller": controller})
        for encoder, kind in encoders.items()
        for routing, controller in (("surprisal", Surprisal(mu=mu)), (f"random_p{mu:g}", Random(p_big=mu)))
    ]
    about = "Mini-LibriSpeech: the autoregressive model's encoder: GRU, causal convolution, masked self-attention."
    return speech_sweep("ar_encoder", size, about, base(MINI_LIBRISPEECH, size), conditions, reference="gru,surprisal")


def joint_training(size: Size = "full") -> Sweep:
    """The autoregressive model frozen, or trained on with the recogniser, on Mini-LibriSpeech."""
    weights = (0.0, 1e-4, 1e-3, 1e-2)
    joint = [Condition(f"joint,ar_loss_weight={weight:g}", {"ar_loss_weight": weight}) for weight in weights]
    about = "Mini-LibriSpeech: the autoregressive model frozen or trained on; an open question of the paper."
    conditions = (Condition("frozen"), *joint, _matched_random(MINI_LIBRISPEECH))
    return speech_sweep("joint_training", size, about, base(MINI_LIBRISPEECH, size), conditions, reference="frozen")


def _matched_random(task: Task) -> Condition:
    """Random routing in training and testing at the rate that the task's surprisal controller is fitted to."""
    return tested_as_trained(Condition(f"random_p{task.mu:g}", {"controller": Random(p_big=task.mu)}))


Study = Callable[[str, Task, Size], Sweep]

APPENDIX_A: Final[Mapping[str, Study]] = {
    "model1": partial(_appendix_a, kind="model1"),
    "model2": partial(_appendix_a, kind="model2"),
    "model3": partial(_appendix_a, kind="model3"),
}
"""On TIMIT by name, as in the paper; on Mini-LibriSpeech as a variant."""

STUDIES: Final[Mapping[str, Study]] = {
    "controller_bias": _controller_bias,
    "deterministic": _deterministic,
    "lambda_grid": _lambda_grid,
    "ar_corpus": _ar_corpus,
    "search": _search,
    "search_learned": partial(_search, learned=Learned()),
    "budget": _budget,
    "equal_cost": _equal_cost_of,
}
"""On both corpora: `NAME` on Mini-LibriSpeech, `NAME_timit` on TIMIT."""

ON_MINI_LIBRISPEECH: Final[Mapping[str, Study]] = {
    **{f"{name}_mini_librispeech": study for name, study in APPENDIX_A.items()},
    **STUDIES,
    "table2_mini_librispeech": _table2,
    "ablation_mini_librispeech": partial(_ablation, inputs=("ar_features",)),
}
ON_TIMIT: Final[Mapping[str, Study]] = {
    **APPENDIX_A,
    **{f"{name}_timit": study for name, study in STUDIES.items()},
    "table2_timit": _table2,
    "ablation_timit": partial(_ablation, inputs=("ar_features", "frames")),
}
FIRST: Final = "demo"
"""What to begin with."""

SWEEPS: Final[Mapping[str, SweepFunction]] = {
    **asr_laptop.SWEEPS,
    **asr_converged.SWEEPS,
    "ar_encoder": ar_encoder,
    "joint_training": joint_training,
    **{name: partial(study, name, MINI_LIBRISPEECH) for name, study in ON_MINI_LIBRISPEECH.items()},
    **{name: partial(study, name, TIMIT) for name, study in ON_TIMIT.items()},
}
