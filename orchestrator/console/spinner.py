"""What a command that only reads is doing, on stderr: a spinner on a terminal, a plain line in a log."""

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.console.printing import err, said_briefly


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Says `text` for as long as the block runs."""
    text = said_briefly(text)
    if not err.is_terminal:
        err.print(f"{text} ...", markup=False, soft_wrap=True)
        yield
        return
    from rich.text import Text

    with err.status(Text(text)):
        yield
