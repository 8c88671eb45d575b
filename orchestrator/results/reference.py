"""The one condition that all others of a study are held against."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.results.named import condition_named
from orchestrator.results.study import Study
from search_spaces.known_names import known_names
from search_spaces.settings import declared_name, text_of
from search_spaces.sweep import Condition, Sweep

MOST_NAMED: Final = 5


@dataclass(frozen=True)
class Reference:
    """A study's reference.

    Attributes:
        name: empty where there is none, or several could be it.
        note: a sentence on a reference that is not the declared one, or on the several.
    """

    name: str
    note: str = ""


def find_reference(sweep: Sweep, study: Study, asked: str | None = None) -> Reference:
    """The reference that was `asked` for; else the declared one, or the only condition that is it with settings.

    With `--set` the declared one is that with these settings. Where several conditions are the declared reference with
    settings, there is none until the user says which.

    Raises:
        InputError: if the study has no condition of the name asked for, or several with settings.
    """
    if asked is not None:
        return Reference(condition_named(study, asked))
    if not sweep.reference:
        return Reference("")
    complete = {replicate.condition for replicate in study.replicates if replicate.state == "complete"}
    if sweep.reference in complete:
        return Reference(sweep.reference)
    (declared,) = (c for c in sweep.conditions if c.name == sweep.reference)
    found = [name for name in with_settings(declared, sweep, study) if name in complete]
    return _chosen(sweep.reference, found)


def with_settings(condition: Condition, sweep: Sweep, study: Study) -> dict[str, Mapping[str, str]]:
    """The recorded conditions that are `condition` with settings, and their settings as text by config path.

    Those with its own settings where it has some, else with any.
    """
    own = {path: text_of(value) for path, value in condition.settings.items()}
    others = {name for c in sweep.conditions for name in (c.name, c.declared)}
    found = {}
    for name in study.conditions:
        given = study.settings.get(name) or ({} if name in others else _in_older_name(name, condition.declared))
        if given and declared_name(name, given) == condition.declared and own in ({}, given):
            found[name] = given
    return found


def _in_older_name(name: str, declared: str) -> dict[str, str]:
    """What a name of an earlier version says: it has `,PATH=VALUE` of each setting behind `declared`."""
    if not name.startswith(f"{declared},"):
        return {}
    parts = name.removeprefix(f"{declared},").split(",")
    return {path: text for path, sign, text in (part.partition("=") for part in parts) if sign}


def _chosen(declared: str, found: list[str]) -> Reference:
    if not found:
        return Reference(declared)
    if len(found) == 1:
        return Reference(found[0], f"The reference is {found[0]}; {declared} is recorded with these settings only.")
    names = known_names(found, most=MOST_NAMED)
    note = (
        f"Nothing is compared with the reference, for {declared} is recorded with several settings: {names}. "
        f"Choose one by --reference {shlex.quote(found[0])}, or show less by --where PATH=VALUE."
    )
    return Reference("", note)
