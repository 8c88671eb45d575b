"""What `--set` changes in conditions: which paths a config has, and how a changed condition is called."""

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NoReturn, TypeVar

from search_spaces.names import CONDITION_LENGTH
from search_spaces.redaction import redacted_leaves, redacted_value
from trainables.config import AnyConfig, as_json, content_hash, fields_of, is_config, with_value
from trainables.errors import InputError

C = TypeVar("C")

MOST_CHARACTERS: Final = 40
"""Most characters of a value in a name."""

MOST_OF_SETTING: Final = 500
"""Most characters of a value that is recorded as set."""

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
    name: str,
    base: AnyConfig,
    conditions: Sequence[Mapping[str, Any]],
    searched: Collection[str],
    path: str,
    value: object,
) -> AnyConfig:
    """The base with `value`, where it has the path.

    Args:
        name: of the sweep.
        conditions: what each of them sets, by path.
        searched: the paths that a search draws.

    Raises:
        InputError: if nothing has the path, a search draws it, or every condition that has it sets it itself.
    """
    if drawn := [own for own in searched if f"{path}.".startswith(f"{own}.")]:
        raise InputError(f"`{drawn[0]}` is what {name} searches, so `{path}` cannot be set; set another path.")
    configs = [with_all(base, values) for values in conditions]
    holders = [values for values, config in zip(conditions, configs, strict=True) if path in paths(config)]
    is_in_base = path in paths(base)
    if not is_in_base and not holders:
        _refuse_unknown(path, value, [base, *configs])
    changed = with_value(base, path, value) if is_in_base else base
    has_effect = any(path not in values for values in holders) or (is_in_base and base == changed)
    if conditions and not has_effect:
        own = ", ".join(dict.fromkeys(redacted_leaves(values)[path] for values in holders))
        why = f"every condition that has it sets it itself, to {own}" if own else "no condition keeps the part with it"
        raise InputError(
            f"`{path}` changes nothing in {name}: {why}; set another path, or change the declared conditions."
        )
    return changed


def reached_values(values: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
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
    """The value of `json_value` for names and records: what looks like a secret is four digits of its hash."""
    return without_secret(path, json_value(config, path))


def without_secret(path: str, value: Any) -> Any:
    """The value for a name; what looks like a secret is four digits of its hash."""
    if redacted_value(path, value) == value:
        return value
    return f"hidden-{content_hash(value)[:4]}"


def condition_name(setting: Mapping[str, Any], num_digits: int = 12) -> str:
    """A readable name from the last word of each path; with few digits it may not be unique."""
    return ",".join(
        f"{path.rpartition('.')[2]}={readable(without_secret(path, value), num_digits)}"
        for path, value in setting.items()
    )


def same_name(typed: str, names: Collection[str]) -> str:
    """The one of `names` that means what was typed: that text, or its values in other writing or order, 0.0 for 0.

    What was typed itself where there is none.
    """
    if typed in names:
        return typed
    meant = _parts(typed)
    return next((name for name in names if "=" in name and _parts(name) == meant), typed)


def _parts(name: str) -> list[tuple[str, float | str]]:
    parts: list[tuple[str, float | str]] = []
    for part in name.split(","):
        path, _, text = part.partition("=")
        try:
            parts.append((path, float(text)))
        except ValueError:
            parts.append((path, text))
    return sorted(parts, key=lambda part: part[0])  # of two with one last word the order stays


def text_of(value: Any) -> str:
    """A JSON-ready value as one types it behind `--set PATH=`."""
    return value if isinstance(value, str) else json.dumps(value)


def setting_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """What `--set` changed in a condition, as text by config path."""
    return {path: text_of(value)[:MOST_OF_SETTING] for path, value in sorted(settings.items())}


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
