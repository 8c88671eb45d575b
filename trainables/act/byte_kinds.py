"""Kinds of bytes of a text, beside which updates and surprisal are told (Graves 2016, section 3.5)."""

import string
from typing import Final

import numpy as np
from numpy.typing import NDArray

Is = NDArray[np.bool_]

SPACE, PUNCTUATION, DIGIT, BOUNDARY = (
    np.frombuffer(text.encode(), np.uint8) for text in (string.whitespace, string.punctuation, string.digits, ",.;:!?")
)
RARE_SHARE: Final = 1e-3
"""A byte is rare that makes up less than this of the bytes that are read."""


def kinds_of(read: NDArray[np.integer], following: NDArray[np.integer]) -> dict[str, Is]:
    """Whether each of S steps is of each kind; it may be of several.

    Args:
        read: the byte of each step.
        following: the byte behind it, which is predicted.
    """
    is_space, is_punctuation, is_digit = (np.isin(read, those) for those in (SPACE, PUNCTUATION, DIGIT))
    rare = np.flatnonzero(np.bincount(read, minlength=256) < RARE_SHARE * len(read))
    return {
        "space": is_space,
        "punctuation": is_punctuation,
        "letter": ~(is_space | is_punctuation | is_digit),
        "boundary": np.isin(read, BOUNDARY),
        "digit": is_digit,
        "rare": np.isin(read, rare),
        "before_rare": np.isin(following, rare),
    }
