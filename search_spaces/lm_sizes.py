"""Recoding language models, and the settings that the thesis publishes (Ulmer 2019)."""

from typing import Final, Literal

from search_spaces.size import Size
from trainables.lm.config import (
    AnchoredEnsemble,
    Data,
    Files,
    FixedStep,
    LmConfig,
    McDropout,
    OneFile,
    Optimisation,
    Recoder,
    Surprisal,
    Vocabulary,
)

Scale = Literal["thesis", "laptop"]

SURPRISAL: Final = Recoder(signal=Surprisal(), step=FixedStep(size=5.0))
EQ44: Final = Recoder(signal=Surprisal(variant="eq44"), step=FixedStep(size=5.0))
MC_DROPOUT: Final = Recoder(signal=McDropout(), step=FixedStep(size=0.001))
ENSEMBLE: Final = Recoder(signal=AnchoredEnsemble(), step=FixedStep(size=0.001))

DECODER_STD: Final = 0.534
"""With which the released MC dropout and ensembles start their decoder."""

WEIGHT_DECAY: Final = 4.8e-5
"""Of the released MC dropout."""

DROPOUT: Final = {"baseline": 0.2, "surprisal": 0.169, "others": 0.155}
"""Of the released models."""


def base(scale: Scale, size: Size = "full") -> LmConfig:
    """A model without a recoder: the thesis's sizes on WikiText-2, a laptop's, or the small one, which both share."""
    if size == "smoke":
        return LmConfig(
            data=Data(
                text=OneFile(),
                vocabulary=Vocabulary(max_size=500),
                num_train_tokens=4000,
                num_validation_tokens=1000,
                num_test_tokens=1000,
            ),
            embedding_size=24,
            hidden_size=24,
            training=Optimisation(batch_size=8, num_epochs=2),
        )
    if scale == "thesis":
        return LmConfig(data=Data(text=Files()))
    return LmConfig(
        data=Data(
            text=Files(),
            vocabulary=Vocabulary(max_size=10_000),
            num_train_tokens=500_000,
            num_validation_tokens=60_000,
        ),
        embedding_size=200,
        hidden_size=200,
        training=Optimisation(batch_size=32, num_epochs=4),
    )
