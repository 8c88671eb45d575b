"""What `--set` changes in conditions: which paths a config has, and how a changed condition is called."""

import contextlib
import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from search_spaces.names import CONDITION_LENGTH
from search_spaces.redaction import redacted_leaf, redacted_value
from trainables.config import AnyConfig, as_json, content_hash, fields_of, is_config, with_value
from trainables.errors import InputError

if TYPE_CHECKING:
    from search_spaces.sweep import Condition, Sweep

C = TypeVar("C")

MOST_CHARACTERS: Final = 40
"""Of a value in a name."""

COUNTED: Final = re.compile(r",\d+ settings [0-9a-f]{8}\Z")
"""What ends a name that has no room for its settings."""


def paths(config: AnyConfig, prefix: str = "") -> Iterator[str]:
    """Every path of `config`, of whole parts too."""
    for name, value in fields_of(config).items():
        yield prefix + name
        if is_config(value):
            yield from paths(value, f"{prefix}{name}.")


def with_all(config: C, values: Mapping[str, Any]) -> C:
    """`config` with these values by path, one after the other."""
    for path, value in values.items():
        config = with_value(config, path, value)
    return config


def with_base_value(
    sweep: "Sweep", base: AnyConfig, conditions: Sequence["Condition"], path: str, value: object
) -> AnyConfig:
    """The base with `value`, where it has the path.

    Raises:
        InputError: if nothing has the path, a search draws it, or every condition that has it sets it itself.
    """
    if sweep.search and (drawn := [own for own in sweep.search.space if f"{path}.".startswith(f"{own}.")]):
        raise InputError(f"`{drawn[0]}` is what {sweep.name} searches, so `{path}` cannot be set; set another path.")
    configs = [with_all(base, c.values) for c in conditions]
    holders = [c for c, config in zip(conditions, configs, strict=True) if path in paths(config)]
    is_in_base = path in paths(base)
    if not is_in_base and not holders:
        _refuse_unknown(path, value, [base, *configs])
    changed = with_value(base, path, value) if is_in_base else base
    has_effect = any(path not in c.values for c in holders) or (is_in_base and base == changed)
    if conditions and not has_effect:
        own = ", ".join(dict.fromkeys(redacted_leaf(path, c.values[path]) for c in holders))
        why = f"every condition that has it sets it itself, to {own}" if own else "no condition keeps the part with it"
        raise InputError(
            f"`{path}` changes nothing in {sweep.name}: {why}; set another path, or change the declared conditions."
        )
    return changed


def refuse_computed(sweep: "Sweep", values: Collection[str]) -> None:
    """Refuses settings of what one of the sweep's conditions was computed from.

    Args:
        values: the paths that were set.
    """
    for condition in sweep.conditions:
        for path, own in itertools.product(values, condition.computed_from):
            if f"{path}.".startswith(f"{own}.") or own.startswith(f"{path}."):
                raise InputError(
                    f"`{path}` cannot be set for {condition.declared!r} of {sweep.name}, whose other values were "
                    "computed from it; choose the others by `--condition`, or declare the sweep anew in a file."
                )


def refuse_equal(sweep: "Sweep", base: AnyConfig, conditions: Sequence["Condition"]) -> None:
    """Refuses settings that make two of the sweep's conditions one."""
    first: dict[str, Condition] = {}
    for condition in conditions:
        other = first.setdefault(content_hash(with_all(base, condition.values)), condition)
        if other is not condition:
            given = {**other.settings, **condition.settings}
            raise InputError(
                f"{sweep.name}: with {', '.join(given)} set so, {other.declared!r} and {condition.declared!r} are the "
                "same setting; set a path or a value that keeps them apart."
            )


def reached(condition: "Condition", before: AnyConfig, after: AnyConfig, path: str, value: object) -> "Condition":
    """The condition, whose base was `before` and is `after`, with `value` in what it sets itself, and its settings."""
    old = with_all(before, condition.values)
    values = _reach(condition.values, path, value) if path in paths(old) else condition.values
    new = with_all(after, values)
    if content_hash(old) == content_hash(new):
        return condition if old == new else replace(condition, values=values)
    return replace(condition, values=values, settings={**condition.settings, path: recorded_value(new, path)})


def _reach(values: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """A condition's own `values` with `value` at `path`, where they set a part that holds it; else as they are.

    What the condition itself sets at `path`, or within it, stays.
    """
    if path in values or not any(path.startswith(f"{own}.") for own in values):
        return dict(values)
    within = {own: given for own, given in values.items() if own.startswith(f"{path}.")}
    return {own: given for own, given in values.items() if own not in within} | {path: value} | within


def json_value(config: AnyConfig, path: str) -> Any:
    """What `config` has at `path`, JSON-ready; the same for the same setting, however it was written."""
    return reduce(lambda part, name: part[name], path.split("."), as_json(config))


def recorded_value(config: AnyConfig, path: str) -> Any:
    """As `json_value`, for names and records: what looks like a secret is four digits of its hash."""
    return without_secret(path, json_value(config, path))


def without_secret(path: str, value: Any) -> Any:
    """The value for a name; what looks like a secret is four digits of its hash."""
    if redacted_value(path, value) == value:
        return value
    return f"hidden-{content_hash(value)[:4]}"


def text_of(value: Any) -> str:
    """A JSON-ready value as one types it behind `--set PATH=`."""
    return value if isinstance(value, str) else json.dumps(value)


def name_with(declared: str, settings: Mapping[str, Any], known: Collection[str], config: AnyConfig) -> str:
    """The name of the condition `declared` with `settings`: with the shortest end of each path that is no other's.

    The order in which settings were given does not count. Where they make the name too long, it counts them and has
    their hash.

    Args:
        settings: JSON-ready values by path.
        known: every path of the sweep's configs.
        config: the condition's, with the settings.
    """
    parts = (f"{_shortest_end(path, known)}={_word(config, path, value)}" for path, value in sorted(settings.items()))
    name = ",".join((declared, *parts))
    if len(name) <= CONDITION_LENGTH:
        return name
    return f"{declared},{len(settings)} settings {content_hash(dict(settings))[:8]}"


def declared_name(name: str, settings: Collection[str]) -> str:
    """The name without what `name_with` put behind it; values in names have no commas, and no spaces."""
    if counted := COUNTED.search(name):
        return name[: counted.start()]
    return name.rsplit(",", len(settings))[0]


def _refuse_unknown(path: str, value: object, configs: Collection[AnyConfig]) -> NoReturn:
    """Says what the one of `configs` that has most of an unknown path has there.

    Raises:
        InputError: always.
    """

    def num_known(config: AnyConfig) -> int:
        inner = {known.rpartition(".")[0] for known in paths(config)}
        return sum(path.startswith(f"{part}.") for part in inner)

    with_value(max(configs, key=num_known), path, value)
    raise InputError(f"`{path}` is not a config path.")


def _shortest_end(path: str, known: Collection[str]) -> str:
    words = path.split(".")
    for number in range(1, len(words)):
        end = ".".join(words[-number:])
        if not any(other != path and (other == end or other.endswith(f".{end}")) for other in known):
            return end
    return path


def _word(config: AnyConfig, path: str, value: Any) -> str:
    """The value for a name; what a name cannot hold whole, or would mean another value by, ends in digits."""
    is_variant = isinstance(value, dict) and "kind" in value
    text = readable(value["kind"] if is_variant else value)
    if isinstance(value, float):
        is_whole = float(text) == value
    else:
        is_whole = text == str(value) or (is_variant and set(value) == {"kind"})
    if is_whole and len(text) <= MOST_CHARACTERS and (is_variant or _may_mean(config, path, text, value)):
        return text
    return f"{text[:MOST_CHARACTERS].strip('-')}-{content_hash(value)[:4]}"


def _may_mean(config: AnyConfig, path: str, text: str, value: Any) -> bool:
    """Whether `text`, typed behind `--set PATH=`, sets `value`, or nothing; it may set 2 where the value is "2"."""
    readings: list[Any] = [text]
    with contextlib.suppress(ValueError):
        readings.insert(0, json.loads(text))
    for reading in readings:
        with contextlib.suppress(InputError):
            return json.dumps(json_value(with_value(config, path, reading), path)) == json.dumps(value)
    return True


def readable(value: object, num_digits: int = 12) -> str:
    """`value` in the characters that a name may have."""
    text = f"{value:.{num_digits}g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+\-]+", "-", text)
