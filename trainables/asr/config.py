"""What can be set of a surprisal-routed speech recogniser (Lugosch et al. 2020, arXiv:2006.01659)."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from trainables.config import NOT_IN_KEY, Config

Rate = Annotated[float, Field(ge=0, lt=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
SubsetName = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")]
LearningRate = Annotated[float, Field(gt=0, le=1)]


def _absolute(path: Path | None) -> Path | None:
    """Workers have other working folders."""
    return path.absolute() if path else None


class LibriSpeech(Config):
    """A folder in LibriSpeech's layout: `SUBSET/SPEAKER/CHAPTER/*.flac` and `*.trans.txt`.

    Phones are the CMU dictionary's first pronunciation without stress: 39 labels.
    """

    kind: Literal["librispeech"] = "librispeech"
    root: Annotated[Path | None, NOT_IN_KEY, AfterValidator(_absolute)] = Field(
        None, description="default: the setting PONDERAY_DATA"
    )
    train: SubsetName = "train-clean-5"
    test: SubsetName = "test-clean"
    num_validation_speakers: Count = 3
    num_train_utterances: Count | None = Field(None, description="a seeded choice of so many; default: all")
    num_validation_utterances: Count | None = None
    num_test_utterances: Count | None = None
    split_seed: int = 1


class Synthetic(Config):
    """Waveforms made from known phones by a formant synthesiser; the same on every machine."""

    kind: Literal["synthetic"] = "synthetic"
    num_speakers: Annotated[int, Field(ge=3)] = 12
    num_train_utterances: Count = 240
    num_validation_utterances: Count = 24
    num_test_utterances: Count = 48
    num_words: Count = Field(24, description="size of the lexicon")
    num_words_per_utterance: Count = 4
    noise: Annotated[float, Field(ge=0, le=1)] = 0.02
    seed: int = 1


Data = Annotated[LibriSpeech | Synthetic, Field(discriminator="kind")]


class Features(Config):
    """Kaldi-compatible log-mel filterbank of 16 kHz audio; every second 10 ms frame is kept."""

    num_mel_bins: Annotated[int, Field(ge=8, le=128)] = 80
    window: Literal["hamming", "hanning"] = Field("hamming", description="hamming: paper; hanning: released")
    window_ms: Positive = 25.0
    hop_ms: Positive = 10.0
    keep_every: Count = 2


class Optimisation(Config):
    """Adam, with the learning rate multiplied by `decay` after each epoch."""

    learning_rate: LearningRate = 3e-4
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    batch_size: Count = 32
    num_epochs: Count = 50
    max_gradient_norm: Positive = 5.0


class Pretraining(Config):
    """The autoregressive model (GRU encoder) and how it is pretrained, on any audio."""

    data: Data | None = Field(None, description="default: the task's own")
    features: Features = Features()
    hidden_size: Count = 512
    dropout: Rate = 0.5
    start: Literal["source", "data_mean"] = Field(
        "source",
        description="data_mean: normaliser and regressor start from each bin's mean; hours of audio need it less",
    )
    training: Optimisation = Optimisation(learning_rate=5e-4, decay=0.9, batch_size=64, num_epochs=10)
    seed: int = 1


class Surprisal(Config):
    """p_big = sigmoid(w * surprisal + b), (w, b) fitted so that p_big has mean `mu` and variance `sigma2`."""

    kind: Literal["surprisal"] = "surprisal"
    fit: Literal["converged"] = "converged"
    mu: Annotated[float, Field(gt=0, lt=1)] = 0.65
    sigma2: Annotated[float, Field(gt=0, lt=0.25)] = 0.04


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


Controller = Annotated[Surprisal | Random | AlwaysSmall | AlwaysBig, Field(discriminator="kind")]


class Network(Config):
    """Sizes of the recogniser behind the autoregressive model; the defaults are the paper's."""

    pre_hidden_size: Count = Field(256, description="of the pre-net's GRU, per direction")
    big_hidden_size: Count = 2048
    post_hidden_size: Count = Field(256, description="of the post-net's GRU, per direction")
    dropout: Rate = 0.5


class Decoding(Config):
    """CTC without a language model: greedy while training, prefix beam search for the reported numbers."""

    validation: Literal["greedy", "beam"] = "greedy"
    test: Literal["greedy", "beam"] = "beam"
    beam_width: Count = 10


class Evaluation(Config):
    """One way of testing a trained replicate."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "stochastic"
    routing: Literal["stochastic", "deterministic"] = Field("stochastic", description="deterministic: big iff p > .5")


class AsrConfig(Config):
    """One recogniser on one corpus."""

    data: Data = LibriSpeech()
    ar: Pretraining = Pretraining()
    network: Network = Network()
    controller: Controller = Surprisal()
    training: Optimisation = Optimisation()
    decoding: Decoding = Decoding()
    evaluations: Annotated[tuple[Evaluation, ...], NOT_IN_KEY, Field(min_length=1)] = (Evaluation(),)
    seed: Annotated[int, NOT_IN_KEY] = 1

    @model_validator(mode="after")
    def _evaluations_have_names_of_their_own(self) -> Self:
        names = [evaluation.name for evaluation in self.evaluations]
        if len(set(names)) < len(names):
            raise ValueError(f"the names of evaluations must differ, but got {', '.join(names)}")
        return self

    @property
    def pretraining(self) -> Pretraining:
        """What the autoregressive model is made by: on the task's own data, or on other data that lie beside them."""
        ours, its = self.data, self.ar.data
        if isinstance(ours, LibriSpeech) and isinstance(its, LibriSpeech) and its.root is None:
            its = its.model_copy(update={"root": ours.root})
        return self.ar.model_copy(update={"data": its or ours})
