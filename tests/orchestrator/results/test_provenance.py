"""Diffs that are too long for a page."""

from dataclasses import replace

import pytest

from orchestrator.results.provenance import with_short_diffs
from tests.orchestrator.report.studies import PROVENANCE

LONG = replace(PROVENANCE, diffs={"a": "12345", "b": "6789", "c": "0"}, notes=("before",))


@pytest.mark.parametrize(
    ("num_characters", "diffs"),
    [(9, {"a": "12345", "b": "6789"}), (7, {"a": "12345", "b": "67"}), (5, {"a": "12345"}), (2, {"a": "12"})],
)
def test_the_first_characters_are_kept_and_the_rest_is_noted(num_characters, diffs):
    found = with_short_diffs(LONG, num_characters)
    note = f"Of 10 characters of uncommitted changes the first {num_characters} are shown; a bundle has all."
    assert found == replace(LONG, diffs=diffs, notes=("before", note))


def test_short_ones_stay_as_they_are():
    assert with_short_diffs(LONG, 10) == LONG
