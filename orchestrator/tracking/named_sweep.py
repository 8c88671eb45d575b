"""A sweep by any name that a user has for it."""

import json
from pathlib import PurePath

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.load import load_declaration, load_sweep
from search_spaces import find
from search_spaces.size import size_of, sized_name
from search_spaces.sweep import Sweep
from trainables.errors import InputError


def find_named(name: str, smoke: bool = False) -> Sweep:
    """The sweep with its code: an installed one, that of a place such as `digits.py:sweep`, or that of a study's name.

    A study says at which place its sweep was declared, so that after `run digits.py:sweep` the name `digits` will do.

    Raises:
        InputError: if there is none of that name, or the place declares it no more.
    """
    try:
        return find.find_sweep(name, smoke)
    except InputError:
        settings = read_settings()
        smoke = smoke or size_of(name) == "smoke"
        sized = sized_name(name, "smoke") if smoke else name
        text = None if ":" in name else load_declaration(sized, settings)
        declared = json.loads(text) if text else {}
        if "confirms" in declared:
            of = declared["confirms"]["sweep"]
            raise InputError(f"{name} confirms conditions of {of}, whose declaration it has; name {of}.") from None
        place = declared.get("declared_at", "")
        if not place:
            raise
    where = PurePath(place.rpartition(":")[0])
    if not settings.tracking_uri.startswith("sqlite:") and (where.is_absolute() or ".." in where.parts):
        raise InputError(f"{name} was run as {place}; name that place, for only your own word makes a program be run.")
    try:
        found = find.find_sweep(place, smoke)
    except InputError as error:
        raise InputError(f"{name} was run as {place}. {error}") from None
    if found.name != sized:
        raise InputError(
            f"{name} was run as {place}, which declares {found.name} now; name the place that declares it."
        )
    return found


def find_answerable(name: str) -> Sweep | None:
    """The sweep of that name, with its code or as it was recorded; None where it is neither."""
    try:
        return find_named(name)
    except InputError:
        return load_sweep(name, read_settings())
