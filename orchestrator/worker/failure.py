"""How the end of a replicate by an exception is judged, and how it is told.

A checkpoint that a trainable cannot read, though it is what was written, is no fault of the training. torch advises to
unpickle such a file without looking, which runs whatever code is in it; that is passed on to nobody.
"""

import json
import lzma
import re
import struct
import subprocess
import tarfile
import traceback
import zipfile
import zlib
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

import torch
from torch.distributed import DistNetworkError, DistStoreError

from orchestrator.journal import folder as journal_folder
from search_spaces.redaction import redacted_text, redacted_traceback
from trainables.errors import DivergedError, InputError, causes, text_of

OUTSIDE_CAUSES: Final = (
    OSError, MemoryError, torch.OutOfMemoryError, BrokenProcessPool, DistNetworkError, DistStoreError
)  # fmt: skip
"""What may not happen again: a full disk, a lost mount or connection, a crowded card, a process that was killed."""

WRONG_PATHS: Final = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
"""The trainable's own mistake, but where the replicate's folder is what was lost."""

JOURNAL: Final = Path(journal_folder.__file__).parent

SAID_OF_MACHINES: Final = re.compile(
    r"can't allocate memory|Cannot allocate memory|error: out of memory|_STATUS_ALLOC_FAILED|_STATUS_NOT_INITIALIZED"
    r"|busy or unavailable|uncorrectable ECC|can't start new thread|DataLoader worker \(pid\(s\)"
    r"|DataLoader worker \(pid \d+\) is killed by signal: (?:Killed|Terminated)"
    r"|No space left on device|\(os error (?:4|5|11|12|23|24|28|104|110|111|122)\)|No usable temporary directory"
    r"|PytorchStreamWriter failed|inline_container\.cc\S* \. unexpected pos"
    r"|database is locked|database or disk is full|disk I/O error"
)
"""How torch, safetensors, SQLite and others say the same in errors that have no type for it.

Of numbers of the system those of interrupted, failed or refused work count: not 2, that a file is not there.
"""

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

MOST_OF_ERROR: Final = 4_000
"""Signs of an error's text that are recorded beside its traceback."""

MOST_OF_TRACEBACK: Final = 30_000
"""Signs of a traceback, of which an error of a megabyte is a part."""

MARGIN: Final = 4_000
"""Signs beyond a cut in which secrets are looked for too: more than a private key has."""


def is_outside(error: Exception) -> bool:
    """Whether the cause is none of the trainable's, so that the same work may end well another time.

    The cause may be what `error` was raised from, as where a library tells of a lost connection in its own words. What
    was merely handled is none: a mistake in going on without a file is the trainable's own.
    """
    if isinstance(error, WRONG_PATHS):
        frames = traceback.extract_tb(error.__traceback__)
        if any(Path(frame.filename).parent == JOURNAL for frame in frames):
            return True
    for cause in causes(error):
        if isinstance(cause, InputError | DivergedError):
            return False
        is_killed = isinstance(cause, subprocess.CalledProcessError) and cause.returncode < 0
        is_typed = isinstance(cause, OUTSIDE_CAUSES) and not isinstance(cause, WRONG_PATHS)
        if is_killed or is_typed or SAID_OF_MACHINES.search(text_of(cause)):
            return True
    return False


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


def in_one_line(error: Exception) -> str:
    """An error as tables and terminals take it: no line breaks, no control sequences, and not without an end."""
    text = text_of(error) if isinstance(error, InputError) else f"{type(error).__name__}: {text_of(error)}"
    line = " ".join(redacted_text(_beginning(text, MOST_OF_TRACEBACK).replace("\n", " ")).split())
    return "".join(sign if sign.isprintable() else "?" for sign in line[:MOST_OF_ERROR])


def traceback_of(error: Exception) -> str:
    """The traceback of the error that is handled, without secrets; of a long one its beginning and its end."""
    text = traceback.format_exc()
    for cause in causes(error, also_context=True):  # in our words where torch gives its advice, also in what led to it
        if ADVICE in (advice := text_of(cause)):
            text = text.replace(advice, words(cause))
    if len(text) <= MOST_OF_TRACEBACK:
        return redacted_traceback(text)
    half = MOST_OF_TRACEBACK // 2
    beginning, end = redacted_traceback(_beginning(text, half)), redacted_traceback(_beginning(text[::-1], half)[::-1])
    return f"{beginning[:half]}\n... ({len(text):,} characters)\n{end[-half:]}"


def _beginning(text: str, num_signs: int) -> str:
    """The first signs of a long text and a margin, without the word at the cut: half of a secret has no known form."""
    if len(text) <= num_signs:
        return text
    margin = text[num_signs : num_signs + MARGIN]
    return text[:num_signs] + re.sub(r"\S+\Z", "", margin)
