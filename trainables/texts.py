"""Texts: those that users bring, and one that every Python brings along."""

import importlib
from pathlib import Path

from trainables.errors import InputError


def read_text(path: Path, remedy: str) -> str:
    """The file's text; a byte order mark is none of it.

    Args:
        remedy: what to do about a file that cannot be used ("give another path"), for messages.

    Raises:
        InputError: if the file cannot be read or is not in UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, remedy, error) from None
    except UnicodeDecodeError as error:
        byte = f"its byte {error.start} is {error.object[error.start]:#04x}"
        raise InputError(f"The text {path} must be in UTF-8, but {byte}; convert it, or {remedy}.") from None


def unreadable(path: Path, remedy: str, error: OSError) -> InputError:
    """What a user is told of a file that cannot be read."""
    return InputError(f"The text {path} cannot be read: {error.strerror}; {remedy}.")


def documentation(setting: str) -> str:
    """Python's own language reference in alphabetical order of its topics.

    Args:
        setting: the config's field that gives another text, for messages.

    Raises:
        InputError: if this Python comes without it.
    """
    try:
        topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    except ImportError:
        raise InputError(f"This Python has no pydoc_data.topics; give a text with `{setting}`.") from None
    return "\n".join(topics[name] for name in sorted(topics))
