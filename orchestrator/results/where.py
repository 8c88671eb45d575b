"""Which recorded conditions `--where PATH=VALUE` means, by the config that was logged of each."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from search_spaces.known_names import known_names
from trainables.errors import InputError

MOST_NAMED: Final = 12
Configs = Mapping[str, Mapping[str, str]]
"""Values as text by config path, by condition."""


def matching(filters: Sequence[str], configs: Configs) -> tuple[str, ...]:
    """The conditions for which every filter, `PATH=VALUE` or `PATH!=VALUE`, holds; PATH may be the end of a path.

    One without the path has no value that is the one named, nor another: it is left out.

    Raises:
        InputError: if a filter has no such path, or a path that ends several, or all together leave nothing.
    """
    left = list(configs)
    for one in filters:
        path, is_wanted, value = _parsed(one, configs)
        found = [name for name in configs if path in configs[name] and is_same(configs[name][path], value) == is_wanted]
        if not found:
            recorded = dict.fromkeys(config[path] for config in configs.values() if path in config)
            raise InputError(f"No condition has {one}; recorded are {path} = {known_names(recorded, most=MOST_NAMED)}.")
        left = [name for name in left if name in set(found)]
    if not left:
        raise InputError(f"No condition has {' and '.join(filters)} together; leave one of them out.")
    return tuple(left)


def is_same(recorded: str, value: str) -> bool:
    """Whether a logged text and one that a user typed are one value: as JSON, or else as text."""
    typed, logged = _json(value), _json(recorded)
    if isinstance(typed, int | float) and isinstance(logged, int | float) and not isinstance(typed, bool):
        return typed == logged
    return recorded in (value, str(_as_python(typed)))


def _parsed(one: str, configs: Configs) -> tuple[str, bool, str]:
    """The whole config path, whether it is to have the value or another, and the value of one filter."""
    end, sign, value = one.partition("=")
    if not sign:
        raise InputError(f"--where must be PATH=VALUE or PATH!=VALUE, but got {one!r}.")
    is_wanted, end = not end.endswith("!"), end.removesuffix("!")
    known = dict.fromkeys(path for config in configs.values() for path in config if path != "seed")
    found = [end] if end in known else [path for path in known if path.endswith(f".{end}")]
    if len(found) > 1:
        raise InputError(f"--where {end}={value} may mean {' or '.join(found)}; type the path that you mean.")
    if not found:
        differing = [path for path in known if len({config.get(path) for config in configs.values()}) > 1]
        raise InputError(
            f"`{end}` must be a recorded config path or its end; the recorded conditions differ in "
            f"{known_names(differing, most=MOST_NAMED)}."
        )
    return found[0], is_wanted, value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_python(value: Any) -> Any:
    """The value as a config holds it: sequences are tuples."""
    return tuple(map(_as_python, value)) if isinstance(value, list) else value
