"""A store that does not answer under way: what needs it waits, but not for ever."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 600.0
GAP_S: Final = 300.0
"""After so long without a failure the next one is another outage."""


class Outage:
    """An outage of one store, or of several that are asked together.

    Args:
        tell: told once when it begins.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since_s: float | None = None
        self._failed_s = 0.0

    def tolerate(self, error: Exception, is_idle: bool = True) -> None:
        """Returns where the same may be asked again later; else raises `error`, because it has been so for too long.

        Args:
            is_idle: whether nothing else goes on meanwhile, which would be cut off.
        """
        now = time.monotonic()
        before_s, self._failed_s = self._failed_s, now
        if self._since_s is None or now - before_s > GAP_S:
            self._since_s = now
            self._tell(f"{str(error).rstrip('.')}; the work that needs it waits.")
        elif is_idle and now - self._since_s > LIMIT_S:
            raise error

    def is_over(self) -> None:
        """The store has answered."""
        self._since_s = None
