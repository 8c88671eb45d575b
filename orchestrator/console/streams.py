"""Standard output and error that may be closed, full, without a reader, or unable to write every sign.

That is said once and raised nowhere: a sweep, or a thread of its driver, must not end because nobody reads of it.
"""

import io
import os
import sys
from pathlib import Path
from typing import Any, Final, TextIO

from trainables.errors import InputError

STREAMS: Final = (0, 1, 2)


class _Tolerant(io.FileIO):
    """A stream that goes on when it cannot be written any more; what it is then given is lost.

    Attributes:
        fault: why, and empty before.
    """

    fault = ""

    def write(self, data: Any, /) -> int:
        try:
            return memoryview(data).nbytes if self.fault else super().write(data)
        except OSError as error:
            self.fault = error.strerror or str(error)
        if sys.stdout is not None and self.fileno() == sys.stdout.fileno():
            print(f"ponderay: Standard output takes no more ({self.fault}); the rest is not shown.", file=sys.stderr)
        return memoryview(data).nbytes


def open_streams() -> None:
    """Has no print raise; what the encoding lacks is written as an escape, such as \\xe9.

    Raises:
        InputError: if standard output is closed, for then nobody would be answered.
    """
    is_closed = sys.stdout is None
    for descriptor in STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:  # the next file that is opened would get its number, and what is printed
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115  it stays
    sys.stderr = _tolerant(sys.stderr, 2)
    sys.stdout = _tolerant(sys.stdout, 1)
    if is_closed:
        raise InputError(
            "Standard output is closed, where the answer goes; redirect it, to /dev/null if it may be lost."
        )


def is_cut_off() -> bool:
    """Whether something that was printed could not be written."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Tolerant) and bool(raw.fault)


def _tolerant(stream: TextIO | None, descriptor: int) -> TextIO:
    """A stream to `descriptor` that no fault of writing ends; one that somebody else has put there is kept."""
    if stream is not None and stream not in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    buffer = io.BufferedWriter(_Tolerant(descriptor, "w", closefd=False))
    encoding, is_terminal = (stream.encoding, stream.isatty()) if stream else ("utf-8", False)
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=is_terminal or descriptor == 2)
