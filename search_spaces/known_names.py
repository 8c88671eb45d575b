"""The names that there are, as a message lists them for whoever has typed one that there is not."""

import difflib
from collections.abc import Iterable
from typing import Final

MOST_NAMED: Final = 20


def known_names(names: Iterable[str], typed: str = "", most: int = MOST_NAMED) -> str:
    """`a, b and 3 more; the nearest is 'b'`, without a full stop; `none` where there is none.

    Args:
        typed: what somebody took for one of them; without anything like it no name is the nearest.
        most: of more names the first so many stand there.
    """
    known = list(names)
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    near = _nearest(known, typed)
    return (", ".join(known[:most]) or "none") + more + (f"; the nearest is {near!r}" if near else "")


def _apart(name: str, typed: str) -> float:
    """How far apart two lists of settings, such as `lr=0.1,width=8`, are: up to one for each."""
    one, other = (dict(part.partition("=")[::2] for part in text.split(",")) for text in (name, typed))
    apart = 0.0
    for path in one.keys() | other.keys():
        a, b = one.get(path), other.get(path)
        try:
            x, y = float(a or ""), float(b or "")
            apart += abs(x - y) / (abs(x) + abs(y)) if x != y else 0.0
        except ValueError:
            apart += a != b
    return apart


def _nearest(known: list[str], typed: str) -> str:
    """The nearest name: of settings by their values, else by likeness, whatever the case, or what holds it."""
    near = min(known, key=lambda name: _apart(name, typed), default="") if "=" in typed else ""
    if near and _apart(near, typed) < len(typed.split(",")):
        return near
    by_small = {name.lower(): name for name in reversed(known)}
    small = typed.lower()
    matches = difflib.get_close_matches(small, by_small, n=1) or [name for name in by_small if small and small in name]
    return by_small[matches[0]] if matches else ""
