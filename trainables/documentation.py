"""A text that every Python brings along."""

import importlib

from trainables.errors import InputError


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
