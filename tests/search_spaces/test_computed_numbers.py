"""Shipped numbers that stand in no source follow from printed ones."""

import pytest

from search_spaces.claim import NumberClaim
from search_spaces.sources import all_claims
from tests.search_spaces import computed_numbers as computed
from tests.search_spaces.transcription import Cell, read

EXPECTED = computed.expected()
CLAIMS = {claim.id: claim for claim in all_claims() if isinstance(claim, NumberClaim)}


def test_all_computed_numbers_are_known():
    assert set(EXPECTED) <= set(CLAIMS), set(EXPECTED) - set(CLAIMS)


@pytest.mark.parametrize("identity", sorted(EXPECTED))
def test_a_computed_number_follows_from_printed_ones(identity):
    number, tolerance = EXPECTED[identity]
    assert CLAIMS[identity].published.mean == pytest.approx(number, rel=1e-12, abs=tolerance + 1e-9)
    assert CLAIMS[identity].published.std is None


def test_computed_numbers_and_no_others_are_marked_as_computed():
    marked = {identity for identity, claim in CLAIMS.items() if claim.published.is_computed}
    assert marked == set(EXPECTED)


@pytest.mark.parametrize(
    ("row", "size"),
    [
        ("Autoregressive model", computed.AUTOREGRESSIVE),
        ("Pre-net", computed.PRE_NET),
        ("Small network", computed.SMALL),
        ("Big network", computed.LARGE),
        ("Post-net", computed.POST_NET),
    ],
)
def test_the_sizes_in_the_text_are_those_of_table_1(row, size):
    printed = read("surprisal_paper")[Cell("table 1", row, "Number of parameters")]
    assert f"{size / 1e6:.2f}" == printed.value


@pytest.mark.parametrize(
    ("name", "table", "row"),
    [
        ("table2.always_small", "table 3", "Small network only"),
        ("table2.always_big", "table 3", "Big network only"),
        ("model1.always_small", "table 5", "Small network only"),
        ("model1.always_big", "table 5", "Big network only"),
        ("model2.always_small", "table 6", "Small network only"),
        ("model2.always_big", "table 6", "Big network only"),
        ("model3.always_small", "table 7", "Small network only"),
        ("model3.always_big", "table 7", "Big network only"),
    ],
)
def test_the_sizes_in_the_text_are_the_printed_flops(name, table, row):
    printed = read("surprisal_paper")[Cell(table, row, "TIMIT FLOPs")]
    assert f"{computed.SIZES[name] / 1e6:.2f}" == printed.value
