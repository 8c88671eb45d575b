"""What was published of a sweep, from where the sweep says."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from search_spaces import claim_file
from search_spaces.claim import Claim
from search_spaces.size import plain_name
from search_spaces.sweep import Sweep
from search_spaces.value_lists import is_list
from trainables.errors import InputError, shown
from trainables.importing import import_module, in_one_sentence

FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def claims_of(sweep: Sweep) -> tuple[Claim, ...]:
    """The claims that a study of the sweep can be held against, numbers first; none where the sweep names none.

    The small size has the claims of the whole, though its results are comparable with nothing.

    Raises:
        InputError: if what the sweep names cannot be read, or yields something else.
    """
    name, place = plain_name(sweep.name), sweep.claims
    if not place:
        return ()
    if place.endswith(".toml"):
        claims: Iterable[Claim] = claim_file.read(Path(place), name)
    elif FUNCTION.fullmatch(place):
        claims = _yielded(sweep.name, place)
    else:
        raise InputError(
            f"{sweep.name}: `claims` must be `package.module:function` or the path of a .toml file, but got {place!r}."
        )
    return tuple(claim for claim in claims if name in claim.sweeps)


def _yielded(sweep: str, place: str) -> list[Claim]:
    """The claims of the function at an import path."""
    path, _, name = place.partition(":")
    module = import_module(path, f"{sweep}: `claims` {place!r}")
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"{sweep}: `claims` must name a function, but {path} has no function {name!r}.")
    with in_one_sentence(f"{sweep}: the claims of {place} cannot be made"):
        claims = list(function())
    for claim in claims:
        if not isinstance(claim, Claim):
            raise InputError(f"{sweep}: {place} must yield claims, but yielded {shown(claim)}.")
        for field, value in vars(claim).items():
            if isinstance(value, set | frozenset) or (field == "sweeps" and not is_list(value)):
                raise InputError(f"{sweep}: `{field}` of a claim must be a list, but {place} yields {shown(value)}.")
    return claims
