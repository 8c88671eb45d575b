"""Waiting for what another process does, for so long at most."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(ask: Callable[[], Answer], limit_s: float, pause_s: float = 0.2) -> Answer:
    """The first answer of `ask` that is true; once `limit_s` are over, whatever it answers then.

    Args:
        pause_s: between two questions.
    """
    deadline_s = time.monotonic() + limit_s
    while not (answer := ask()) and time.monotonic() < deadline_s:
        time.sleep(pause_s)
    return answer
