"""Tasks and base configs of the speech sweeps: the paper's sizes, and sizes for a laptop."""

from dataclasses import dataclass

from search_spaces.size import Size
from trainables.asr.config import AsrConfig, Decoding, Optimisation, Pretraining, Recurrent, Surprisal
from trainables.asr.data.config import Data, Features, HeldOutSpeakers, LibriSpeech, Timit

LIBRISPEECH_960 = LibriSpeech(
    train=("train-clean-100", "train-clean-360", "train-other-500"), phones="dictionary", num_validation_speakers=20
)
"""What the paper's autoregressive model learns from; its phones are not read, and stand in the keys of what has run."""


@dataclass(frozen=True)
class Task:
    """A corpus to recognise.

    Attributes:
        title: for people.
        data: as in the paper.
        excerpt: a part that trains within seconds, for the smoke size.
        mu: the paper's target for the mean of p_big.
    """

    title: str
    data: Data
    excerpt: Data
    mu: float


TIMIT = Task(
    title="TIMIT",
    data=Timit(),
    excerpt=Timit(split=HeldOutSpeakers(num_validation_speakers=2, num_test_speakers=2), num_train_utterances=40),
    mu=0.5,
)
MINI_LIBRISPEECH = Task(
    title="Mini-LibriSpeech",
    data=LibriSpeech(train=("train-clean-5",), test=("dev-clean-2",)),
    excerpt=LibriSpeech(num_train_utterances=40, num_validation_utterances=6, num_test_utterances=8),
    mu=0.65,
)


def base(task: Task, size: Size) -> AsrConfig:
    """The paper's sizes and its 960 hours for the autoregressive model; small, a laptop's on the excerpt alone.

    Validation decodes as the paper's does, with a beam search of its width.
    """
    if size == "smoke":
        config = laptop(task.excerpt, num_epochs=3, num_pretraining_epochs=2, keep_every=4)
    else:
        config = AsrConfig(data=task.data, ar=Pretraining(data=LIBRISPEECH_960))
    return config.with_value("controller", Surprisal(mu=task.mu)).with_value("validation_decoding", Decoding())


def laptop(data: Data, num_epochs: int, num_pretraining_epochs: int, keep_every: int = 2) -> AsrConfig:
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
        network=Recurrent(pre_hidden_size=48, big_hidden_size=256, post_hidden_size=48, dropout=0.1),
        controller=Surprisal(mu=0.5),
        training=Optimisation(learning_rate=2e-3, decay=0.95, batch_size=4, num_epochs=num_epochs),
    )
