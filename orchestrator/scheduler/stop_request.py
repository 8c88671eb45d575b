"""What stops a running driver: it is asked to, from whatever thread, or a store is silent for too long."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

LIMIT_S: Final = 600.0
"""How long a store may be silent while nothing else goes on."""

GAP_S: Final = 300.0
"""After so long without a failure the next one is another outage."""


class Stopping:
    """Why the driver is to stop.

    Attributes:
        reason: empty while it is not.
        may_write: whether what it leaves is still its own to write down; not so once another has its lease.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.may_write = True

    def lose(self, reason: str) -> None:
        """Makes the main thread stop, and write no more."""
        self.may_write = False
        self.stop(reason)

    def stop(self, reason: str) -> None:
        """Makes the main thread stop as on SIGTERM, once: a second signal would cut short what it still writes."""
        if not self.reason:
            self.reason = reason
            os.kill(os.getpid(), signal.SIGTERM)


class StoppedError(RuntimeError):
    """A sweep that was stopped; the message says why. Finished work is kept, and the same sweep goes on from it."""


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the driver as Ctrl-C does, so that it leaves everything in order.

    Python lets only the main thread do this.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("A sweep must run in the main thread, because only there it can be stopped safely.")
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Outage:
    """An outage of a store, or of several that are used together.

    Args:
        tell: told once when it begins.
        clock: seconds that only grow.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._since_s: float | None = None
        self._failed_s = 0.0

    def tolerate(self, error: Exception, is_idle: bool = True) -> None:
        """Returns where the same call may be made again later; raises `error` where the outage has lasted too long.

        Args:
            is_idle: whether nothing else goes on meanwhile, which would be cut off.
        """
        now = self._clock()
        before_s, self._failed_s = self._failed_s, now
        if self._since_s is None or now - before_s > GAP_S:
            self._since_s = now
            self._tell(f"{str(error).rstrip('.')}; the work that needs it waits.")
        elif is_idle and now - self._since_s > LIMIT_S:
            raise error

    def is_over(self) -> None:
        """The store has answered."""
        self._since_s = None
