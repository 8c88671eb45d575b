"""Modules of the user's: imported by path, from the folder they are in, with one sentence for whatever goes wrong."""

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from pydantic import ValidationError

from trainables.config import explain
from trainables.errors import InputError, shortened, text_of

MACHINERY: Final = ("/importlib/", "/site-packages/", "/dist-packages/")
OURS: Final = Path(__file__).parents[1]
PACKAGES: Final = ("trainables", "search_spaces", "orchestrator", "ponderay")


@contextmanager
def in_one_sentence(subject: str) -> Iterator[None]:
    """A block of the user's code, of which a `sys.exit()` would end the command without a word.

    Args:
        subject: begins the sentence that says what it raised.

    Raises:
        InputError: for whatever it raises but an interruption.
    """
    try:
        yield
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InputError(f"{subject}: {said_at(error)}") from error


def import_module(path: str, subject: str) -> ModuleType:
    """The module at an import path.

    Args:
        subject: begins the sentence that says what its import raised.

    Raises:
        InputError: if it cannot be imported.
    """
    with in_one_sentence(f"{subject} cannot be imported"):
        return importlib.import_module(path)


def put_first(folder: str) -> None:
    """Lets modules in the folder be imported, before others of the same name, as Python does for a script's folder."""
    is_installed = any(part in f"{folder}/" for part in MACHINERY)
    if folder and sys.path[0] != folder and not is_installed:
        sys.path[:] = [folder, *(other for other in sys.path if other != folder)]
        importlib.invalidate_caches()


def root_of(path: str) -> str:
    """The folder from which the module at an import path is imported; empty where it cannot be found."""
    try:
        spec = find_spec(path)
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None or not spec.has_location:
        return ""
    depth = path.count(".") + (spec.submodule_search_locations is not None)
    return str(Path(spec.origin).resolve().parents[depth])


def said_at(error: BaseException) -> str:
    """Type and text of an exception in one line, and the user's own line of code that raised it."""
    if isinstance(error, ValidationError):
        sentence = explain(error).rstrip(".")
    else:
        sentence = f"{type(error).__name__}: {text_of(error)}".splitlines()[0].rstrip(".")
    sentence = shortened(sentence.rstrip(": "))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_user(frame.filename)]
    if isinstance(error, SyntaxError) or not frames:
        return f"{sentence}."
    return f"{sentence} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})."


def _is_of_user(file: str) -> bool:
    if file.startswith("<"):  # such as the `__init__` of a dataclass
        return False
    is_ours = any(Path(file).is_relative_to(OURS / package) for package in PACKAGES)
    return not is_ours and not any(part in file for part in MACHINERY)
