"""Every command of `ponderay` with its arguments and options, as the program itself says them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from orchestrator.cli.main import app


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: as it is typed, `--set`.
    """

    name: str
    is_flag: bool


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        words: `("data", "check")`.
        arguments: names of what has no dashes, in order.
    """

    words: tuple[str, ...]
    arguments: tuple[str, ...]
    options: tuple[Option, ...]

    @property
    def name(self) -> str:
        """The command as it is typed."""
        return " ".join(self.words)


def commands() -> tuple[Command, ...]:
    """All of them, those of groups too."""
    return tuple(_walk(typer.main.get_command(app), ()))


def _walk(group: Any, before: tuple[str, ...]) -> Iterator[Command]:
    for word, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from _walk(found, (*before, word))
            continue
        dashed = [one for one in found.params if one.opts[0].startswith("-") and one.name != "help"]
        plain = [one.name for one in found.params if not one.opts[0].startswith("-")]
        yield Command((*before, word), tuple(plain), tuple(Option(one.opts[0], one.is_flag) for one in dashed))
