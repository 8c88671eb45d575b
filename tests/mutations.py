"""Seeded damage to files and JSON values, as crashes, editors and other programs leave it."""

import copy
import random
from collections.abc import Callable
from typing import Any

PIECES = (
    b"\n",
    b"\t",
    b"\0",
    b" ",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"-1",
    b"1e999",
    b"nan",
    b'"',
    b",",
    b"9" * 30,
)
VALUES = (None, True, 0, -1, 1e308, 10**30, "", "x" * 50, "\x1b[31m", "NaN", "Infinity", [], {}, [[]], "../x", "a\n")


def damaged(content: bytes, random: random.Random) -> bytes:
    """With a few bytes changed, lost, doubled, put between, or the end cut off."""
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 4, 8])):
        place = random.randrange(len(changed) + 1)
        match random.randrange(5):
            case 0:
                changed[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                del changed[place : place + random.choice([1, 3, 10, 100])]
            case 2:
                changed[place:place] = random.choice(PIECES)
            case 3:
                start = random.randrange(len(changed) + 1)
                changed[place:place] = changed[start : start + 50]
            case 4:
                del changed[place:]
    return bytes(changed)


def misshapen(value: Any, random: random.Random) -> Any:
    """A JSON value with parts replaced, lost, added or moved."""
    box = [copy.deepcopy(value)]
    for _ in range(random.choice([1, 1, 2, 4])):
        parts = list(_parts(box))
        part, put = random.choice(parts)
        match random.randrange(4):
            case 0:
                put(random.choice(VALUES))
            case 1 if isinstance(part, dict) and part:
                del part[random.choice(list(part))]
            case 1 if isinstance(part, list) and part:
                del part[random.randrange(len(part))]
            case 2 if isinstance(part, dict):
                part["unheard_of"] = 1
            case _:
                put(copy.deepcopy(random.choice(parts)[0]))
    return box[0]


def _parts(value: Any) -> list[tuple[Any, Callable[[Any], None]]]:
    """Everything below `value`, with what puts something else in its place."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    found: list[tuple[Any, Callable[[Any], None]]] = []
    for key in keys:
        found += [(value[key], lambda new, key=key: value.__setitem__(key, new)), *_parts(value[key])]
    return found
