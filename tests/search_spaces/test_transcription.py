"""The shipped numbers and a second transcription, made without having seen them, are the same."""

import pytest

from search_spaces.act_sizes import PARITY
from search_spaces.claim import NumberClaim, StatementClaim
from search_spaces.sources import claims_in
from tests.search_spaces import computed_numbers
from tests.search_spaces.shipped_cells import cell
from tests.search_spaces.transcription import SOURCES, Cell, Printed, read

SHIPPED = {"surprisal_paper": claims_in("asr"), "recoding_thesis": claims_in("lm"), "act": claims_in("act")}
SCALES = {"%": 100, "fraction": 100, "M FLOPs": 1e-6}
"""Of a recorded value, to the printed unit; a share of Graves' is shipped as per cent."""

# table, what its row or column holds, and why it is no number of ours
NO_RESULTS = (
    ("table 1", "Number of parameters", "sizes: counted in computed_numbers, to the last parameter"),
    ("table 5.2", "speed", "tokens per second of a card of 2017: the ratio to the baseline's is computed from them"),
    ("figure 5.5a", "gain", "a difference of printed perplexities"),
    ("figure 5.6a", "gain", "a difference of printed perplexities"),
    ("figure 5.6b", "gain", "a difference of printed perplexities"),
    ("tasks", "sequence error below", "a bound: a statement holds it, see test_bounds_that_graves_gives"),
    ("tasks", "sequence error about", "a bound: a statement holds it, see test_bounds_that_graves_gives"),
    ("table B.1a", "", "settings"),
    ("table B.2a", "", "settings"),
    ("table B.2b", "", "settings"),
)

# printed a second time: where, and the cell that has it first
REPEATED = {
    "surprisal_paper": {
        Cell("table 3", "Big network only", f"TIMIT {what}"): Cell("table 2", "Big network only", f"TIMIT {what}")
        for what in ("PER", "FLOPs")
    }
    | {
        Cell("table 4", "Big network only", f"Mini-LibriSpeech {what}"): Cell(
            "table 2", "Big network only", f"Mini-LibriSpeech {what}"
        )
        for what in ("PER", "FLOPs")
    },
    "recoding_thesis": {
        Cell("table 5.2", "Baseline", "Baseline perplexity"): Cell(
            "table 5.1", "all step sizes", "Baseline perplexity"
        ),
        Cell("figure 5.5a", "Baseline", "perplexity"): Cell("table 5.1", "all step sizes", "Baseline perplexity"),
    },
    "act": {},
}


def shipped(source: str) -> list[NumberClaim]:
    """What stands in the source as it is, and is not computed from it."""
    computed = computed_numbers.expected()
    return [claim for claim in SHIPPED[source] if isinstance(claim, NumberClaim) and claim.id not in computed]


def paired(source: str) -> list[tuple[NumberClaim, Printed]]:
    """Our claims beside the cells that they name, where there are such."""
    table = read(source)
    return [(claim, table[cell(claim)]) for claim in shipped(source) if cell(claim) in table]


@pytest.mark.parametrize("source", SOURCES)
def test_every_shipped_number_stands_where_it_says(source):
    table = read(source)
    nowhere = [f"{claim.id}: {cell(claim)}" for claim in shipped(source) if cell(claim) not in table]
    assert not nowhere, f"{len(nowhere)} of {len(shipped(source))}\n" + "\n".join(nowhere)


@pytest.mark.parametrize("source", SOURCES)
def test_every_shipped_mean_is_the_printed_one(source):
    factor = {"fraction": 100.0}
    pairs = [(claim, printed.number * factor.get(printed.unit, 1.0)) for claim, printed in paired(source)]
    assert len(pairs) >= {"surprisal_paper": 90, "recoding_thesis": 60, "act": 8}[source]
    wrong = [
        f"{claim.id}: {claim.published.mean}, printed {mean}" for claim, mean in pairs if claim.published.mean != mean
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("source", SOURCES)
def test_every_shipped_spread_and_count_is_the_printed_one(source):
    """A count without a spread says nothing of the number, so that it may be left out."""
    wrong = []
    for claim, printed in paired(source):
        ours, theirs = claim.published, (printed.std, int(printed.n) if printed.n else None)
        counts = {theirs[1]} if printed.std is not None else {theirs[1], None}
        if ours.std != theirs[0] or ours.n not in counts:
            wrong.append(f"{claim.id}: +- {ours.std} of {ours.n}, printed +- {theirs[0]} of {theirs[1]}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("source", SOURCES)
def test_every_shipped_number_is_in_the_printed_unit(source):
    for claim, printed in paired(source):
        scale = 1 if claim.place.metric == "mean_updates" else SCALES.get(printed.unit, 1)
        assert claim.place.scale == scale, claim.id


@pytest.mark.parametrize("source", SOURCES)
def test_every_number_of_a_table_is_shipped(source):
    """Or repeats one that is, or is no result: see NO_RESULTS."""
    ours, repeated = {cell(claim) for claim in shipped(source)}, REPEATED[source]
    missing = []
    for at, printed in read(source).items():
        is_table = at.place.startswith(("table", "figure", "tasks"))
        is_result = not any(at.place == place and what in at.column for place, what, _ in NO_RESULTS)
        if is_table and is_result and repeated.get(at, at) not in ours:
            missing.append(f"{at}: {printed.value} +- {printed.spread}")
    assert not missing, f"{len(missing)}\n" + "\n".join(missing)


@pytest.mark.parametrize("source", SOURCES)
def test_a_number_that_is_printed_again_is_the_same(source):
    table = read(source)
    for again, first in REPEATED[source].items():
        assert (table[again].value, table[again].spread) == (table[first].value, table[first].spread), again


def test_the_list_of_what_is_no_result_has_nothing_idle():
    cells = [at for source in SOURCES for at in read(source)]
    for place, what, reason in NO_RESULTS:
        assert any(at.place == place and what in at.column for at in cells), reason


def test_results_of_the_running_text_are_shipped():
    ours = {cell(claim) for claim in shipped("surprisal_paper")}
    row = "learned controller, lambda 0.0001"
    assert {Cell("section 4.3", row, "TIMIT PER"), Cell("section 4.3", row, "TIMIT FLOPs")} <= ours


@pytest.mark.parametrize(
    ("task", "row"), [("parity", "parity, tau at most 0.03"), ("logic", "logic, tau at most 0.01")]
)
def test_bounds_that_graves_gives(task, row):
    """A statement against a number, for each penalty of the grid up to the printed one, and for no other."""
    [printed] = [value for at, value in read("act").items() if at.row == row]
    statements = [claim for claim in SHIPPED["act"] if isinstance(claim, StatementClaim)]
    errors = [claim for claim in statements if claim.left.metric == "sequence_error" and isinstance(claim.right, float)]
    bounded = [claim for claim in errors if claim.source.place.split(",")[0] == task]
    assert {claim.right for claim in bounded} == {printed.number}
    taus = {float(claim.left.condition.removeprefix("tau=")) for claim in bounded}
    assert taus == {tau for tau in PARITY.grid if tau <= float(row.split()[-1])}
