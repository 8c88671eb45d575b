"""Speech sweeps whose answers are known beforehand: conditions and base configs.

`trainables.asr.data.onsets` derives the answers, `published/controls.toml` claims them.
"""

from collections.abc import Mapping
from typing import Final, Literal

from search_spaces.size import Size
from search_spaces.sweep import Condition
from trainables.asr.config import AsrConfig, Convolutional, Optimisation, Pretraining, Random, Surprisal
from trainables.asr.data.config import Features, Onsets

Kind = Literal["positive", "negative"]

RATE: Final = 0.25
"""The share of big frames: one onset in four."""
VARIANCE: Final = 0.18
"""The variance of p_big; with this mean at most .25 * .75 = .1875 is possible.

Onsets take the big network with probability .985."""
FEATURES: Final = Features(num_mel_bins=8, window_ms=25, hop_ms=25, keep_every=1)
"""The features that the corpus is made with: `trainables.asr.data.onsets.FEATURES`."""

AT_EQUAL_COST: Final = Condition("random", {"controller": Random(p_big=0.55)})
"""At the cost of routing by surprisal: what that pays for its autoregressive model buys a higher rate here."""
CONDITIONS: Final[Mapping[Kind, tuple[Condition, ...]]] = {
    "positive": (AT_EQUAL_COST, Condition("random_p0.25", {"controller": Random(p_big=RATE)})),
    "negative": (Condition("random", {"controller": Random(p_big=RATE)}),),
}
"""Random routing. In the negative control it has the rate of surprisal alone, which costs more and gains nothing."""


def base(kind: Kind, size: Size) -> AsrConfig:
    """Appendix A's model 3 on single frames: a linear small network and a wide big one, and nothing else."""
    surprising: Literal["onsets", "all"] = "onsets" if kind == "positive" else "all"
    data, epochs, ar_epochs = Onsets(surprising=surprising), 20 if kind == "positive" else 30, 8
    if size == "smoke":
        few = {"num_train_utterances": 24, "num_validation_utterances": 6, "num_test_utterances": 6}
        data, epochs, ar_epochs = data.model_copy(update=few), 2, 1
    hidden_size = 4 if kind == "positive" else 8  # where every frame surprises, the marks must be foreseen by counting
    pretraining = Optimisation(learning_rate=1e-2, decay=0.9, batch_size=8, num_epochs=ar_epochs)
    return AsrConfig(
        data=data,
        ar=Pretraining(
            features=FEATURES, hidden_size=hidden_size, dropout=0.0, start="data_mean", training=pretraining
        ),
        inputs="frames",
        network=Convolutional(kind="model3", width=64, kernel_frames=1, dropout=0.1),
        controller=Surprisal(mu=RATE, sigma2=VARIANCE),
        training=Optimisation(
            learning_rate=2e-3 if kind == "positive" else 3e-3, decay=0.95, batch_size=8, num_epochs=epochs
        ),
    )
