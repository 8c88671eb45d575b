"""The shipped numbers that stand in no source: computed here again, from what is printed.

Sizes are counted from the surprisal paper's section 4.2 and appendix A, on TIMIT (39 phonemes and the blank); a
normaliser of each mel bin, a weight and a bias, is the one part that the text does not name.
"""

from typing import Final

from tests.search_spaces.transcription import Cell, read

BINS, WIDTH, BIG, LABELS, KERNEL = 80, 512, 2048, 39 + 1, 11
MEAN_BIG: Final = {"timit": 0.5, "mini_librispeech": 0.65}
"""The controller's mean of p_big (section 4.2)."""


def linear(inputs: int, outputs: int) -> int:
    """Weights and biases."""
    return inputs * outputs + outputs


def gru(inputs: int, outputs: int) -> int:
    """Three gates, each with a bias on either side."""
    return 3 * (inputs * outputs + outputs * outputs + 2 * outputs)


def conv(inputs: int, outputs: int) -> int:
    """One filter of 11 frames an output."""
    return KERNEL * inputs * outputs + outputs


NORMALISER: Final = 2 * BINS
AUTOREGRESSIVE: Final = (
    gru(BINS, WIDTH) + linear(WIDTH, WIDTH) + gru(WIDTH, WIDTH) + linear(WIDTH, WIDTH) + linear(WIDTH, BINS)
)
PRE_NET: Final = 2 * gru(WIDTH, WIDTH // 2)
PRE_NET_ON_BINS: Final = 2 * gru(BINS, WIDTH // 2)
POST_NET: Final = PRE_NET + linear(WIDTH, LABELS)
SMALL: Final = linear(WIDTH, WIDTH)
LARGE: Final = linear(WIDTH, BIG) + linear(BIG, WIDTH)

FIRST: Final = NORMALISER + AUTOREGRESSIVE
ALWAYS: Final = {
    "table2.always_small": FIRST + PRE_NET + SMALL + POST_NET,
    "table2.always_big": FIRST + PRE_NET + LARGE + POST_NET,
    "model1.always_small": FIRST + conv(WIDTH, WIDTH) + linear(WIDTH, LABELS),
    "model1.always_big": FIRST + conv(WIDTH, WIDTH) + linear(WIDTH, BIG) + linear(BIG, LABELS),
    "model3.always_small": FIRST + conv(WIDTH, LABELS),
    "model3.always_big": FIRST + conv(WIDTH, WIDTH) + linear(WIDTH, LABELS),
}
SIZES: Final = ALWAYS | {
    "model2.always_small": ALWAYS["model1.always_small"],
    "model2.always_big": ALWAYS["model1.always_big"],
    "table2.random": (ALWAYS["table2.always_small"] + ALWAYS["table2.always_big"]) / 2,
    "ablation.no_ar,random": PRE_NET_ON_BINS + (SMALL + LARGE) / 2 + POST_NET,
}


def expected() -> dict[str, tuple[float, float]]:
    """By the claim's identity: the number, and how far a rounded one may be from it."""
    return {
        **{f"asr.sizes.{name}": (float(size), 0.0) for name, size in SIZES.items()},
        **_slowdowns(),
        **_of_valid_frames(),
    }


def _slowdowns() -> dict[str, tuple[float, float]]:
    """The baseline's tokens per second over the model's."""
    table, found = read("recoding_thesis"), {}
    baseline = table[Cell("table 5.2", "Baseline", "Baseline speed")].number
    for kind, model in (("mc_dropout", "MC Dropout"), ("ensemble", "BAE")):
        for at, printed in table.items():
            if at.place == "table 5.2" and at.column == f"{model} speed":
                ratio, count = baseline / printed.number, at.row.partition(" ")[0]
                found[f"lm.table5_2.{kind}.{count}.slowdown"] = ratio, 0.05 if ratio < 25 else 0.5
    return found


def _of_valid_frames() -> dict[str, tuple[float, float]]:
    """Costs at the controller's mean rate, and what is left of big only."""
    paper, costs = read("surprisal_paper"), {}
    for corpus, table in (("timit", "table 3"), ("mini_librispeech", "table 4")):
        title = {"timit": "TIMIT", "mini_librispeech": "Mini-LibriSpeech"}[corpus]
        small, big = (paper[Cell(table, f"{size} network only", f"{title} FLOPs")].number for size in ("Small", "Big"))
        costs[corpus] = small + MEAN_BIG[corpus] * (big - small)
    big = paper[Cell("table 3", "Big network only", "TIMIT FLOPs")].number
    saved = paper[Cell("abstract", "surprisal against the big network", "fewer FLOPs")].number
    return {
        **{f"asr.valid_flops.{corpus}": (cost, 0.005) for corpus, cost in costs.items()},
        "asr.saving.timit.valid": (costs["timit"] / big, 0.005),
        "asr.saving.timit.printed": (1 - saved / 100, 1e-12),
    }
