"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 300.0


def until(holds: Callable[[], object]) -> None:
    """Looks again and again; fails where it does not come about."""
    deadline_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline_s, f"not within {LIMIT_S:g} s"
        time.sleep(0.02)
