"""Checkpoints whose content a trainable cannot read, though it is what was written: how that shows, and in which words.

torch advises to unpickle such a file without looking, which runs whatever code is in it. That is passed on to nobody.
"""

import json
import lzma
import re
import struct
import tarfile
import traceback
import zipfile
import zlib
from typing import Final

from trainables.errors import InputError, text_of

ADVICE: Final = "weights_only"
FORBIDDEN: Final = re.compile(r"Unsupported (?:global: GLOBAL|class) (\S+)")
"""How torch names what it does not load."""

OF_FORMATS: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    json.JSONDecodeError,
    UnicodeDecodeError,
    EOFError,
)
NAMED: Final = {"PickleError", "SafetensorError"}
"""Errors of formats whose modules are not imported here."""

OF_LOADERS: Final = (RuntimeError, ValueError, KeyError, TypeError, AttributeError, ImportError)
"""These count where something was being loaded: shapes that do not fit a model, a torn archive of torch.

Elsewhere they are the trainable's own: a mistake in going on would cost every checkpoint.
"""

OTHER_CAUSES: Final = (InputError, ArithmeticError, MemoryError, NotImplementedError)
LOADER: Final = re.compile(r"(^|_)(load|loads|unpickle|restore|setstate|set_state)(_|$)")


class UnreadableError(ValueError):
    """A file that a trainable could not read, in our words."""


def is_unreadable(error: Exception) -> bool:
    """Whether `error`, raised after a checkpoint was given and before any report, says that it cannot be read."""
    if isinstance(error, OTHER_CAUSES):
        return False
    if isinstance(error, OF_FORMATS) or NAMED & {kind.__name__ for kind in type(error).__mro__}:
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, OF_LOADERS) and any(LOADER.search(frame.name) for frame in frames)


def words(error: BaseException) -> str:
    """What is wrong with the file, in one line and without torch's advice."""
    text = text_of(error)
    if ADVICE not in text:
        return f"{type(error).__name__}: {' '.join(text.split())}".rstrip(": ")
    forbidden = FORBIDDEN.search(text)
    return f"it holds {forbidden[1]}, which is no plain data" if forbidden else "it is not what torch.save writes"


def in_our_words(error: Exception, name: str) -> Exception:
    """`error`, or the same failure where it holds torch's advice: that the file `name` cannot be read."""
    if ADVICE not in text_of(error):
        return error
    clear = f"{name} cannot be read: {words(error)}. Keep tensors, numbers, texts, lists and dicts in a checkpoint."
    return UnreadableError(clear).with_traceback(error.__traceback__)


def without_advice(text: str, error: BaseException | None) -> str:
    """The traceback `text` of `error` and of what led to it, in our words where torch gives its advice."""
    while error is not None:
        if ADVICE in (advice := text_of(error)):
            text = text.replace(advice, words(error))
        error = error.__cause__ or error.__context__
    return text
