"""Signals that interrupt a trainable, which end its work whatever it makes of them.

It may call `sys.exit(1)`, as Lightning does, return as if all were done, or report what it has as if that were the end.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_noted: list[BaseException] = []


def raise_noted() -> None:
    """Raises again what has interrupted the trainable that is at work in this process; nothing where nothing has."""
    if _noted:
        raise _noted[-1]


@contextmanager
def noted_interrupts() -> Iterator[list[BaseException]]:
    """What the handlers of signals raised within the block; they are those from before it.

    Python's handlers run in the main thread alone, so elsewhere nobody interrupts. A signal that ends the process still
    does, but by a handler: a library such as Lightning calls the one that it finds, and else goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    _noted.clear()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if not callable(handler):
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        try:
            handler(number, frame)
        except BaseException as error:
            _noted.append(error)
            raise

    for number, handler in before.items():
        if callable(handler) or handler is signal.SIG_DFL:
            signal.signal(number, note)
    try:
        yield _noted
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:
                signal.signal(number, handler)
        _noted.clear()
