"""How a running driver is asked to stop, from whatever thread, and why."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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
        """Has the main thread stop, and write no more."""
        self.may_write = False
        self.stop(reason)

    def stop(self, reason: str) -> None:
        """Has the main thread stop as on SIGTERM, once: what it then still writes is not to be cut short."""
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
