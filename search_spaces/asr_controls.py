"""Two sweeps whose answers are known beforehand: base config and conditions (`trainables.asr.data.onsets`)."""

from typing import Final, Literal

from search_spaces.size import Size
from search_spaces.sweep import Condition
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Convolutional,
    Optimisation,
    Pretraining,
    Random,
    Surprisal,
)
from trainables.asr.data.config import Features, Onsets

RATE: Final = 0.25
"""Of the frames: one onset in four."""
VARIANCE: Final = 0.18
"""Of p_big; the largest with this mean is .25 * .75 = .1875, so onsets take the big network with probability .985."""
RATE_OF_EQUAL_COST: Final = 0.362
"""At which random routing costs what surprisal costs at `RATE`: the autoregressive model is paid by more big frames."""
FEATURES: Final = Features(num_mel_bins=8, window_ms=25, hop_ms=25, keep_every=1)
"""As the corpus is made: `trainables.asr.data.onsets.FEATURES`."""

CONDITIONS: Final = (
    Condition("surprisal"),
    Condition("random", {"controller": Random(p_big=RATE_OF_EQUAL_COST)}),
    Condition("random_same_rate", {"controller": Random(p_big=RATE)}),
    Condition("always_small", {"controller": AlwaysSmall()}),
    Condition("always_big", {"controller": AlwaysBig()}),
)


def base(surprising: Literal["onsets", "all"], size: Size) -> AsrConfig:
    """Appendix A's model 3, reading single frames: a linear small network and a wide big one, and nothing else."""
    few = {"num_train_utterances": 24, "num_validation_utterances": 6, "num_test_utterances": 6}
    data = Onsets(surprising=surprising, **(few if size == "smoke" else {}))
    num_epochs, num_pretraining_epochs = (2, 1) if size == "smoke" else (12, 8)
    pretraining = Optimisation(learning_rate=1e-2, decay=0.9, batch_size=8, num_epochs=num_pretraining_epochs)
    return AsrConfig(
        data=data,
        ar=Pretraining(features=FEATURES, hidden_size=8, dropout=0.0, start="data_mean", training=pretraining),
        inputs="frames",
        network=Convolutional(kind="model3", width=512, kernel_frames=1, dropout=0.0),
        controller=Surprisal(mu=RATE, sigma2=VARIANCE),
        training=Optimisation(learning_rate=4e-3, decay=0.95, batch_size=8, num_epochs=num_epochs),
    )
