"""What can be set of a surprisal-routed speech recogniser (Lugosch et al. 2020, arXiv:2006.01659)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from trainables.asr.data.config import Data, Features, LibriSpeech, Timit
from trainables.config import IN_KEY_IF_SET, NOT_IN_KEY, Config, Count, Name, Place, Positive, names_differ
from trainables.patience import Patience

Rate = Annotated[float, Field(ge=0, lt=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
LearningRate = Annotated[float, Field(gt=0, le=1)]
Mean = Annotated[float, Field(gt=0, lt=1)]
Variance = Annotated[float, Field(gt=0, lt=0.25)]


class Optimisation(Config):
    """Adam, with the learning rate multiplied by `decay` after each epoch."""

    learning_rate: LearningRate = 3e-4
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    batch_size: Count = 32
    num_epochs: Count = Field(50, description="at most, where there is `patience`")
    max_gradient_norm: Positive = 5.0
    validate_every: Annotated[Count, IN_KEY_IF_SET] = Field(
        1,
        description="epochs from one validation to the next; the last epoch has one too. Released on "
        "Mini-LibriSpeech: 5",
    )
    patience: Patience = None

    def is_validated(self, epoch: int) -> bool:
        """Whether there is a validation behind this epoch, counted from 1."""
        return epoch % self.validate_every == 0 or epoch == self.num_epochs


class Gru(Config):
    """A recurrent layer in each block: the paper's encoder."""

    kind: Literal["gru"] = "gru"


class CausalConvolution(Config):
    """A convolution over present and past frames in each block, in the second dilated by `kernel_frames`."""

    kind: Literal["convolution"] = "convolution"
    kernel_frames: Count = 8


class MaskedSelfAttention(Config):
    """Attention to the present and the last frames in each block, weaker with distance."""

    kind: Literal["attention"] = "attention"
    num_heads: Count = 4
    context_frames: Count = Field(64, description="how many frames, the present one included, a frame attends to")


Encoder = Annotated[Gru | CausalConvolution | MaskedSelfAttention, Field(discriminator="kind")]


class Pretraining(Config):
    """The autoregressive model and how it is pretrained, on any audio; transcripts are not needed."""

    data: Data | None = Field(None, description="default: the task's own")
    spared: LibriSpeech | None = Field(
        None, description="a task whose validation and test speakers are left out; set for LibriSpeech by the task"
    )
    weights: Place = Field(
        None, description="a model that is pretrained already, a file of the paper's released code; nothing is trained"
    )
    features: Features = Features()
    encoder: Encoder = Gru()
    hidden_size: Count = 512
    dropout: Rate = 0.5
    start: Literal["source", "data_mean"] = Field(
        "source",
        description="data_mean: normaliser and regressor start from each bin's mean; hours of audio need it less",
    )
    training: Optimisation = Optimisation(learning_rate=5e-4, decay=0.9, batch_size=64, num_epochs=10)
    seed: int = 1

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if isinstance(self.encoder, MaskedSelfAttention) and self.hidden_size % self.encoder.num_heads:
            raise ValueError(
                f"hidden_size must be a multiple of encoder.num_heads = {self.encoder.num_heads}, "
                f"but got {self.hidden_size}"
            )
        return self

    @model_validator(mode="after")
    def _released_weights_are_of_grus(self) -> Self:
        if self.weights is not None and not isinstance(self.encoder, Gru):
            raise ValueError(f"weights are of an encoder of kind gru, but got {self.encoder.kind}; leave one out")
        return self


Fit = Literal["converged", "one_pass_sgd", "one_pass_adam"]
FIT_DESCRIPTION = "converged: corrected; one_pass_sgd: paper; one_pass_adam: released"


class Surprisal(Config):
    """p_big = sigmoid(w * surprisal + b), (w, b) fitted so that p_big has mean `mu` and variance `sigma2`."""

    kind: Literal["surprisal"] = "surprisal"
    fit: Fit = Field("converged", description=FIT_DESCRIPTION)
    mu: Mean = 0.65
    sigma2: Variance = 0.04
    data: Data | None = Field(None, description="audio for the fit; default: the task's training set")


class Budget(Config):
    """The controller of `surprisal` with the mean of p_big chosen so that the expected cost meets `macs_per_frame`."""

    kind: Literal["budget"] = "budget"
    macs_per_frame: Positive = Field(description="on the valid frames that the fit sees")
    sigma2: Variance = 0.04
    data: Data | None = Field(None, description="audio for the fit; default: the task's training set")


class Learned(Config):
    """A feed-forward gate trained with the recogniser through a threshold, with a straight-through gradient.

    The penalty joins the loss, which is the mean over utterances of the summed CTC loss in nats:
    corrected: weight * mean over utterances of (mean_t s_t - target)^2;
    paper: weight * mean over utterances of sum_t (s_t - .5)^2, whose gradient is +-weight whatever the usage;
    released: weight * sum over all frames of the batch of (s_t - .5)^2.
    """

    kind: Literal["learned"] = "learned"
    gate_input: Literal["features", "pre_net"] = Field(
        "features", description="features: h_t, paper; pre_net: its output after dropout, released"
    )
    hidden_size: Count = 80
    penalty: Literal["corrected", "paper", "released"] = "corrected"
    weight: Annotated[float, Field(ge=0)] = Field(100.0, description="lambda; the paper's is .001 for its own penalty")
    target: Probability = Field(0.5, description="of the corrected penalty")


class Random(Config):
    """The same p_big for every frame."""

    kind: Literal["random"] = "random"
    p_big: Probability = 0.5


class AlwaysSmall(Config):
    """Every frame takes the small network; the big one does not exist."""

    kind: Literal["always_small"] = "always_small"


class AlwaysBig(Config):
    """Every frame takes the big network; the small one does not exist."""

    kind: Literal["always_big"] = "always_big"


Controller = Annotated[
    Surprisal | Budget | Learned | Random | AlwaysSmall | AlwaysBig,
    Field(discriminator="kind"),
]
TestController = Annotated[Surprisal | Budget | Random, Field(discriminator="kind")]


class Recurrent(Config):
    """Bidirectional GRUs before and after the small and big networks; the defaults are the paper's."""

    kind: Literal["recurrent"] = "recurrent"
    pre_hidden_size: Count = Field(256, description="of the pre-net's GRU, per direction")
    big_hidden_size: Count = 2048
    post_hidden_size: Count = Field(256, description="of the post-net's GRU, per direction")
    dropout: Rate = 0.5


class Convolutional(Config):
    """The paper's appendix A: small and big networks give the labels themselves.

    model1: convolution as pre-net, one and two linear layers; model2: with dropout after the pre-net;
    model3: no pre-net, a convolution of labels as small network, a wide one and a linear layer as big.
    """

    kind: Literal["model1", "model2", "model3"]
    width: Count = 512
    kernel_frames: Annotated[int, Field(ge=1)] = Field(11, description="odd: as many frames before as after")
    big_hidden_size: Count = Field(2048, description="of models 1 and 2")
    dropout: Rate = Field(0.5, description="of models 2 and 3")

    @model_validator(mode="after")
    def _kernels_have_a_middle(self) -> Self:
        if self.kernel_frames % 2 == 0:
            raise ValueError(f"kernel_frames must be odd, but got {self.kernel_frames}")
        return self


Network = Annotated[Recurrent | Convolutional, Field(discriminator="kind")]


Routing = Literal["stochastic", "deterministic"]


class Decoding(Config):
    """CTC without a language model: the most probable alignment, or a prefix beam search of `width`."""

    kind: Literal["greedy", "beam"] = "beam"
    width: Count = 10


GREEDY = Decoding(kind="greedy")


class Evaluation(Config):
    """One way of testing a trained replicate."""

    name: Name = "stochastic"
    routing: Routing = Field("stochastic", description="deterministic: big iff p > .5")
    controller: TestController | None = Field(None, description="default: the one of training")
    decoding: Decoding = Decoding()
    bias_raise: Annotated[float, Field(ge=0)] = Field(
        0.0, description="added to the fitted bias; the paper's appendix B goes up to 4"
    )
    checkpoint_of: str | None = Field(
        None, description="the evaluation whose best checkpoint is tested; default: its own, chosen on validation"
    )


class AsrConfig(Config):
    """One recogniser on one corpus."""

    data: Data = LibriSpeech()
    ar: Pretraining = Pretraining()
    inputs: Literal["ar_features", "frames"] = Field("ar_features", description="what the recogniser reads")
    network: Network = Recurrent()
    controller: Controller = Surprisal()
    training: Optimisation = Optimisation()
    training_routing: Routing = "stochastic"
    ar_loss_weight: Annotated[float, Field(ge=0)] | None = Field(
        None,
        description="trains the AR model on: times the mean over utterances of their summed surprisal; None: frozen",
    )
    ar_dropout: Annotated[Literal["none", "released"], IN_KEY_IF_SET] = Field(
        "none",
        description="released: while the recogniser trains, the AR model drops out by `ar.dropout`, though frozen",
    )
    validation_decoding: Decoding = GREEDY
    evaluations: Annotated[tuple[Evaluation, ...], NOT_IN_KEY, Field(min_length=1), AfterValidator(names_differ)] = (
        Evaluation(),
    )
    seed: Annotated[int, NOT_IN_KEY] = 1

    @model_validator(mode="after")
    def _routing_depends_on_the_input(self) -> Self:
        if self.training_routing == "deterministic" and not isinstance(self.controller, Surprisal | Budget):
            raise ValueError("training_routing: deterministic routing needs a p_big that varies, by surprisal")
        return self

    @model_validator(mode="after")
    def _the_task_says_what_is_spared(self) -> Self:
        if self.ar.spared is not None:
            raise ValueError("ar.spared is set by the task, so leave it out")
        return self

    @model_validator(mode="after")
    def _other_data_of_timit_are_split_as_the_task(self) -> Self:
        """Else they would be trained on speakers that the task tests."""
        controllers = (self.controller, *(evaluation.controller for evaluation in self.evaluations))
        others = [("ar.data", self.ar.data), *(("controller.data", getattr(c, "data", None)) for c in controllers)]
        for path, data in others:
            if isinstance(data, Timit) and isinstance(self.data, Timit) and data.split != self.data.split:
                raise ValueError(
                    f"{path}.split must be the task's, whose speakers for testing it would train on, but got "
                    f"{data.split.kind}"
                )
        return self

    @model_validator(mode="after")
    def _evaluations_can_be_done(self) -> Self:
        validated = [evaluation.name for evaluation in self.evaluations if evaluation.checkpoint_of is None]
        for evaluation in self.evaluations:
            controller = evaluation.controller or self.controller
            if evaluation.controller and isinstance(self.controller, AlwaysSmall | AlwaysBig):
                raise ValueError(
                    f"evaluation {evaluation.name!r} cannot have a controller of its own: "
                    f"{self.controller.kind} has one network only"
                )
            if evaluation.routing == "deterministic" and isinstance(controller, Random):
                raise ValueError(f"evaluation {evaluation.name!r}: deterministic routing needs a p_big that varies")
            if evaluation.bias_raise and not isinstance(controller, Surprisal | Budget):
                raise ValueError(f"evaluation {evaluation.name!r}: bias_raise needs a fitted controller")
            if evaluation.checkpoint_of and evaluation.checkpoint_of not in validated:
                raise ValueError(
                    f"evaluation {evaluation.name!r}: checkpoint_of must be one of {', '.join(validated)}, "
                    f"but got {evaluation.checkpoint_of!r}"
                )
        return self

    @property
    def pretraining(self) -> Pretraining:
        """What the autoregressive model is made by: on the task's own data, or on other data that lie beside them.

        Given weights are tested on the task's own.
        """
        data = None if self.ar.weights else self.ar.data
        return self.ar.model_copy(update={"data": self.beside(data), "spared": self.spared(data)})

    def spared(self, data: Data | None) -> LibriSpeech | None:
        """The task, where other LibriSpeech `data` may hold its validation and test speakers."""
        if not (isinstance(self.data, LibriSpeech) and isinstance(data, LibriSpeech)):
            return None
        task = self.data
        return LibriSpeech(
            root=task.root,
            train=task.train,
            test=task.test,
            phones="dictionary",  # nobody reads them here: one autoregressive model for all labels
            num_validation_speakers=task.num_validation_speakers,
            split_seed=task.split_seed,
        )

    def beside(self, data: Data | None) -> Data:
        """`data`, where it names no root with the root of the task's own; None: the task's own."""
        if data is None:
            return self.data
        both = (data, self.data)
        match both:
            case (LibriSpeech(root=None), LibriSpeech()) | (Timit(root=None), Timit()):
                return data.model_copy(update={"root": getattr(self.data, "root", None)})
        return data
