"""Phones from the CSV files of the paper's released code (arXiv:2006.01659), made of its aligner's output.

A row is a recording: `path` of its audio, `phonemes_39` its phones between blanks, silences joined to one `sil`. Where
the columns `phn`, `phn_starts` and `phn_ends` are there, they are the aligner's own intervals, in samples.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Final

from trainables.asr.data.config import SAMPLE_RATE_HZ
from trainables.asr.data.phones import PHONES, SILENCE, SPOKEN_NOISE
from trainables.errors import InputError

PATH, PHONEMES, INTERVALS = "path", "phonemes_39", ("phn", "phn_starts", "phn_ends")
_SILENCES: Final = ("", "sp", "sil")
_KNOWN: Final = frozenset((*PHONES, SILENCE, SPOKEN_NOISE))


@dataclass(frozen=True)
class AlignedRow:
    """Phones of one recording, of the 41; the times of each in seconds where the row has them."""

    phones: tuple[str, ...]
    times_s: tuple[tuple[float, float], ...] | None


def index(files: Iterable[Path]) -> dict[str, AlignedRow]:
    """Every row of the files that have such columns, by the name of the utterance.

    Raises:
        InputError: if a file cannot be read, or a row is broken or at odds with another of its name.
    """
    rows: dict[str, AlignedRow] = {}
    for file in files:
        for number, row in _rows(file):
            where, identity = f"{file}, line {number}", PurePosixPath(row[PATH]).stem
            phones = tuple(phone.lower() for phone in row[PHONEMES].split())
            unknown = [phone for phone in phones if phone not in _KNOWN]
            if unknown or not phones:
                given = repr(unknown[0]) if unknown else "none"
                raise InputError(
                    f"{where}: {PHONEMES} must have the 39 ARPAbet phones, sil and spn, but has {given}; correct it."
                )
            aligned = AlignedRow(phones, _times_s(row, phones, where))
            if rows.setdefault(identity, aligned) != aligned:
                raise InputError(f"{where}: {identity} has other phones elsewhere; remove one row.")
    return rows


def _rows(file: Path) -> Sequence[tuple[int, Mapping[str, str]]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.DictReader(opened, strict=True)
            if not {PATH, PHONEMES} <= set(reader.fieldnames or ()):
                return []  # another table, such as that of phones and their numbers
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} must be a CSV file in UTF-8: {error}.") from None
    for number, row in rows:
        if None in row or None in row.values():
            raise InputError(f"{file}, line {number} must have as many cells as the first line; correct it.")
    return rows


def _times_s(row: Mapping[str, str], phones: tuple[str, ...], where: str) -> tuple[tuple[float, float], ...] | None:
    """The start and end of each phone; None where the row has no intervals, or they are of other phones."""
    names, starts, ends = (row.get(column, "") for column in INTERVALS)
    try:
        spans = [(int(start), int(end)) for start, end in zip(starts.split(), ends.split(), strict=True)]
    except ValueError:
        raise InputError(f"{where}: phn_starts and phn_ends must be as many whole numbers; correct them.") from None
    if any(start > end for start, end in spans) or any(a[0] > b[0] for a, b in pairwise(spans)):
        raise InputError(f"{where}: phones must begin in their order and end no earlier than they begin; correct them.")
    times: list[tuple[str, int, int]] = []
    for name, (start, end) in zip(re.findall("'([^']*)'", names), spans, strict=False):
        phone = SILENCE if name.lower() in _SILENCES else name.lower()
        if phone == SILENCE and times and times[-1][0] == SILENCE:
            start = times.pop()[1]
        times.append((phone, start, end))
    if tuple(phone for phone, _, _ in times) != phones:
        return None
    return tuple((start / SAMPLE_RATE_HZ, end / SAMPLE_RATE_HZ) for _, start, end in times)
