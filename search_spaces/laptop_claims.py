"""Main statements of the paper on surprisal and of the thesis on recoding, asked at a laptop's sizes.

The sources say them of their own sizes and data; a verdict here speaks of the laptop's alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from search_spaces.asr_published_sizes import PAPER
from search_spaces.claim import Claim, Place, Setting, Source, StatementClaim, sentence

CLAIMS: Final = "search_spaces.laptop_claims:claims"
"""As a sweep names them."""

TABLE_2: Final = "asr.laptop_table2"
MODEL_3: Final = "asr.laptop_model3"
EQUAL_COST: Final = "lm.equal_cost"
OURS: Final = Source("Ponderay", "asked of it here; no source compares the two")
NOT_SHOWN: Final = Source("Ponderay", "asked of it here; in table 5.1 of Ulmer 2019 no step is significantly lower")
ADAPTED: Final = 0.95
"""Of the perplexity; what dynamic evaluation must lower it to here."""

SPEECH: Final = Setting(
    "of Mini-LibriSpeech at a laptop's sizes",
    {
        "data.kind": "librispeech",
        "data.train": "('train-clean-5',)",
        "network.pre_hidden_size": "16",
        "training.num_epochs": "20",
    },
)
CONVOLUTIONAL: Final = Setting(
    "of Mini-LibriSpeech with model 3 on a narrower autoregressive model",
    {"data.kind": "librispeech", "data.train": "('train-clean-5',)", "network.kind": "model3"},
)
TEXT: Final = Setting(
    "of 500,000 words of WikiText-2 at a laptop's sizes",
    {"data.num_train_tokens": "500000", "training.num_epochs": "2"},
)


def claims() -> Iterator[Claim]:
    """Of `asr.laptop_table2`, `asr.laptop_model3` and `lm.equal_cost`."""
    wins, saves, fixed = (f"Table {table}, Mini-LibriSpeech" for table in (2, 2, 4))
    yield from _of_speech("asr.laptop", TABLE_2, SPEECH, wins, saves, fixed)
    table7 = "Table 7, TIMIT"
    yield from _of_speech("asr.laptop_model3", MODEL_3, CONVOLUTIONAL, table7, table7, table7)
    yield from _of_text()


def _of_speech(name: str, sweep: str, setting: Setting, wins: str, saves: str, fixed: str) -> Iterator[StatementClaim]:
    """`wins`, `saves` and `fixed` are where the paper's numbers say it."""
    small, big, surprisal, random = (
        Place(condition, "per", "stochastic", scale=100)
        for condition in ("always_small", "always_big", "surprisal", "random")
    )
    cost, of_big = (Place(condition, "macs_per_frame", "stochastic") for condition in ("surprisal", "always_big"))
    text = "routing by surprisal errs less than random routing"
    yield _statement(f"{name}.wins", sweep, text, surprisal, random, Source(PAPER, wins), setting)
    text = "routing costs less than the big network"
    yield _statement(f"{name}.saves", sweep, text, cost, of_big, Source(PAPER, saves), setting)
    text = "the big network errs less than the small one"
    yield _statement(f"{name}.big", sweep, text, big, small, Source(PAPER, fixed), setting)


def _of_text() -> Iterator[StatementClaim]:
    recoded, baseline = (Place(name, "perplexity", "test") for name in ("surprisal", "baseline"))
    text = "recoding by surprisal has a lower perplexity than the same model without"
    yield _statement("lm.laptop.helps", EQUAL_COST, text, recoded, baseline, NOT_SHOWN, TEXT)
    for cost in ("testing", "training"):
        text = f"recoding by surprisal has a lower perplexity than a wider model that costs as much in {cost}"
        wide = Place(f"wide,{cost}", "perplexity", "test")
        yield _statement(f"lm.laptop.beats_wide_{cost}", EQUAL_COST, text, recoded, wide, OURS, TEXT)
    adapted = replace(baseline, evaluation="dynamic_all", over=baseline)
    text = "dynamic evaluation of all weights lowers the perplexity of the model without a recoder by 5 % or more"
    yield _statement("lm.laptop.dynamic", EQUAL_COST, text, adapted, ADAPTED, OURS, TEXT)
    yield from _of_rivals(recoded, baseline)


def _of_rivals(recoded: Place, baseline: Place) -> Iterator[StatementClaim]:
    """Recoding against what also learns in testing, and on top of it."""
    rivals = {
        "dynamic_decoder": "dynamic evaluation of the decoder, which costs 3 % more",
        "cache": "a continuous cache",
    }
    for evaluation, rival in rivals.items():
        text = f"recoding by surprisal has a lower perplexity than {rival}"
        alone = replace(baseline, evaluation=evaluation)
        yield _statement(f"lm.laptop.beats_{evaluation}", EQUAL_COST, text, recoded, alone, OURS, TEXT)
    for evaluation, rival in {
        "dynamic_all": "dynamic evaluation of all weights",
        "cache": "a continuous cache",
    }.items():
        text = f"recoding by surprisal lowers the perplexity on top of {rival}"
        both, alone = (replace(place, evaluation=evaluation) for place in (recoded, baseline))
        yield _statement(f"lm.laptop.adds_to_{evaluation}", EQUAL_COST, text, both, alone, OURS, TEXT)
    wide = Place("wide,testing", "perplexity", "test")
    text = "recoding by surprisal lowers the perplexity of the wider model that costs as much in testing"
    yield _statement(
        "lm.laptop.adds_to_wide", EQUAL_COST, text, replace(wide, condition="wide,testing,surprisal"), wide, OURS, TEXT
    )


def _statement(
    name: str, sweep: str, text: str, left: Place, right: Place | float, source: Source, setting: Setting
) -> StatementClaim:
    """That the left side is below the right one."""
    return StatementClaim(name, (sweep,), sentence(text), left, "below", right, source, setting)
