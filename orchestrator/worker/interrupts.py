"""Signals that interrupt a trainable, which end its work whatever it makes of them.

It may call `sys.exit(1)`, as Lightning does, return as if all were done, or report what it has as if that were the end.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_open: list[list[BaseException]] = []
"""What has interrupted each block that this process is in."""

_by_default: set[signal.Signals] = set()
"""Signals that would end this process, but for the handler of a block."""


def raise_noted() -> None:
    """Raises again what has interrupted the trainable that is at work in this process; nothing where nothing has."""
    for noted in _open:
        if noted:
            raise noted[-1]


@contextmanager
def noted_interrupts() -> Iterator[list[BaseException]]:
    """What the handlers of signals raised within the block; they are those from before it.

    Python's handlers run in the main thread alone, so elsewhere nobody interrupts. A signal that ends the process does
    so behind the operation of C that it strikes: a library such as Lightning calls the handler that it finds, and takes
    the lack of one for leave to go on until it likes.
    """
    noted: list[BaseException] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
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
            noted.append(error)
            raise

    _by_default.update(number for number, handler in before.items() if handler is signal.SIG_DFL)
    for number, handler in before.items():
        if callable(handler) or number in _by_default:
            signal.signal(number, note)
    _open.append(noted)
    try:
        yield noted
    finally:
        _open.pop()
        _by_default.clear()
        for number, handler in before.items():
            if signal.getsignal(number) is note:
                signal.signal(number, handler)


def _put_back() -> None:
    """A process that the trainable forks, as a loader's, is ended by these signals at once."""
    for number in _by_default:
        signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_put_back)
