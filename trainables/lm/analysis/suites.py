"""Suites of minimal sets of sentences in SyntaxGym's format, and the garden-path effect of each item."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trainables.errors import InputError
from trainables.lm.analysis.tables import rows_of

_COLUMNS: Final = ("item_number", "condition_name", "region_number", "region_name", "content")
_WORD: Final = re.compile(r"[^\s,.]+(?:[,.]+[^\s,.]+)*|[,.]")


@dataclass(frozen=True)
class Contrast:
    """What is compared: (plus[0] - plus[1]) - (minus[0] - minus[1]), of surprisal summed over the words of `region`."""

    region: str
    plus: tuple[str, str]
    minus: tuple[str, str]


@dataclass(frozen=True)
class Sentence:
    """An item's words in one condition, and the region that each word is in."""

    item: int
    condition: str
    words: tuple[str, ...]
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Suite:
    """Sentences of one design, in the order of their file."""

    name: str
    sentences: tuple[Sentence, ...]
    contrast: Contrast


_DESIGNS: Final = {
    "main verb / reduced relative": Contrast(
        "Disambiguator", ("reduced_ambig", "unreduced_ambig"), ("reduced_unambig", "unreduced_unambig")
    ),
    "NP/Z by object": Contrast("Verb", ("no-obj_no-comma", "no-obj_comma"), ("obj_no-comma", "obj_comma")),
    "NP/Z by ambiguous verb": Contrast("Verb", ("ambig_nocomma", "ambig_comma"), ("unambig_nocomma", "unambig_comma")),
}


def read(path: Path) -> Suite:
    """The suite in the file; commas and full stops at a word's edge are words of their own.

    Raises:
        InputError: if the file is no suite of a known design, or one of its items is incomplete.
    """
    sentences = _sentences(path, rows_of(path, _COLUMNS, ","))
    conditions = {sentence.condition for sentence in sentences}
    contrast = next((design for design in _DESIGNS.values() if conditions == {*design.plus, *design.minus}), None)
    if contrast is None:
        known = "; ".join(f"{name} ({', '.join(design.plus + design.minus)})" for name, design in _DESIGNS.items())
        raise InputError(
            f"The conditions of {path} must be those of a known design, but are {', '.join(sorted(conditions))}; "
            f"rename them to those of one of: {known}."
        )
    suite = Suite(path.stem, sentences, contrast)
    _check(suite)
    return suite


def effects(suite: Suite, bits: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The contrast of each item, in the order in which items first occur.

    Args:
        suite: the sentences.
        bits: of each sentence, the surprisal of each word.

    Raises:
        InputError: if an item lacks a condition, or a sentence the critical region.
    """
    _check(suite)
    sums = [
        np.asarray(row, np.float64)[np.array(sentence.regions) == suite.contrast.region].sum()
        for sentence, row in zip(suite.sentences, bits, strict=True)
    ]
    conditions = suite.contrast.plus + suite.contrast.minus
    cells = np.array([[sums[places[condition]] for condition in conditions] for places in _by_item(suite).values()])
    result: NDArray[np.float64] = (cells[:, 0] - cells[:, 1]) - (cells[:, 2] - cells[:, 3])
    return result


def _sentences(path: Path, rows: Iterable[Mapping[str, str]]) -> tuple[Sentence, ...]:
    sentences: dict[tuple[int, str], dict[int, Mapping[str, str]]] = {}
    for row in rows:
        item, region = (_whole(path, row, column) for column in ("item_number", "region_number"))
        regions = sentences.setdefault((item, row["condition_name"]), {})
        if region in regions:
            place = f"region {region} of item {item}, {row['condition_name']}"
            raise InputError(f"{path} must have each region once, but has {place}, twice; remove one.")
        regions[region] = row
    made = []
    for (item, condition), regions in sentences.items():
        in_order = [regions[number] for number in sorted(regions)]
        pairs = [(word, row["region_name"]) for row in in_order for word in _WORD.findall(row["content"])]
        made.append(Sentence(item, condition, tuple(word for word, _ in pairs), tuple(region for _, region in pairs)))
    return tuple(made)


def _whole(path: Path, row: Mapping[str, str], column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise InputError(f"{column} in {path} must be a whole number, but is {row[column]!r}; correct it.") from None


def _by_item(suite: Suite) -> dict[int, dict[str, int]]:
    """The index of the sentence, by item and condition."""
    items: dict[int, dict[str, int]] = {}
    for index, sentence in enumerate(suite.sentences):
        items.setdefault(sentence.item, {})[sentence.condition] = index
    return items


def _check(suite: Suite) -> None:
    for sentence in suite.sentences:
        if suite.contrast.region not in sentence.regions:
            rule = f"Each sentence of {suite.name} must have words in the region {suite.contrast.region}"
            place = f"item {sentence.item}, {sentence.condition},"
            raise InputError(f"{rule}, but {place} has none; add them, or remove the item.")
    for item, places in _by_item(suite).items():
        if missing := [c for c in suite.contrast.plus + suite.contrast.minus if c not in places]:
            rule = f"Each item of {suite.name} must have every condition"
            raise InputError(f"{rule}, but item {item} lacks {missing[0]}; add it, or remove the item.")
