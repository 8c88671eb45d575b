"""What `--set` changes in conditions: which paths a config has, and how a changed condition is called."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import Any, Final, NoReturn

from trainables.config import Config, content_hash
from trainables.errors import InputError

MOST_CHARACTERS: Final = 40
"""Of a value in a name."""


def paths(config: Config, prefix: str = "") -> Iterator[str]:
    """Every path of `config`, of whole parts too."""
    for name, value in config.fields().items():
        yield prefix + name
        if isinstance(value, Config):
            yield from paths(value, f"{prefix}{name}.")


def with_all(config: Config, values: Mapping[str, Any]) -> Config:
    """`config` with these values by path, one after the other."""
    for path, value in values.items():
        config = config.with_value(path, value)
    return config


def reach(values: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """A condition's own `values` with `value` at `path`, where they set a part that holds it; else as they are.

    What the condition itself sets at `path`, or within it, stays.
    """
    if path in values or not any(path.startswith(f"{own}.") for own in values):
        return dict(values)
    within = {own: given for own, given in values.items() if own.startswith(f"{path}.")}
    return {own: given for own, given in values.items() if own not in within} | {path: value} | within


def json_value(config: Config, path: str) -> Any:
    """What `config` has at `path`, JSON-ready; the same for the same setting, however it was written."""
    return reduce(lambda part, name: part[name], path.split("."), config.model_dump(mode="json"))


def text_of(value: Any) -> str:
    """A JSON-ready value as one types it behind `--set PATH=`."""
    return value if isinstance(value, str) else json.dumps(value)


def name_with(declared: str, settings: Mapping[str, Any], known: Collection[str]) -> str:
    """The name of the condition `declared` with `settings`: with the shortest end of each path that is no other's.

    The order in which settings were given does not count.

    Args:
        settings: JSON-ready values by path.
        known: every path of the sweep's configs.
    """
    parts = (f"{_shortest_end(path, known)}={_word(value)}" for path, value in sorted(settings.items()))
    return ",".join((declared, *parts))


def declared_name(name: str, settings: Collection[str]) -> str:
    """The name without what `name_with` put behind it; values in names have no commas."""
    return name.rsplit(",", len(settings))[0]


def refuse_unknown(path: str, value: object, configs: Collection[Config]) -> NoReturn:
    """Says what the one of `configs` that has most of an unknown path has there.

    Raises:
        InputError: always.
    """

    def num_known(config: Config) -> int:
        inner = {known.rpartition(".")[0] for known in paths(config)}
        return sum(path.startswith(f"{part}.") for part in inner)

    max(configs, key=num_known).with_value(path, value)
    raise InputError(f"`{path}` is not a config path.")


def _shortest_end(path: str, known: Collection[str]) -> str:
    words = path.split(".")
    for number in range(1, len(words)):
        end = ".".join(words[-number:])
        if not any(other != path and (other == end or other.endswith(f".{end}")) for other in known):
            return end
    return path


def _word(value: Any) -> str:
    """The value for a name; what a name cannot hold whole ends in four digits of its hash."""
    is_variant = isinstance(value, dict) and "kind" in value
    text = readable(value["kind"] if is_variant else value)
    if isinstance(value, float):
        is_whole = float(text) == value
    else:
        is_whole = text == str(value) or (is_variant and set(value) == {"kind"})
    return text if is_whole else f"{text[:MOST_CHARACTERS].strip('-')}-{content_hash(value)[:4]}"


def readable(value: object, num_digits: int = 12) -> str:
    """`value` in the characters that a name may have."""
    text = f"{value:.{num_digits}g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+\-]+", "-", text)
