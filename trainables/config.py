"""Frozen, closed configs: values by path, and the part of them that identifies a replicate."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from trainables.errors import InputError

NOT_IN_KEY: Final = "not in key"
"""Marks a field (`Annotated[T, NOT_IN_KEY]`) that does not change what is learnt: paths, evaluations."""


def _absolute(path: Path | None) -> Path | None:
    """Workers have other working folders."""
    return path.absolute() if path else None


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Place = Annotated[Path | None, NOT_IN_KEY, AfterValidator(_absolute)]
"""A file or folder; what is in it counts, not where it lies."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
"""Of an evaluation, as it stands behind its metrics."""


class Config(BaseModel):
    """A record that cannot be changed and takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def fields(self) -> dict[str, Any]:
        """Its values by name, one level deep."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def with_value(self, path: str, value: object) -> Self:
        """A copy whose field at `path` ("training.learning_rate") is `value`, validated whole.

        Raises:
            InputError: if there is no such path, or the value is out of its range.
        """
        return _with_value(self, path, value, path)


C = TypeVar("C", bound=Config)


def _with_value(config: C, path: str, value: object, whole_path: str) -> C:
    name, _, rest = path.partition(".")
    values = config.fields()
    if name not in values:
        raise InputError(f"`{whole_path}` is not a config path: {name!r} is not one of {', '.join(sorted(values))}.")
    if rest and not isinstance(values[name], Config):
        raise InputError(f"`{whole_path}` is not a config path: `{name}` has no fields of its own.")
    values[name] = _with_value(values[name], rest, value, whole_path) if rest else value
    try:
        return type(config).model_validate(values)
    except ValidationError as error:
        raise InputError(explain(error, whole_path)) from None


def explain(error: ValidationError, path: str = "") -> str:
    """One line for the first thing that pydantic found wrong."""
    first = error.errors(include_url=False)[0]
    inner = ".".join(str(part) for part in first["loc"])
    before, _, last = path.rpartition(".")
    overlaps = inner == last or inner.startswith(f"{last}.")
    where = path if path.endswith(inner) else f"{before if overlaps else path}.{inner}".strip(".")
    if first["type"] == "value_error":  # ours, which name the value
        return f"`{where}`: {first['msg'].removeprefix('Value error, ')}."
    return f"`{where}`: {first['msg']}, but got {first['input']!r}."


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Evaluations = TypeVar("Evaluations", bound=Iterable[_Named])


def names_differ(evaluations: Evaluations) -> Evaluations:
    """The `evaluations`; raises ValueError where two of them have one name."""
    names = [evaluation.name for evaluation in evaluations]
    if len(set(names)) < len(names):
        raise ValueError(f"the names of evaluations must differ, but got {', '.join(names)}")
    return evaluations


def key_content(config: Config) -> dict[str, Any]:
    """The JSON-ready values of `config` without those marked `NOT_IN_KEY`."""
    content: dict[str, Any] = {}
    dumped = config.model_dump(mode="json")
    for name, field in type(config).model_fields.items():
        if NOT_IN_KEY not in field.metadata:
            value = getattr(config, name)
            content[name] = key_content(value) if isinstance(value, Config) else dumped[name]
    return content


def content_hash(*parts: object) -> str:
    """16 hexadecimal digits that name the content of JSON-ready values and configs."""
    ready = [key_content(part) if isinstance(part, Config) else part for part in parts]
    text = json.dumps(ready, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def flatten(config: Config, prefix: str = "") -> dict[str, Any]:
    """Leaf values by dotted path, as a table or a tracker shows them."""
    flat: dict[str, Any] = {}
    for name, value in config.fields().items():
        if isinstance(value, Config):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
