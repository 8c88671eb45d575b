"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], limit_s: float = 100.0) -> None:
    """Looks again and again; fails where it does not come about."""
    deadline_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline_s, f"not within {limit_s:g} s"
        time.sleep(0.02)
