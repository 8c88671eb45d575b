"""Subject-verb agreement items in the format of Gulordava et al. 2018 (arXiv:1803.11138)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainables.errors import InputError
from trainables.lm.analysis.tables import rows_of

_UNK: Final = "<unk>"
_SHARED: Final = ("constr_id", "sent_id", "correct_number", "type", "prefix", "len_prefix", "sent")
_VALUES: Final = {"correct_number": ("sing", "plur"), "type": ("generated", "original")}


@dataclass(frozen=True)
class Item:
    """A sentence up to its verb, and two forms of the verb.

    Attributes:
        prefix: the words before the verb.
        correct: the form that agrees with the subject.
        wrong: the form that does not.
        is_plural: whether `correct` is.
        is_generated: whether the sentence is a nonsensical one, with the words of an original one replaced at random.
    """

    prefix: tuple[str, ...]
    correct: str
    wrong: str
    is_plural: bool
    is_generated: bool


def read(path: Path) -> tuple[Item, ...]:
    """The items of a tab-separated file, each two rows: `class` correct and wrong.

    The word of `sent` behind the prefix is not always the verb: in generated sentences it may be any.

    Raises:
        InputError: if the file cannot be read or is not of that format.
    """
    rows = rows_of(path, (*_SHARED, "form", "class"), "\t")
    return tuple(_item(f"Item {1 + i // 2} of {path}", rows[i : i + 2]) for i in range(0, len(rows), 2))


def _item(name: str, rows: Sequence[Mapping[str, str]]) -> Item:
    forms = {row["class"]: row["form"] for row in rows}
    if set(forms) != {"correct", "wrong"}:
        classes = " and ".join(row["class"] for row in rows)
        raise InputError(f"{name} must be two rows of class correct and wrong, but is {classes}; correct them.")
    for column in _SHARED:
        if rows[0][column] != rows[1][column]:
            values = " and ".join(repr(row[column]) for row in rows)
            raise InputError(f"{name} must have one {column} in both rows, but has {values}; correct it.")
    row = rows[0]
    for column, known in _VALUES.items():
        if row[column] not in known:
            rule = f"{name} must have {' or '.join(known)} as {column}"
            raise InputError(f"{rule}, but has {row[column]!r}; correct it.")
    for form in forms.values():
        if len(form.split()) != 1:
            raise InputError(f"{name} must have forms of one word, but has {form!r}; correct it, or remove the item.")
    given = row["prefix"].split()
    words = row["sent"].split()[: len(given)]  # in `prefix`, words outside the authors' vocabulary are `<unk>`
    if not given or row["len_prefix"] != str(len(given)):
        rule = f"{name} must have the number of words of prefix, at least 1, as len_prefix"
        raise InputError(f"{rule}, but has {row['len_prefix']!r} for {len(given)}; correct it.")
    if len(words) < len(given) or any(a not in (b, _UNK) for a, b in zip(given, words, strict=True)):
        rule = f"{name} must have a prefix that begins sent"
        raise InputError(f"{rule}, but has {row['prefix']!r} for {' '.join(words)!r}; correct it.")
    is_plural, is_generated = row["correct_number"] == "plur", row["type"] == "generated"
    return Item(tuple(words), forms["correct"], forms["wrong"], is_plural, is_generated)
