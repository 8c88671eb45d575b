"""What can go wrong in a way that has a name."""

from collections.abc import Iterator

MOST_SHOWN = 120
MOST_SAID = 500
"""Characters of an error's text in a message, which shows all of a path."""


def shown(value: object) -> str:
    """A value as a message shows it: not all of one that is long."""
    try:
        text = repr(value)
    except ValueError:  # of a number with thousands of digits
        text = "a number with thousands of digits"
    except Exception:  # whatever a class of the user's raises there
        text = f"a value of type {type(value).__name__} without a text"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 20]}... ({len(text):,} characters)"


def text_of(error: BaseException) -> str:
    """The text of an exception; a class of the user's may fail to make it."""
    try:
        return str(error)
    except BaseException as fault:
        return f"its text cannot be made ({type(fault).__name__})"


def causes(error: BaseException, also_context: bool = False) -> Iterator[BaseException]:
    """The exception and what it was raised from, each once: `raise error from error` is a circle.

    Args:
        also_context: whether what was handled when it was raised counts too.
    """
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is one for one in seen):
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or (cause.__context__ if also_context else None)


def shortened(text: str) -> str:
    """The text of an error as a message has room for."""
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}... ({len(text):,} characters)"


class InputError(ValueError):
    """A user's mistake or a broken input: one line that says the rule, the value and the remedy."""


class DataWarning(UserWarning):
    """Something about the data that a user should know, though work can go on."""


class DivergedError(ArithmeticError):
    """A loss or gradient that is no longer a finite number; the message names the step."""


class NotFiniteError(DivergedError, ValueError):
    """NaN or infinity where a block of `conditional` needs a number; a model that made it has diverged."""
