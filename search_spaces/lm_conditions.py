"""What the sweeps of recoding language models have in common."""

from pathlib import Path
from typing import Any, Final

from search_spaces.lm_sizes import ENSEMBLE, EQ44, MC_DROPOUT, SURPRISAL, WEIGHT_DECAY, base
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Objective, Prerequisite, Sweep
from trainables.lm.config import LmConfig, McDropout, Recoder, Variational

CLAIMS: Final = str(Path(__file__).with_name("published") / "lm.toml")
OBJECTIVES: Final = (Objective("perplexity"), Objective("macs_per_token"))
VALIDATED: Final = (Objective("valid_perplexity"), Objective("macs_per_token"))
"""Objectives of searches, which must not choose by the test."""
BASELINE: Final = Condition("baseline", {"recoder": None})
RECODERS: Final = {"surprisal": SURPRISAL, "eq44": EQ44, "mc_dropout": MC_DROPOUT, "ensemble": ENSEMBLE}


def recoded(recoder: Recoder) -> dict[str, Any]:
    """A recoder, and the weight decay that the thesis gives to models with dropout as their signal (table B.1b)."""
    decays = isinstance(recoder.signal, McDropout | Variational)
    return {"recoder": recoder} | ({"training.weight_decay": WEIGHT_DECAY} if decays else {})


def lm_sweep(
    name: str,
    description: str,
    conditions: tuple[Condition, ...],
    size: Size,
    config: LmConfig | None = None,
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5),
    prerequisites: tuple[Prerequisite, ...] = (),
    claims: str = CLAIMS,
) -> Sweep:
    """Perplexity against cost, beside the model without a recoder.

    Args:
        config: that of all conditions; default: the thesis's.
    """
    return Sweep(
        name=sized_name(f"lm.{name}", size),
        description=description,
        trainable="trainables.lm.train",
        claims=claims,
        base=config or base("thesis", size),
        conditions=conditions,
        objectives=OBJECTIVES,
        seeds=(1,) if size == "smoke" else seeds,
        reference="baseline",
        prerequisites=prerequisites,
    )
