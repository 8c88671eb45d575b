"""What Lugosch, Nowrouzezahrai and Meyer published of surprisal-routed speech recognisers."""

from collections.abc import Iterator

from search_spaces.asr_published_numbers import numbers
from search_spaces.asr_published_statements import statements, statements_of_several_things, trends
from search_spaces.claim import Claim


def claims() -> Iterator[Claim]:
    """Numbers, then statements."""
    yield from numbers()
    yield from statements()
    yield from trends()
    yield from statements_of_several_things()
