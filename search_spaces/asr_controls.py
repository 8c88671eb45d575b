"""Speech sweeps whose answers are known beforehand: conditions, base configs and what they must show.

`trainables.asr.data.onsets` derives the answers.
"""

from collections.abc import Iterator
from typing import Final, Literal

from search_spaces.claim import Claim, Place, Setting, Source, StatementClaim
from search_spaces.size import Size
from search_spaces.sweep import Condition
from trainables.asr.config import AsrConfig, Convolutional, Optimisation, Pretraining, Random, Surprisal
from trainables.asr.data.config import Features, Onsets

Kind = Literal["positive", "negative"]

RATE: Final = 0.25
"""Of the frames: one onset in four."""
VARIANCE: Final = 0.18
"""Of p_big; with this mean at most .25 * .75 = .1875 is possible. Onsets take the big network with probability .985."""
FEATURES: Final = Features(num_mel_bins=8, window_ms=25, hop_ms=25, keep_every=1)
"""As the corpus is made: `trainables.asr.data.onsets.FEATURES`."""

RANDOM: Final = {
    "positive": Condition("random", {"controller": Random(p_big=0.549)}),
    "negative": Condition("random", {"controller": Random(p_big=0.37)}),
}
"""At the cost of surprisal routing: what that pays for its autoregressive model buys here a higher rate."""
SAME_RATE: Final = Condition("random_p0.25", {"controller": Random(p_big=RATE)})


def base(kind: Kind, size: Size) -> AsrConfig:
    """Appendix A's model 3 on single frames: a linear small network and a wide big one, and nothing else."""
    surprising: Literal["onsets", "all"] = "onsets" if kind == "positive" else "all"
    data, epochs, ar_epochs = Onsets(surprising=surprising), 20, 8
    if size == "smoke":
        few = {"num_train_utterances": 24, "num_validation_utterances": 6, "num_test_utterances": 6}
        data, epochs, ar_epochs = data.model_copy(update=few), 2, 1
    # where every frame surprises, the model that foresees the marks has to count: it is larger, and so is its rival
    hidden_size, width, rate = (4, 64, 2e-3) if kind == "positive" else (8, 512, 5e-3)
    pretraining = Optimisation(learning_rate=1e-2, decay=0.9, batch_size=8, num_epochs=ar_epochs)
    return AsrConfig(
        data=data,
        ar=Pretraining(
            features=FEATURES, hidden_size=hidden_size, dropout=0.0, start="data_mean", training=pretraining
        ),
        inputs="frames",
        network=Convolutional(kind="model3", width=width, kernel_frames=1, dropout=0.1),
        controller=Surprisal(mu=RATE, sigma2=VARIANCE),
        training=Optimisation(learning_rate=rate, decay=0.95, batch_size=8, num_epochs=epochs),
    )


def claims() -> Iterator[Claim]:
    """What the sweeps show if the pipeline is right."""
    positive, negative = ("asr.demo", "asr.control_positive"), ("asr.control_negative",)
    yield _statement(
        "wins", positive, "routing by surprisal errs less than random routing of its cost", "below", "random"
    )
    yield _statement(
        "cost", positive, "that random routing costs as much", "same", "random", "macs_per_frame", 0.03 * 630
    )
    yield _statement(
        "big", positive, "routing by surprisal errs as little as big only", "same", "always_big", margin=0.03
    )
    yield _statement(
        "no_gain",
        negative,
        "routing by surprisal errs as random routing at its rate",
        "same",
        SAME_RATE.name,
        margin=0.04,
    )


def _statement(
    name: str,
    sweeps: tuple[str, ...],
    text: str,
    relation: Literal["below", "same"],
    other: str,
    metric: str = "per",
    margin: float = 0.0,
) -> Claim:
    left, right = (Place(condition, metric, "stochastic") for condition in ("surprisal", other))
    source = Source("known beforehand", "trainables/asr/data/onsets.py")
    setting = Setting("of the corpus with a known answer", {"data.kind": "onsets"})
    return StatementClaim(
        f"asr.control.{name}", sweeps, f"{text[0].upper()}{text[1:]}.", left, relation, right, source, setting, margin
    )
