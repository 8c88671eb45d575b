"""Aligner files: Praat TextGrids with a tier `phones`, as the Montreal Forced Aligner writes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from praatio import textgrid
from praatio.utilities.errors import PraatioException

from trainables.asr.data.phones import PHONES, SILENCE, SPOKEN_NOISE
from trainables.errors import InputError

TIER: Final = "phones"
_SILENCES: Final = ("", "sil", "sp", "<eps>")
_NOISES: Final = ("spn", "<unk>")


@dataclass(frozen=True)
class Interval:
    """One phone from `start_s` to `end_s`."""

    phone: str
    start_s: float
    end_s: float


def index(folder: Path) -> dict[str, Path]:
    """Every TextGrid below `folder` by the name of its utterance.

    Raises:
        InputError: if an utterance has two that differ.
    """
    grids: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.TextGrid")):
        first = grids.setdefault(path.stem, path)
        if first is not path and first.read_bytes() != path.read_bytes():
            raise InputError(f"{path.stem} must have one TextGrid, but {first} and {path} differ; remove one.")
    return grids


def read(path: Path) -> tuple[Interval, ...]:
    """The intervals of the tier `phones`; silences are `sil`, spoken noise is `spn`.

    Raises:
        InputError: if the file is no TextGrid, or has no such tier with intervals.
    """
    try:
        grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=True, reportingMode="silence")
        tier = grid.getTier(TIER)
    except (PraatioException, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{path} must be a TextGrid with a tier {TIER!r}: {reason}") from None
    if not isinstance(tier, textgrid.IntervalTier) or not tier.entries:
        kind = "points" if tier.entries else "nothing"
        raise InputError(f"{path}: its tier {TIER!r} must have intervals, but has {kind}; align it anew.")
    return tuple(Interval(_plain(entry.label), entry.start, entry.end) for entry in tier.entries)


def to_arpabet(phone: str, path: Path) -> str:
    """`phone` without stress, one of the 41.

    Raises:
        InputError: if it is another set's.
    """
    plain = phone.rstrip("012").lower()
    if plain not in (*PHONES, SILENCE, SPOKEN_NOISE):
        raise InputError(
            f"{path}: {phone!r} is not one of the 39 ARPAbet phones, sil or spn; "
            "`--set data.phones=textgrid_found` takes the aligner's own set."
        )
    return plain


def _plain(label: str) -> str:
    label = label.strip()
    if label.lower() in _SILENCES:
        return SILENCE
    return SPOKEN_NOISE if label.lower() in _NOISES else label
