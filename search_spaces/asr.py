"""Sweeps of surprisal-routed speech recognisers: every study of Lugosch et al. 2020 (arXiv:2006.01659), and some more.

`NAME` and `NAME_mini_librispeech` are on Mini-LibriSpeech, `NAME_timit` on TIMIT. All conditions that differ only in
testing are evaluations of the same training runs.
"""

from typing import Any

from search_spaces.asr_sizes import LIBRISPEECH_960, MINI_LIBRISPEECH, TIMIT, Task, base, laptop
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.sweep import Condition, Objective, Prerequisite, Resources, Search, Sweep
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
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
from trainables.asr.data.config import LibriSpeech, Synthetic

AUTOREGRESSIVE = Prerequisite("ar", "trainables.asr.pretrain", "pretraining", Resources(num_workers="all"))
OBJECTIVES = (Objective("per"), Objective("macs_per_frame"))
ALWAYS = (
    Condition("always_small", {"controller": AlwaysSmall()}),
    Condition("always_big", {"controller": AlwaysBig()}),
)
BIASES = 10


def demo(smoke: bool = False) -> Sweep:
    """Surprisal against random and fixed routing on synthetic speech, in minutes on a laptop."""
    few = Synthetic(num_train_utterances=24, num_validation_utterances=6, num_test_utterances=6)
    data = few if smoke else Synthetic()
    config = laptop(data, num_epochs=2 if smoke else 10, num_pretraining_epochs=1 if smoke else 6)
    always_small, always_big = ALWAYS
    one_worker = Condition(always_big.name, always_big.values, Resources(num_workers=1))
    conditions = (Condition("surprisal"), *_random(config), always_small, one_worker)
    return _sweep(
        "demo",
        smoke,
        "Surprisal, random and fixed routing on synthetic speech; laptop sizes, 2 seeds.",
        config,
        conditions,
        reference="random",
        seeds=(1, 2),
    )


def laptop_librispeech(smoke: bool = False) -> Sweep:
    """Small nets on an hour of LibriSpeech, trained until CTC has left its blank plateau: minutes a run."""
    few = LibriSpeech(num_train_utterances=120, num_validation_utterances=12, num_test_utterances=24)
    config = laptop(few if smoke else LibriSpeech(), 18 if smoke else 40, num_pretraining_epochs=6, keep_every=4)
    if not smoke:
        # with a faster decay some seeds never leave the plateau
        config = config.with_value("training.decay", 0.98)
    conditions = (*ALWAYS, Condition("surprisal"), *_random(config))
    about = "Surprisal, random and fixed routing; laptop sizes, an hour of LibriSpeech, 3 seeds."
    return _sweep("laptop_librispeech", smoke, about, config, conditions, reference="always_small", seeds=(1, 2, 3))


def table2_mini_librispeech(smoke: bool = False) -> Sweep:
    """Table 2: random, learned, surprisal and fixed routing on Mini-LibriSpeech."""
    return _table2("table2_mini_librispeech", MINI_LIBRISPEECH, smoke)


def table2_timit(smoke: bool = False) -> Sweep:
    """Table 2 on TIMIT."""
    return _table2("table2_timit", TIMIT, smoke)


def _table2(name: str, task: Task, smoke: bool) -> Sweep:
    config = base(task, smoke)
    conditions = (
        Condition("surprisal"),
        *_random(config),
        Condition("learned", {"controller": Learned()}),
        Condition("learned_paper", {"controller": Learned(penalty="paper", weight=1e-3)}),
        Condition("learned_released", {"controller": Learned(gate_input="pre_net", penalty="released", weight=1e-3)}),
        *ALWAYS,
    )
    about = f"Table 2 on {task.title}: surprisal, random, learned and fixed routing."
    return _sweep(name, smoke, about, config, conditions, reference="random")


def ablation_mini_librispeech(smoke: bool = False) -> Sweep:
    """Table 4: surprisal in training and in testing, on and off, on Mini-LibriSpeech."""
    return _ablation("ablation_mini_librispeech", MINI_LIBRISPEECH, smoke, inputs=("ar_features",))


def ablation_timit(smoke: bool = False) -> Sweep:
    """Table 3: AR features, surprisal in training and in testing, on and off, on TIMIT."""
    return _ablation("ablation_timit", TIMIT, smoke, inputs=("ar_features", "frames"))


def model1(smoke: bool = False) -> Sweep:
    """Appendix A's Model 1: convolution before, no post-net."""
    return _appendix_a("model1", MINI_LIBRISPEECH, smoke)


def model1_timit(smoke: bool = False) -> Sweep:
    """Model 1 on TIMIT."""
    return _appendix_a("model1", TIMIT, smoke)


def model2(smoke: bool = False) -> Sweep:
    """Appendix A's Model 2: Model 1 with dropout before the networks."""
    return _appendix_a("model2", MINI_LIBRISPEECH, smoke)


def model2_timit(smoke: bool = False) -> Sweep:
    """Model 2 on TIMIT."""
    return _appendix_a("model2", TIMIT, smoke)


def model3(smoke: bool = False) -> Sweep:
    """Appendix A's Model 3: small and big convolutions, nothing before or behind."""
    return _appendix_a("model3", MINI_LIBRISPEECH, smoke)


def model3_timit(smoke: bool = False) -> Sweep:
    """Model 3 on TIMIT."""
    return _appendix_a("model3", TIMIT, smoke)


def _appendix_a(kind: Any, task: Task, smoke: bool) -> Sweep:
    small: dict[str, Any] = {"width": 64, "big_hidden_size": 256, "dropout": 0.1} if smoke else {}
    values = {"network": Convolutional(kind=kind, **small), "controller": Surprisal(mu=0.65)}
    suffix = "_timit" if task is TIMIT else ""
    return _ablation(f"{kind}{suffix}", task, smoke, inputs=("ar_features",), values=values)


def _ablation(
    name: str, task: Task, smoke: bool, inputs: tuple[str, ...], values: dict[str, Any] | None = None
) -> Sweep:
    config = base(task, smoke)
    for path, value in (values or {}).items():
        config = config.with_value(path, value)
    surprisal = config.controller
    config = config.with_value(
        "evaluations",
        (
            Evaluation(name="random", controller=Random()),
            Evaluation(name="surprisal", controller=surprisal),
            *(Evaluation(name="random_matched", controller=c.values["controller"]) for c in _random(config)[1:]),
        ),
    )
    controllers = {"surprisal": surprisal} | {one.name: one.values["controller"] for one in _random(config)}
    conditions = [
        Condition(f"{'ar' if read == 'ar_features' else 'no_ar'},{kind}", {"inputs": read, "controller": controller})
        for read in inputs
        for kind, controller in controllers.items()
    ]
    fixed = [_tested_as_trained(one) for one in ALWAYS]
    about = f"{task.title}: surprisal in training (conditions) and in testing (evaluations), on and off"
    about += ", with AR features and without." if len(inputs) > 1 else f"; {config.network.kind} network."
    return _sweep(name, smoke, about, config, (*conditions, *fixed), reference="ar,random")


def controller_bias(smoke: bool = False) -> Sweep:
    """Appendix B: the controller's bias raised to +4 in ten steps, in testing only, on Mini-LibriSpeech."""
    return _controller_bias("controller_bias", MINI_LIBRISPEECH, smoke)


def controller_bias_timit(smoke: bool = False) -> Sweep:
    """Appendix B on TIMIT."""
    return _controller_bias("controller_bias_timit", TIMIT, smoke)


def _controller_bias(name: str, task: Task, smoke: bool) -> Sweep:
    raised = tuple(
        Evaluation(name=f"bias_{step}", bias_raise=step / (BIASES - 1), checkpoint_of="bias_0" if step else None)
        for step in range(BIASES)
    )
    config = base(task, smoke).with_value("evaluations", raised)
    about = f"Appendix B on {task.title}: the fitted bias raised to +4 in {BIASES} steps, on the same trained models."
    return _sweep(name, smoke, about, config, (Condition("surprisal"), _matched_random(task)))


def deterministic(smoke: bool = False) -> Sweep:
    """Appendix C: stochastic and deterministic routing, in training and in testing, on Mini-LibriSpeech."""
    return _deterministic("deterministic", MINI_LIBRISPEECH, smoke)


def deterministic_timit(smoke: bool = False) -> Sweep:
    """Appendix C on TIMIT."""
    return _deterministic("deterministic_timit", TIMIT, smoke)


def _deterministic(name: str, task: Task, smoke: bool) -> Sweep:
    both = (Evaluation(), Evaluation(name="deterministic", routing="deterministic"))
    config = base(task, smoke).with_value("evaluations", both)
    conditions = (
        Condition("train_stochastic"),
        Condition("train_deterministic", {"training_routing": "deterministic"}),
    )
    about = f"Appendix C on {task.title}: stochastic or deterministic routing in training x in testing."
    with_control = (*conditions, _matched_random(task))
    return _sweep(name, smoke, about, config, with_control, reference="train_stochastic")


def lambda_grid(smoke: bool = False) -> Sweep:
    """Appendix D: the learned controller's lambda under each penalty, on Mini-LibriSpeech."""
    return _lambda_grid("lambda_grid", MINI_LIBRISPEECH, smoke)


def lambda_grid_timit(smoke: bool = False) -> Sweep:
    """Appendix D on TIMIT."""
    return _lambda_grid("lambda_grid_timit", TIMIT, smoke)


def _lambda_grid(name: str, task: Task, smoke: bool) -> Sweep:
    published, ours = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5), (1.0, 10.0, 100.0, 1000.0, 10000.0)
    gates = [
        *(Learned(gate_input="pre_net", penalty="released", weight=weight) for weight in published),
        *(Learned(penalty="paper", weight=weight) for weight in published),
        *(Learned(weight=weight) for weight in ours),
    ]
    conditions = [Condition(f"{gate.penalty},lambda={gate.weight:g}", {"controller": gate}) for gate in gates]
    about = f"Appendix D on {task.title}: lambda of the learned controller under each of the three penalties."
    config = base(task, smoke)
    return _sweep(name, smoke, about, config, (*_random(config), *conditions), reference="random")


def ar_corpus(smoke: bool = False) -> Sweep:
    """The autoregressive model learnt from the task's own audio or from a larger corpus, for Mini-LibriSpeech."""
    return _ar_corpus("ar_corpus", MINI_LIBRISPEECH, smoke)


def ar_corpus_timit(smoke: bool = False) -> Sweep:
    """The same for TIMIT."""
    return _ar_corpus("ar_corpus_timit", TIMIT, smoke)


def _ar_corpus(name: str, task: Task, smoke: bool) -> Sweep:
    larger = LibriSpeech() if smoke else LIBRISPEECH_960
    conditions = [
        Condition(f"{corpus},{kind}", {"ar.data": data, "controller": controller})
        for corpus, data in (("own_audio", None), ("larger_corpus", larger))
        for kind, controller in (("surprisal", Surprisal(mu=task.mu)), ("random", Random(p_big=task.mu)))
    ]
    about = f"The autoregressive model of {task.title} learnt from the task's own audio or from a larger corpus."
    return _sweep(name, smoke, about, base(task, smoke), conditions, reference="own_audio,surprisal")


def search(smoke: bool = False) -> Sweep:
    """Optuna over the surprisal controller's targets and the network, on Mini-LibriSpeech; error against cost."""
    return _search("search", MINI_LIBRISPEECH, smoke)


def search_timit(smoke: bool = False) -> Sweep:
    """The same on TIMIT."""
    return _search("search_timit", TIMIT, smoke)


def search_learned(smoke: bool = False) -> Sweep:
    """Optuna over the learned controller's lambda and target and the network, on Mini-LibriSpeech."""
    return _search("search_learned", MINI_LIBRISPEECH, smoke, Learned())


def search_learned_timit(smoke: bool = False) -> Sweep:
    """The same on TIMIT."""
    return _search("search_learned_timit", TIMIT, smoke, Learned())


def _search(name: str, task: Task, smoke: bool, learned: Learned | None = None) -> Sweep:
    targets: dict[str, Distribution] = {"controller.mu": Real(0.1, 0.9), "controller.sigma2": Real(0.005, 0.08)}
    if learned:
        targets = {"controller.weight": Real(1.0, 1e4, log=True), "controller.target": Real(0.1, 0.9)}
    space = targets | {
        "network.dropout": Real(0.0, 0.6),
        "network.big_hidden_size": Choice((128, 256, 512) if smoke else (1024, 2048, 4096)),
        "training.learning_rate": Real(1e-4, 1e-2, log=True),
    }
    config = base(task, smoke)
    about = f"Optuna on {task.title}: {', '.join(path.rpartition('.')[2] for path in space)}; 3 seeds a setting."
    return Sweep(
        name=f"asr.{name}" + ".smoke" * smoke,
        description=about,
        trainable="trainables.asr.train",
        base=config.with_value("controller", learned) if learned else config,
        search=Search(space, num_trials=3 if smoke else 60),
        objectives=OBJECTIVES,
        seeds=(1, 2) if smoke else (1, 2, 3),
        prerequisites=(AUTOREGRESSIVE,),
    )


def budget(smoke: bool = False) -> Sweep:
    """Surprisal controllers fitted to budgets of multiply-accumulates, on Mini-LibriSpeech."""
    return _budget("budget", MINI_LIBRISPEECH, smoke)


def budget_timit(smoke: bool = False) -> Sweep:
    """The same on TIMIT."""
    return _budget("budget_timit", TIMIT, smoke)


def _budget(name: str, task: Task, smoke: bool) -> Sweep:
    budgets = (160e3, 170e3, 180e3) if smoke else (6.0e6, 6.3e6, 6.6e6, 6.9e6, 7.2e6)
    conditions = [
        Condition(f"budget_{macs:.3g}".replace("+", ""), {"controller": Budget(macs_per_frame=macs)})
        for macs in budgets
    ]
    about = f"{task.title}: surprisal routing fitted to a budget of multiply-accumulates per frame."
    return _sweep(name, smoke, about, base(task, smoke), (*conditions, _matched_random(task), *ALWAYS), "always_big")


def ar_encoder(smoke: bool = False) -> Sweep:
    """Recurrent, convolutional and attentive autoregressive models, on Mini-LibriSpeech."""
    encoders = {"gru": Gru(), "convolution": CausalConvolution(), "attention": MaskedSelfAttention()}
    mu = MINI_LIBRISPEECH.mu
    conditions = [
        Condition(f"{encoder},{routing}", {"ar.encoder": kind, "controller": controller})
        for encoder, kind in encoders.items()
        for routing, controller in (("surprisal", Surprisal(mu=mu)), (f"random_p{mu:g}", Random(p_big=mu)))
    ]
    about = "Mini-LibriSpeech: the autoregressive model's encoder: GRU, causal convolution, masked self-attention."
    return _sweep("ar_encoder", smoke, about, base(MINI_LIBRISPEECH, smoke), conditions, reference="gru,surprisal")


def joint_training(smoke: bool = False) -> Sweep:
    """The autoregressive model frozen, or trained on with the recogniser, on Mini-LibriSpeech."""
    weights = (0.0, 1e-4, 1e-3, 1e-2)
    joint = [Condition(f"joint,ar_loss_weight={weight:g}", {"ar_loss_weight": weight}) for weight in weights]
    about = "Mini-LibriSpeech: the autoregressive model frozen or trained on; an open question of the paper."
    conditions = (Condition("frozen"), *joint, _matched_random(MINI_LIBRISPEECH))
    return _sweep("joint_training", smoke, about, base(MINI_LIBRISPEECH, smoke), conditions, reference="frozen")


def _random(config: AsrConfig) -> tuple[Condition, ...]:
    """Random routing at the paper's half and at the surprisal controller's own mean rate, where that is another."""
    mu = config.controller.mu if isinstance(config.controller, Surprisal) else 0.5
    matched = (Condition(f"random_p{mu:g}", {"controller": Random(p_big=mu)}),) if mu != Random().p_big else ()
    return (Condition("random", {"controller": Random()}), *matched)


def _matched_random(task: Task) -> Condition:
    """Random routing in training and testing at the rate that the task's surprisal controller is fitted to."""
    return _tested_as_trained(Condition(f"random_p{task.mu:g}", {"controller": Random(p_big=task.mu)}))


def _tested_as_trained(condition: Condition) -> Condition:
    """The same with one evaluation, under its own controller."""
    return Condition(condition.name, {"evaluations": (Evaluation(),)} | dict(condition.values), condition.resources)


def _sweep(
    name: str,
    smoke: bool,
    description: str,
    config: AsrConfig,
    conditions: Any,
    reference: str | None = None,
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5),
) -> Sweep:
    return Sweep(
        name=f"asr.{name}" + ".smoke" * smoke,
        description=description,
        trainable="trainables.asr.train",
        base=config,
        conditions=tuple(conditions),
        objectives=OBJECTIVES,
        seeds=seeds if name == "demo" or not smoke else (1,),
        reference=reference,
        prerequisites=(AUTOREGRESSIVE,),
    )
