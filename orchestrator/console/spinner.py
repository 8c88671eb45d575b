"""What a command that only reads is doing, on stderr: a spinner on a terminal, a plain line in a log."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.text import Text

from orchestrator.console.printing import brief_message, err


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Says `text` for as long as the block runs."""
    text = brief_message(text)
    if not err.is_terminal:
        err.print(f"{text} ...", markup=False, soft_wrap=True)
        yield
        return
    with err.status(Text(text)):
        yield
