"""Configs as a page shows them: what differs between conditions as a table, what all share as a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_CONDITIONS: Final = 60
MAX_PATHS: Final = 12


@dataclass(frozen=True)
class Settings:
    """The configs of some conditions.

    Attributes:
        paths: those whose values differ.
        rows: of each condition its name and the values at `paths`.
        shared: path and value of all others.
        notes: what is left out.
    """

    paths: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    shared: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def settings(configs: Mapping[str, Mapping[str, str]], shown: Sequence[str]) -> Settings:
    """The configs of the conditions that are shown, as far as they are known; at most 60 conditions and 12 paths."""
    known = [name for name in dict.fromkeys(shown) if name in configs]
    kept = known[:MAX_CONDITIONS]
    paths = list(dict.fromkeys(path for name in kept for path in configs[name]))
    differing = [path for path in paths if len({configs[name].get(path) for name in kept}) > 1]
    notes = []
    if len(kept) < len(configs):
        notes.append(f"{len(kept)} of {len(configs):,} conditions shown; all are in MLflow.")
    if len(differing) > MAX_PATHS:
        notes.append(f"{MAX_PATHS} of {len(differing)} settings that differ shown: {', '.join(differing[MAX_PATHS:])}.")
    columns = tuple(differing[:MAX_PATHS])
    rows = tuple((name, tuple(configs[name].get(path, "") for path in columns)) for name in kept)
    shared = tuple((path, configs[kept[0]][path]) for path in paths if path not in set(differing)) if kept else ()
    return Settings(columns, rows, shared, tuple(notes))
