"""What Ulmer published of recoding language models."""

from collections.abc import Iterator

from search_spaces.claim import Claim
from search_spaces.lm_published_conclusions import conclusions
from search_spaces.lm_published_numbers import numbers
from search_spaces.lm_published_statements import statements, trends


def claims() -> Iterator[Claim]:
    """Numbers, then statements."""
    yield from numbers()
    yield from statements()
    yield from trends()
    yield from conclusions()
