"""What a declared sweep must be before anything in it is looked at: a name to keep, and values of the right kind.

A sweep and its parts are `Any` here: a dataclass takes whatever it is given, and which types that has is the question.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from search_spaces.bounds import MOST_SEED, MOST_SEEDS
from search_spaces.names import check_sweep_name
from search_spaces.value_lists import is_list
from trainables.config import as_json, fields_of, is_config, refuse_sets, restored, secrets_of
from trainables.errors import InputError, shown
from trainables.metric import NAME_RULE, is_metric_name
from trainables.secret import plain, variable_of

KINDS: Final[Mapping[str, str]] = {
    "conditions": "Condition",
    "objectives": "Objective",
    "prerequisites": "Prerequisite",
    "seeds": "int",
}
"""What each list of a sweep holds."""

SINGLE: Final[Mapping[str, str]] = {
    "search": "Search",
    "sequential": "Sequential",
    "resources": "Resources",
    "confirms": "Confirmation",
}
"""What else a sweep may have, of one type each."""

TEXTS: Final[Mapping[str, bool]] = {"description": False, "trainable": True, "claims": False, "declared_at": False}
"""What is text, and whether there must be some."""

PAIRINGS: Final = ("none", "seeds")
QUESTIONS: Final = ("reference", "front")
DISTRIBUTIONS: Final = ("Real", "Integer", "Choice", "Exponential")
SAMPLERS: Final = ("tpe", "nsga2", "random", "grid", "qmc", "gp")


def check_declaration(sweep: Any) -> None:
    """Raises InputError at the first value that cannot stand in a sweep."""
    check_sweep_name(sweep.name)
    name = sweep.name
    for field, is_needed in TEXTS.items():
        if not isinstance(value := getattr(sweep, field), str) or (is_needed and not value):
            raise InputError(f"{name}: `{field}` must be text, but got {value!r}.")
        _check_storable(name, field, value)
    if not isinstance(sweep.reference, str | None):
        raise InputError(f"{name}: `reference` must be the name of a condition, but got {sweep.reference!r}.")
    for field, kind in KINDS.items():
        _check_list(name, field, kind, getattr(sweep, field))
    for field, single in SINGLE.items():
        if (value := getattr(sweep, field)) is not None and type(value).__name__ != single:
            raise InputError(f"{name}: `{field}` must be of type {single}, but got {value!r}.")
    for objective in sweep.objectives:
        metric: object = objective.metric
        if not isinstance(metric, str) or not metric or "@" in metric:
            raise InputError(
                f"{name}: an objective is a metric's name, without that of an evaluation behind @, but got {metric!r}."
            )
        if not is_metric_name(metric):
            raise InputError(f"{name}: a metric's name must {NAME_RULE}, but got {shown(metric)}.")
        if objective.direction not in ("minimize", "maximize"):
            raise InputError(f"{name}: an objective is to minimize or maximize, but got {objective.direction!r}.")
    for condition in sweep.conditions:
        if not isinstance(condition.values, Mapping):
            raise InputError(f"{name}: a condition is a name and values by config path, but got {condition!r}.")
        if "seed" in condition.values:
            raise InputError(f"{name}: `seed` is no setting of a condition; `seeds` lists them for all conditions.")
        whose = f"{name}, condition {condition.name!r}"
        _check_resources(whose, condition.resources)
        if condition.prerequisites is not None:
            _check_list(whose, "prerequisites", "str", condition.prerequisites)
        _check_list(whose, "computed_from", "str", condition.computed_from)
    _check_prerequisites(sweep)
    if len(sweep.seeds) > MOST_SEEDS:
        raise InputError(f"{name}: a condition may have at most {MOST_SEEDS:,} seeds, but got {len(sweep.seeds):,}.")
    for seed in sweep.seeds:
        if not 0 <= seed <= MOST_SEED:
            raise InputError(f"{name}: a seed must be a whole number from 0 to {MOST_SEED}, but got {shown(seed)}.")
    if sweep.search:
        _check_search(name, sweep.search)
    if sweep.sequential:
        _check_whole(name, "minimum", sweep.sequential.minimum)
        _check_number(name, "error_rate", sweep.sequential.error_rate)
    words: list[tuple[str, object, tuple[str, ...]]] = [("pairing", sweep.pairing, PAIRINGS)]
    words += [("question", sweep.sequential.question, QUESTIONS)] if sweep.sequential else []
    words += [("sampler", sweep.search.sampler, SAMPLERS)] if sweep.search else []
    for field, word, known in words:
        if word not in known:
            raise InputError(f"{name}: `{field}` must be one of {', '.join(known)}, but got {word!r}.")
    _check_config(name, sweep.base)


def _check_list(name: str, field: str, kind: str, values: object) -> None:
    """The kinds are named, not imported: they stand in the module that imports this one."""
    if not is_list(values):
        raise InputError(f"{name}: `{field}` must be a list of {kind}, but got {values!r}.")
    for value in values:
        if type(value).__name__ != kind:
            raise InputError(f"{name}: `{field}` must be a list of {kind}, but {value!r} is in it.")


def _check_prerequisites(sweep: Any) -> None:
    names = [prerequisite.name for prerequisite in sweep.prerequisites]
    for prerequisite in sweep.prerequisites:
        for field in ("name", "trainable", "config_path"):
            _check_storable(sweep.name, f"prerequisites.{field}", str(getattr(prerequisite, field)))
        _check_resources(f"{sweep.name}, prerequisite {prerequisite.name!r}", prerequisite.resources)
    if len(set(names)) < len(names):
        raise InputError(f"{sweep.name}: the names of prerequisites must differ, but got {', '.join(names)}.")


def _check_resources(whose: str, value: object) -> None:
    if value is not None and type(value).__name__ != "Resources":
        raise InputError(f"{whose}: `resources` must be of type Resources, but got {value!r}.")


def _check_search(name: str, search: Any) -> None:
    """Raises InputError at a value of the wrong kind, and at a search over nothing or over the seed."""
    if not isinstance(search.space, Mapping) or not search.space:
        raise InputError(f"{name}: the `space` of a search must name at least one config path.")
    if "seed" in search.space:
        raise InputError(f"{name}: `seed` cannot be searched; `seeds` lists them for all conditions.")
    for path, distribution in search.space.items():
        if type(distribution).__name__ not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise InputError(f"{name}: `{path}` must be searched by one of {known}, but got {distribution!r}.")
    _check_whole(name, "num_trials", search.num_trials)
    _check_whole(name, "seed", search.seed)
    _check_list(name, "constraints", "Constraint", search.constraints)
    for constraint in search.constraints:
        if not is_metric_name(constraint.metric):
            raise InputError(f"{name}: a constraint's metric must {NAME_RULE}, but got {shown(constraint.metric)}.")
        _check_number(name, "at_most", constraint.at_most)
    if not isinstance(search.pruned, bool):
        raise InputError(f"{name}: `pruned` must be True or False, but got {search.pruned!r}.")
    if search.halving is not None:
        _check_halving(name, search.halving)


def _check_halving(name: str, halving: Any) -> None:
    if type(halving).__name__ != "Halving":
        raise InputError(f"{name}: `halving` must be of type Halving, but got {shown(halving)}.")
    if not is_metric_name(halving.metric):
        raise InputError(f"{name}: the metric of `halving` must {NAME_RULE}, but got {shown(halving.metric)}.")
    for field, least in (("first", 1), ("factor", 2)):
        _check_whole(name, field, value := getattr(halving, field))
        if value < least:
            raise InputError(f"{name}: `{field}` of `halving` must be at least {least}, but got {value}.")
    if halving.direction not in ("minimize", "maximize"):
        raise InputError(
            f"{name}: the direction of `halving` must be minimize or maximize, but got {halving.direction!r}."
        )


def _check_whole(name: str, field: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name}: `{field}` must be a whole number, but got {value!r}.")


def _check_number(name: str, field: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InputError(f"{name}: `{field}` must be a number, but got {value!r}.")


def _check_storable(name: str, field: str, text: str) -> None:
    """Raises InputError at half of a pair, which no database, file or message takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        sign = text[error.start]
        raise InputError(f"{name}: `{field}` must be text that UTF-8 can write, but has {sign!r}; remove it.") from None


def _check_config(name: str, base: object) -> None:
    if isinstance(base, type) or not is_config(base):
        raise InputError(
            f"{name}: `base` must be a Config, a frozen pydantic model or a dataclass, with values, but got {base!r}."
        )
    kind = type(base).__name__
    if isinstance(base, BaseModel) and not base.model_config.get("frozen"):
        raise InputError(
            f"{name}: the config {kind} can be changed; give its class `model_config = dict(frozen=True)`."
        )
    seed = fields_of(base).get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(f"{name}: the config {kind} must have a field `seed` with a whole number.")
    check_json(name, base)


def check_json(name: str, base: object) -> None:
    """Raises InputError where the config, which workers get as JSON, does not come back as it was."""
    kind = type(base).__name__
    for field, value in fields_of(base).items():
        refuse_sets(value, f"{name}: `{field}` of {kind}")
    fields = ((variable_of(own), plain(getattr(owner, own))) for _, owner, own in secrets_of(base))
    secrets = {variable: text for variable, text in fields if text is not None}
    try:
        text = json.dumps(as_json(base), allow_nan=False, ensure_ascii=False)
        again = restored(type(base), json.loads(text.encode()), secrets)
    except Exception as error:
        reason = f"{error}".splitlines()[0].rstrip(".")
        raise InputError(f"{name}: the config {kind} cannot be written as JSON and read again: {reason}.") from error
    if again != base:
        raise InputError(
            f"{name}: the config {kind} is another one when it is written as JSON and read again: {again!r}."
        )
