"""What the sources show and say, with the sweep and the command that answers each."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from search_spaces import claim_file
from search_spaces.claim import Claim, NumberClaim
from search_spaces.find import find_sweep
from search_spaces.source_items import ITEMS, Item
from search_spaces.sweep import Sweep
from trainables.config import flatten
from trainables.errors import InputError


def can_answer(name: str, claim: Claim) -> bool:
    """Whether the conditions of the claim have, in the sweep `name`, the settings that it was published of.

    What only a run tells, such as the size of a vocabulary, is not asked. A barred claim is answered by nothing.
    """
    if isinstance(claim, NumberClaim) and claim.bar:
        return False
    allowed = {path: (required,) for path, required in claim.setting.requires.items()} | dict(claim.setting.any_of)
    configs = (_config(name, condition) for place in claim.places for condition in place.conditions)
    return all(config.get(path, "") in texts for config in configs for path, texts in allowed.items())


@cache
def _config(name: str, condition: str) -> Mapping[str, str]:
    """The settings of a condition as text, by path."""
    sweep = _sweep(name)
    config = sweep.config(sweep.condition(condition), sweep.seeds[0])
    return {path: str(value) for path, value in flatten(config).items()}


@cache
def _sweep(name: str) -> Sweep:
    return find_sweep(name)


VERIFY = "ponderay verify SWEEP"
FILES: Final = ("asr", "act", "lm")


@dataclass(frozen=True)
class SourceRow:
    """A table, figure or section, or one statement.

    Attributes:
        kind: item, or statement.
        num_numbers, num_statements: claims that name the place.
        why: why nothing answers it; empty where something does.
    """

    source: str
    place: str
    kind: str
    says: str
    num_numbers: int
    num_statements: int
    sweeps: tuple[str, ...]
    command: str
    why: str


def items() -> list[SourceRow]:
    """A row for each table, figure and section, in the order of the sources."""
    return [_item_row(item) for item in ITEMS]


def everything() -> list[SourceRow]:
    """The rows of `items`, and behind each those of its statements; a statement stands where it is named first."""
    rows, seen = [], set[str]()
    for item in ITEMS:
        rows.append(_item_row(item))
        for claim in _of(item):
            if not isinstance(claim, NumberClaim) and claim.id not in seen:
                seen.add(claim.id)
                of, sweeps = claim.source, _sweeps([claim])
                rows.append(SourceRow(of.paper, of.place, "statement", claim.text, 0, 1, sweeps, VERIFY, ""))
    return rows


def of_place(words: str) -> list[SourceRow]:
    """The rows of `everything` whose source and place have these words.

    Raises:
        InputError: if there is none.
    """
    rows = [row for row in everything() if has_whole(f"{row.source}, {row.place}", words)]
    if not rows:
        known = ", ".join(dict.fromkeys(item.place for item in ITEMS))
        raise InputError(f"No source has a place {words!r}; there are {known}.")
    return rows


@cache
def all_claims() -> tuple[Claim, ...]:
    """What is shipped of all sources."""
    return tuple(claim for name in FILES for claim in claims_in(name))


def claims_in(name: str) -> tuple[Claim, ...]:
    """What is shipped of one source: `asr`, `act` or `lm`, a file in `published/`."""
    return claim_file.read(Path(__file__).with_name("published") / f"{name}.toml", name)


def _of(item: Item) -> Iterator[Claim]:
    """The claims that name the item, whole numbers only: `Table 5` is not in `Table 5.1`."""
    names = (item.place, *item.names)
    for claim in all_claims():
        if claim.source.paper == item.paper and any(has_whole(claim.source.place, name) for name in names):
            yield claim


def has_whole(text: str, name: str) -> bool:
    """Whether the name stands in the text, in capitals or not, and no number of it is a part of a longer one."""
    return bool(re.search(rf"(?<!\d)(?<!\w\.){re.escape(name)}(?!\.?\d)", text, re.IGNORECASE))


def _item_row(item: Item) -> SourceRow:
    claims = list(_of(item))
    num_numbers = sum(isinstance(claim, NumberClaim) for claim in claims)
    sweeps = item.sweeps or _sweeps(claims)
    command = "" if item.why else item.command
    return SourceRow(
        item.paper,
        item.place,
        "item",
        item.about,
        num_numbers,
        len(claims) - num_numbers,
        () if item.why else sweeps,
        command,
        item.why,
    )


def _sweeps(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The sweeps that can answer one of the claims, as they are."""
    return tuple(dict.fromkeys(sweep for claim in claims for sweep in claim.sweeps if can_answer(sweep, claim)))
