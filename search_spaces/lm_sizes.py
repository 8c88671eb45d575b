"""Recoding language models, and the settings that the thesis publishes (Ulmer 2019)."""

import math
from collections.abc import Mapping
from typing import Final, Literal

from search_spaces.settings import with_all
from search_spaces.size import Size
from trainables.lm.config import (
    AnchoredEnsemble,
    LmConfig,
    McDropout,
    Recoder,
    Surprisal,
    Variational,
)
from trainables.lm.optimisation import Optimisation
from trainables.lm.step_config import FixedStep
from trainables.lm.text_config import Data, Files, OneFile, Vocabulary

Scale = Literal["thesis", "laptop"]

SURPRISAL: Final = Recoder(signal=Surprisal(), step=FixedStep(size=1.0))
"""At the step of the two with which -log p has the lower validation perplexity on a part of WikiText-2: 131.3, at 5
137.3 (`valid_perplexity` of `lm.signals_laptop`, five seeds)."""

EQ44: Final = Recoder(signal=Surprisal(variant="eq44"), step=FixedStep(size=5.0))
MC_DROPOUT: Final = Recoder(signal=McDropout(), step=FixedStep(size=0.001))
ENSEMBLE: Final = Recoder(signal=AnchoredEnsemble(), step=FixedStep(size=0.001))
VARIATIONAL: Final = Recoder(signal=Variational(), step=FixedStep(size=0.001))

DECODER_STD: Final = 0.534
"""With which the released MC dropout and ensembles start their decoder: the root of .285, a prior scale of .29."""

PRIOR_STD: Final = math.sqrt(AnchoredEnsemble().prior_variance)
"""With which our ensembles start their decoders."""

WEIGHT_DECAY: Final = 4.82e-5
"""The weight decay of MC dropout and variational dropout (tables B.1b and B.2b)."""

BRIEF: Final[Mapping[str, int]] = {
    "data.num_validation_tokens": 6_000,
    "data.num_test_tokens": 20_000,
    "training.num_epochs": 2,
}
"""Settings of `brief`: a test that adapts reads one word after the other, 300 to 700 in a second."""

DROPOUT: Final = {"baseline": 0.2, "surprisal": 0.169, "others": 0.155}
"""Dropout of the released models."""


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


def brief(size: Size = "full") -> LmConfig:
    """The laptop's model after two epochs, with 20,000 words to test: for sweeps of many tests of each model."""
    if size == "smoke":
        return base("laptop", size)
    return with_all(base("laptop"), BRIEF)
