"""A store that does not answer under way: what needs it waits, but not for ever."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 600.0


class Absence:
    """Of one store, or several that are asked for together.

    Args:
        tell: told once when it begins.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since_s: float | None = None

    def bear(self, error: Exception) -> None:
        """Returns where the same may be asked again later; else raises `error`, because it has been so for too long."""
        now = time.monotonic()
        if self._since_s is None:
            self._since_s = now
            self._tell(f"{str(error).rstrip('.')}; what needs it waits.")
        elif now - self._since_s > LIMIT_S:
            raise error

    def is_over(self) -> None:
        """It has answered."""
        self._since_s = None
