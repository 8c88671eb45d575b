"""Files that are stored on a sweep's own run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

FIGURES: Final = "figures"
"""The folder of figures among them."""


@dataclass(frozen=True)
class StoredFile:
    """A file that is stored on a run.

    Attributes:
        path: below the run's files, with slashes.
        num_bytes: its size.
        read: gives its content; raises OSError where it cannot be had now.
    """

    path: str
    num_bytes: int
    read: Callable[[], bytes]
