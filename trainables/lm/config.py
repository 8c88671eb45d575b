"""What can be set of a recoding language model (Ulmer 2019, "Recoding latent sentence representations")."""

import math
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from trainables.config import NOT_IN_KEY, Config, Count, Name, Positive, names_differ
from trainables.lm.adaptation_config import Adaptation, Cache, DynamicEvaluation
from trainables.lm.gate_config import Always, Chance, EntropyThreshold, Gate, Threshold
from trainables.lm.optimisation import Optimisation
from trainables.lm.step_config import FixedByLayer, FixedStep, LearnedStep, PredictedStep, Step
from trainables.lm.text_config import Data

Rate = Annotated[float, Field(ge=0, lt=1)]
MOST_POWER: Final = math.exp(1 / math.e) - 1
"""The largest p^-p - 1, at p = 1/e: .4447."""


class Surprisal(Config):
    """How unexpected the token that came is: delta of p, its probability.

    nll: -log p. eq44: p^-p - 1 (thesis Eq. 4.4), which falls when p falls below 1/e. sigmoid: the same of the sigmoid
    of its logit (the released code until August 2019). inject: a control, minus the logit itself; a step adds the
    token's own decoder row to the state, with no expectation of the model to compare it with.
    """

    kind: Literal["surprisal"] = "surprisal"
    variant: Literal["nll", "eq44", "sigmoid", "inject"] = "nll"
    target: Literal["gold", "argmax"] = Field("gold", description="argmax: what the released training loop used")

    @property
    def compares(self) -> bool:
        """Whether delta's gradient compares the token's decoder row with the mean row that the model expects."""
        return self.variant in ("nll", "eq44")


class McDropout(Config):
    """Entropy in nats of the mean of K softmaxes under K dropout masks (thesis Eq. 4.6 to 4.9).

    Eq. 4.7 is printed without scaling, so that every sample's logits are smaller than the model's own by the factor
    1 - rate in the mean, and the entropy is higher for that alone. The default scales, as dropout in training does.
    Eq. 4.6 prints Bernoulli(p), which keeps with p; Eq. 3.28 and section 5.3.3 call p the probability of dropping.
    """

    kind: Literal["mc_dropout"] = "mc_dropout"
    num_samples: Count = Field(15, description="K")
    rate: Rate = Field(0.42, description="probability of dropping")
    masks: Literal["units", "weights"] = Field(
        "units", description="units: of the hidden vector, each row its own; weights: of the decoder (thesis Eq. 4.6)"
    )
    scaling: Literal["inverted", "none"] = Field(
        "inverted", description="of what is kept, inverted: by 1 / (1 - rate); none: as Eq. 4.7 is printed"
    )
    estimator: Literal["samples", "moments"] = Field(
        "samples", description="moments: from mean and variance of the logits under masks of units, without samples"
    )

    @model_validator(mode="after")
    def _moments_are_of_units(self) -> Self:
        if self.estimator == "moments" and self.masks != "units":
            raise ValueError(f"masks must be units where the estimator is moments, but got {self.masks}")
        if self.estimator == "moments" and self.scaling != "inverted":
            raise ValueError(f"scaling must be inverted where the estimator is moments, but got {self.scaling}")
        return self

    @property
    def kept_scale(self) -> float:
        """What is kept is multiplied by it."""
        return 1 / (1 - self.rate) if self.scaling == "inverted" else 1.0


class AnchoredEnsemble(Config):
    """Entropy in nats of the mean of K decoders' softmaxes, which are pulled to anchors.

    Pearce, Zaki, Brintrup and Neely 2018 (arXiv:1805.11324); thesis Eq. 4.8 to 4.11. The first weights of every member
    and its anchor are two draws from the prior (figure B.3). The penalty of a member at the distance d from its anchor
    is lambda d^2 / N, the form that the logarithm of a normal prior gives (MAP; section 3.3.3), whose lambda would be
    1 / (2 variance). The default is the thesis's, which moves no weight by more than rounding. Eq. 3.37 prints the
    norm without its square, sqrt(lambda) d / N, whose pull is as strong near the anchor as far from it.
    """

    kind: Literal["anchored_ensemble"] = "anchored_ensemble"
    num_members: Count = Field(15, description="K")
    prior_variance: Positive = Field(
        0.29,
        description="of weights and biases; the thesis's prior scale, of which the released code takes the square root",
    )
    pull: Annotated[float, Field(ge=0)] = Field(4.82e-5, description="lambda, the weight decay of Eq. 3.37")
    penalty: Literal["squared", "norm"] = Field(
        "squared", description="of the distance to the anchor; norm: as Eq. 3.37 is printed"
    )
    entropy: Literal["members", "batch"] = Field(
        "members",
        description="batch: of the mean of the distributions of the members' mean logits over the rows that a process "
        "reads at once (released)",
    )
    anchors: Literal["own", "shared"] = Field(
        "own", description="own: one for each member (figure B.3); shared: one for all (section 4.3.4)"
    )
    loss: Literal["mean_loss", "own_loss", "mean_logits"] = Field(
        "mean_loss",
        description="mean_loss: of Eq. 4.11, which gives each member a K-th of its own gradient; own_loss: each member "
        "by its own loss, and what lies below by the mean; mean_logits: cross-entropy of the mean logits (released)",
    )


class Variational(Config):
    """Entropy in nats of the mean of K softmaxes under K sets of masks, each kept for a whole window.

    Gal and Ghahramani 2016 (arXiv:1512.05287): one mask for each kind of connection and layer, and K states.
    """

    kind: Literal["variational"] = "variational"
    num_samples: Count = 5
    rate: Rate = Field(0.15, description="probability of dropping, in place of the model's dropout")


class WeakSupervision(Config):
    """Binary cross-entropy of a logistic probe on the hidden state of a layer (thesis Eq. 4.2).

    Giulianelli et al. 2018 (arXiv:1808.08079). Only items with a label are recoded: those of an agreement corpus in an
    evaluation. Running text has no labels, so that there the model is the one without a recoder.
    """

    kind: Literal["weak_supervision"] = "weak_supervision"
    layer: Count = Field(1, description="counted from the bottom")


Signal = Annotated[
    Surprisal | McDropout | AnchoredEnsemble | Variational | WeakSupervision, Field(discriminator="kind")
]


class ClosedForm(Config):
    """The exact gradient, a constant for back-propagation."""

    kind: Literal["closed_form"] = "closed_form"


class SecondOrder(Config):
    """The exact gradient, through which back-propagation goes as well."""

    kind: Literal["second_order"] = "second_order"


class FiniteDifference(Config):
    """Mean over random directions of the central difference along each, a constant for back-propagation.

    For each activation by itself; the entries of a direction are +1 or -1.
    """

    kind: Literal["finite_difference"] = "finite_difference"
    num_directions: Count = 1
    distance: Positive = Field(0.01, description="how far to go to each side")


Gradient = Annotated[ClosedForm | SecondOrder | FiniteDifference, Field(discriminator="kind")]


class Recoder(Config):
    """After every token, h and c of every layer take a step down the gradient of an error signal (thesis Eq. 4.1)."""

    signal: Signal = Surprisal()
    step: Step = FixedStep()
    gate: Gate = Always()
    gradient: Gradient = ClosedForm()
    not_finite: Literal["left", "one"] = Field(
        "left", description="an activation with such a gradient is left as it is; one: such entries become 1 (released)"
    )

    @model_validator(mode="after")
    def _the_step_can_be_predicted(self) -> Self:
        reads_output = isinstance(self.step, PredictedStep) and self.step.source == "output"
        if reads_output and isinstance(self.signal, WeakSupervision):
            raise ValueError("step.source must be activation with a probe, which has no output, but got output")
        return self

    @model_validator(mode="after")
    def _the_probe_is_reached(self) -> Self:
        """The error of a probe depends on its layer and those below."""
        if isinstance(self.signal, WeakSupervision) and isinstance(self.step, FixedByLayer):
            layer = self.signal.layer
            if not any(self.step.sizes[: 2 * layer]):
                raise ValueError(
                    f"step.h or step.c must be above 0 in one of the layers 1 to signal.layer = {layer}, because the "
                    f"probe's error depends on none above, but got h = {self.step.h} and c = {self.step.c}"
                )
        return self

    @model_validator(mode="after")
    def _the_gate_can_open(self) -> Self:
        check_gate(self)
        return self

    @property
    def skips_shut_rows(self) -> bool:
        """Whether a row whose gate is shut is left out of the products; else all are run, and its step is left out.

        Finite differences, and the entropy of a mean over the batch, are of all rows at once.
        """
        is_of_batch = isinstance(self.signal, AnchoredEnsemble) and self.signal.entropy == "batch"
        return not (isinstance(self.gate, Always) or isinstance(self.gradient, FiniteDifference) or is_of_batch)

    @property
    def knows_gate_first(self) -> bool:
        """Whether the gate is known before the error signal, which is not of the output's own logits."""
        return isinstance(self.gate, Chance) and not isinstance(self.signal, Surprisal)


def check_gate(recoder: Recoder, vocabulary_size: int | None = None) -> None:
    """Refuses a threshold that delta, or the entropy of the output, never exceeds.

    Args:
        recoder: with or without a threshold.
        vocabulary_size: words at most; None where it is not known, so that an entropy has no bound.

    Raises:
        ValueError: with the bound of delta.
    """
    gate, signal, most, why = recoder.gate, recoder.signal, math.inf, ""
    if isinstance(gate, EntropyThreshold):
        if not isinstance(signal, Surprisal):
            rule = f"gate.kind must be threshold, chance or always with signal {signal.kind}"
            raise ValueError(f"{rule}, but got entropy")
        if vocabulary_size and gate.min_entropy >= math.log(vocabulary_size):
            raise ValueError(
                f"gate.min_entropy must be below {math.log(vocabulary_size):.4f}, the most that an entropy over "
                f"{vocabulary_size:,} words can be, but got {gate.min_entropy:g}"
            )
    if not isinstance(gate, Threshold):
        return
    if isinstance(signal, Surprisal) and signal.variant in ("eq44", "sigmoid"):
        most, why = MOST_POWER, f"e^(1/e) - 1, the most that delta of {signal.variant} can be"
    elif isinstance(signal, McDropout | AnchoredEnsemble | Variational) and vocabulary_size:
        most, why = math.log(vocabulary_size), f"the most that an entropy over {vocabulary_size:,} words can be"
    if gate.min_delta >= most:
        raise ValueError(f"gate.min_delta must be below {most:.4f}, {why}, but got {gate.min_delta:g}")


class Evaluation(Config):
    """One test of a trained model, with its own recoder, another one or none.

    With `weights` of the baseline, the trained recoder is tested on a model that was trained without (figure 5.6b).
    """

    name: Name = "test"
    recoder: Recoder | Literal["own", "none"] = "own"
    weights: Literal["own", "baseline"] = Field(
        "own",
        description="baseline: those of the prerequisite `baseline`, of the same seed, with this model's step sizes",
    )
    batch_size: Count = Field(64, description="streams")
    seed: int = Field(
        1, description="of its masks, and of the members of an added ensemble; each replicate has its own"
    )

    @model_validator(mode="after")
    def _its_step_sizes_are_trained(self) -> Self:
        """A step size that is learnt or predicted comes from a training."""
        if not isinstance(self.recoder, Recoder):
            return self
        if self.weights == "baseline":
            raise ValueError("recoder must be own or none where weights is baseline, but got another one")
        if isinstance(self.recoder.step, LearnedStep | PredictedStep):
            raise ValueError(
                "step.kind of a recoder that is added in a test must be fixed or lipschitz, because no one has "
                f"trained its step sizes, but got {self.recoder.step.kind}; train a model with it and test that with "
                "weights: baseline"
            )
        return self


class AdaptedEvaluation(Evaluation):
    """A test in which the model goes on learning from what it has read of the text, as one stream.

    The recoder works as in any test, and what adapts works on top of it. A dynamic evaluation moves the weights that
    are trained, and a cache keeps the states that the output is decoded from.
    """

    adaptation: Adaptation
    weights: Literal["own"] = "own"
    batch_size: Literal[1] = 1

    @model_validator(mode="after")
    def _the_recoder_moves_with_the_weights(self) -> Self:
        is_added = isinstance(self.recoder, Recoder) and isinstance(self.recoder.signal, AnchoredEnsemble)
        if is_added and isinstance(self.adaptation, DynamicEvaluation):
            raise ValueError(
                "recoder.signal.kind must be another than anchored_ensemble in a dynamic evaluation, which does not "
                "move the decoders that an added ensemble brings, but got anchored_ensemble"
            )
        return self


def _kind_of_evaluation(value: object) -> str:
    """The kind of an evaluation, by what it has: without a tag, fingerprints from before there were two kinds hold."""
    is_adapted = isinstance(value, AdaptedEvaluation) or (isinstance(value, dict) and "adaptation" in value)
    return "adapted" if is_adapted else "test"


AnyEvaluation = Annotated[
    Annotated[Evaluation, Tag("test")] | Annotated[AdaptedEvaluation, Tag("adapted")],
    Discriminator(_kind_of_evaluation),
]


class Dropout(Config):
    """Dropout on the embeddings and on what is decoded, and between the layers as well (released: not)."""

    rate: Rate = Field(0.15, description="probability of dropping")
    between_layers: bool = True


class LmConfig(Config):
    """An LSTM language model with or without a recoder."""

    data: Data = Data()
    embedding_size: Count = 650
    hidden_size: Count = 650
    num_layers: Annotated[int, Field(ge=1, le=8)] = 2
    dropout: Dropout = Dropout()
    decoder_std: Positive | None = Field(
        None, description="of a normal start of decoder weights and biases; default: torch's; released: .534"
    )
    recoder: Recoder | None = None
    training: Optimisation = Optimisation()
    evaluations: Annotated[tuple[AnyEvaluation, ...], NOT_IN_KEY, Field(min_length=1), AfterValidator(names_differ)] = (
        Evaluation(),
    )
    seed: Annotated[int, NOT_IN_KEY] = 1

    @property
    def baseline(self) -> Self:
        """The model without a recoder, and without the weight decay and the plain epochs that come with one."""
        training = self.training.model_copy(update={"weight_decay": 0.0, "num_plain_epochs": 0})
        return self.model_copy(update={"recoder": None, "training": training, "evaluations": (Evaluation(),)})

    @model_validator(mode="after")
    def _caches_have_one_state(self) -> Self:
        for evaluation in self.evaluations:
            if isinstance(evaluation, AdaptedEvaluation) and isinstance(evaluation.adaptation, Cache):
                recoder = self.recoder if evaluation.recoder == "own" else evaluation.recoder
                if isinstance(recoder, Recoder) and isinstance(recoder.signal, Variational):
                    raise ValueError("a cache needs one state a token, but variational dropout has one a sample")
        return self

    @model_validator(mode="after")
    def _gates_can_open(self) -> Self:
        for recoder in (self.recoder, *(evaluation.recoder for evaluation in self.evaluations)):
            if isinstance(recoder, Recoder):
                check_gate(recoder, self.data.vocabulary.max_size)
        return self

    @model_validator(mode="after")
    def _differences_keep_their_digits(self) -> Self:
        """A step bounded by curvature, and finite differences, divide the difference of two close readings."""
        recoder = self.recoder
        if recoder and self.training.precision == "bfloat16":
            what = {recoder.step.kind: "step.kind", recoder.gradient.kind: "gradient.kind"}
            for kind in what.keys() & {"lipschitz", "finite_difference"}:
                raise ValueError(
                    f"training.precision must be float32 where recoder.{what[kind]} is {kind}, a difference of two "
                    "readings closer than bfloat16 tells apart, but got bfloat16"
                )
        return self

    @model_validator(mode="after")
    def _recoders_fit(self) -> Self:
        """Probes need a layer to read, and error signals the decoders that they are of."""
        own = self.recoder.signal if self.recoder else None
        if isinstance(own, AnchoredEnsemble) and self.decoder_std is not None:
            raise ValueError(
                f"decoder_std must be unset with an ensemble, whose members start with signal.prior_variance, "
                f"but got {self.decoder_std:g}"
            )
        recoders = [self.recoder, *(evaluation.recoder for evaluation in self.evaluations)]
        for step in (recoder.step for recoder in recoders if isinstance(recoder, Recoder)):
            if isinstance(step, FixedByLayer) and len(step.h) != self.num_layers:
                raise ValueError(
                    f"step.h and step.c must have num_layers = {self.num_layers} sizes each, but got {len(step.h)}"
                )
        for signal in (recoder.signal for recoder in recoders if isinstance(recoder, Recoder)):
            if isinstance(signal, WeakSupervision) and signal.layer > self.num_layers:
                raise ValueError(f"signal.layer must be at most num_layers = {self.num_layers}, but got {signal.layer}")
            if isinstance(own, AnchoredEnsemble) and getattr(signal, "num_members", None) != own.num_members:
                raise ValueError(
                    f"a model with an ensemble can be tested with the recoder own, none or another one with its "
                    f"{own.num_members} members, but got {signal.kind}"
                )
        return self
