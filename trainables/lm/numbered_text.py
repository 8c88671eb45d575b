"""Texts in three parts as numbers of words: three files, or one file that is cut."""

import hashlib
import io
import re
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainables.data_root import data_root
from trainables.errors import DataWarning, InputError
from trainables.lm.text_config import Data, Files, OneFile, Tokens
from trainables.texts import documentation, read_text, unreadable

EOS: Final = "<eos>"
UNK: Final = "<unk>"
PARTS: Final = ("train", "validation", "test")
MAX_UNKNOWN: Final = 0.2
"""Share of a part's tokens above which the user is warned."""

_HYPHENS: Final = "\\-'\u2019\u2010\u2011\u00b7\u2027\u05f3\u05f4"
"""What joins two words to one: hyphens, apostrophes, the dot of Catalan and the quotes of Hebrew abbreviations."""

_EXTENDS: Final = "\u200c\u200d\U0001f3fb-\U0001f3ff"
"""What belongs to the sign before it, in any text: two joiners, the five tones of skin."""

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberedText:
    """A text in three parts.

    Attributes:
        words: the vocabulary; a word's index is its number.
        parts: numbers of the running tokens.
        num_unknown: by part, how many of its tokens are `<unk>` for want of a number; not those that the text says.
    """

    words: tuple[str, ...]
    parts: Mapping[str, Numbers]
    num_unknown: Mapping[str, int]


@dataclass(frozen=True)
class _File:
    """A part's text (of one file: all parts'), what to set for another, and what tells that it has changed."""

    path: Path
    remedy: str
    modified_ns: int
    size: int


@dataclass(frozen=True, eq=False)
class _Text:
    """All tokens of a text by part, numbered in the order in which they first occur."""

    words: list[str]
    parts: Mapping[str, Numbers]
    digest: str


def tokens_of(text: str, tokens: Tokens) -> list[str]:
    """The tokens of all lines, each line with one `<eos>` at its end."""
    split = _words_of(text).findall if tokens == "words" else str.split
    every_token: list[str] = []
    for line in io.StringIO(text, newline=None):
        words = split(line)
        every_token += words if words and words[-1] == EOS else [*words, EOS]
    return every_token


def _words_of(text: str) -> re.Pattern[str]:
    """What is one token of this text: a word, or another sign.

    Combining marks and signs of format, such as the soft hyphen, belong to the sign before them, and so does a picture
    behind a joiner (Unicode Standard Annex 29, rules WB3c and WB4); `\\w` has none of them. A sign of format by itself
    is nothing, and the space of no width is a blank.
    """
    kinds = [(re.escape(sign), unicodedata.category(sign)) for sign in sorted(set(text) - {"\u200b"})]
    marks = "".join(sign for sign, kind in kinds if kind.startswith("M"))
    formats = "".join(sign for sign, kind in kinds if kind == "Cf")
    extends = f"{_EXTENDS}{marks}{formats}"
    word, sign = rf"\w[\w{extends}]*", rf"[^\s\u200b{formats}][{extends}]*"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    return re.compile(rf"{EOS}|{UNK}|{word}(?:[{_HYPHENS}]{word})*|{flag}|{sign}(?:(?<=\u200d)(?!\w){sign})*")


def load(config: Data) -> NumberedText:
    """The text that `config` names, kept in this process until a file changes.

    Raises:
        InputError: if a text cannot be read, is not in UTF-8 or is too short.
    """
    text = _load(config, _find(config.text))
    for part in PARTS[1:]:
        share = text.num_unknown[part] / len(text.parts[part])
        if share > MAX_UNKNOWN:
            warnings.warn(
                f"{100 * share:.1f} % of the tokens of the {part} part are unknown words, more than "
                f"{100 * MAX_UNKNOWN:.0f} %; train on more of the text, or let more words in with `data.vocabulary`.",
                DataWarning,
                stacklevel=2,
            )
    return text


def fingerprint(config: Data) -> str:
    """The hash of the bytes of all files.

    Raises:
        InputError: if a text cannot be read, is not in UTF-8 or is too short.
    """
    load(config)
    return _read(config.text, _find(config.text)).digest


@lru_cache(maxsize=2)
def _load(config: Data, files: tuple[_File, ...]) -> NumberedText:
    text = _read(config.text, files)
    parts = {part: text.parts[part][: getattr(config, f"num_{part}_tokens")] for part in PARTS}
    limits = config.vocabulary
    counts = np.bincount(parts["train"], minlength=len(text.words))
    order = np.argsort(-counts, kind="stable")  # by falling count, then by first occurrence
    is_special = np.isin(order, [text.words.index(EOS), text.words.index(UNK)])
    is_in = is_special | (counts[order] >= limits.min_count)
    if limits.max_size is not None:
        is_in &= is_special | (np.cumsum(~is_special) <= limits.max_size - 2)
    chosen = order[is_in]
    words = tuple(text.words[number] for number in chosen)
    numbers = np.full(len(text.words), -1, np.int64)
    numbers[chosen] = np.arange(len(chosen))
    num_unknown = {part: int((numbers[parts[part]] < 0).sum()) for part in PARTS}
    numbers[numbers < 0] = words.index(UNK)
    return NumberedText(words, {part: numbers[parts[part]] for part in PARTS}, num_unknown)


@lru_cache(maxsize=2)
def _read(text: Files | OneFile, files: tuple[_File, ...]) -> _Text:
    contents = [read_text(file.path, file.remedy) for file in files] or [documentation("data.text.path")]
    digests = b"".join(hashlib.sha256(content.encode()).digest() for content in contents)
    if isinstance(text, OneFile):
        lines = list(io.StringIO(contents[0], newline=None))
        to_test = len(lines) - int(len(lines) * text.test_share)
        to_validation = to_test - int(len(lines) * text.validation_share)
        cut = lines[:to_validation], lines[to_validation:to_test], lines[to_test:]
        contents = ["".join(part) for part in cut]
    numbers: dict[str, int] = {}
    parts = {}
    for part, content in zip(PARTS, contents, strict=True):
        tokens = tokens_of(content, text.tokens)
        if len(tokens) < 2:
            remedy = f"give a longer text with `data.text.root` or `data.text.{part}`"
            if isinstance(text, OneFile):
                remedy = (
                    "give a text of more lines with `data.text.path`, or set `data.text.validation_share` and "
                    "`data.text.test_share`"
                )
            rule = f"The {part} part of the text must have at least 2 tokens"
            raise InputError(f"{rule}, but has {len(tokens)}; {remedy}.")
        parts[part] = np.array([numbers.setdefault(token, len(numbers)) for token in tokens], np.int64)
    for special in (EOS, UNK):
        numbers.setdefault(special, len(numbers))
    return _Text(list(numbers), parts, hashlib.sha256(digests).hexdigest()[:16])


def _find(text: Files | OneFile) -> tuple[_File, ...]:
    """One file for all parts, or one for each; none is Python's documentation."""
    if isinstance(text, OneFile):
        return (_file(text.path, "set `data.text.path`"),) if text.path else ()
    root = data_root(text.root, "data.text.root")
    return tuple(_file(root / getattr(text, part), f"set `data.text.root` or `data.text.{part}`") for part in PARTS)


def _file(path: Path, remedy: str) -> _File:
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable(path, remedy, error) from None
    return _File(path, remedy, status.st_mtime_ns, status.st_size)
