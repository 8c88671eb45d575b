"""Configs of any kind: values by path, and the part of them that identifies a replicate."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from trainables.errors import InputError, shortened, shown, text_of
from trainables.secret import FROM, SECRET, declared_names, plain, variable_of

NOT_IN_KEY: Final = "not in key"
"""Marks a field that does not change what is learnt: paths, evaluations.

Written `Annotated[T, NOT_IN_KEY]` or `Annotated[T, NOT_IN_KEY] | None`; in a config within a list or mapping too.
"""

IN_KEY_IF_SET: Final = "in key if set"
"""Marks a field that came later than results: with its default the key stays what it was without the field."""

PLAIN: Final = (bool, int, float, str, type(None))
"""What holds no other value, and is written without the name of its type."""


def _absolute(path: Path | None) -> Path | None:
    """Workers have other working folders."""
    return path.absolute() if path else None


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Place = Annotated[Path | None, NOT_IN_KEY, AfterValidator(_absolute)]
"""A file or folder; what is in it counts, not where it lies."""
NAME: Final = r"^[a-z][a-z0-9_]*$"
Name = Annotated[str, Field(pattern=NAME)]
"""The name of an evaluation, as it stands behind its metrics."""


class Config(BaseModel):
    """A record that cannot be changed and takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_sets(cls, values: Any) -> Any:
        """A field that is a tuple would take a set in the order of this process."""
        if isinstance(values, Mapping):
            for name, value in values.items():
                if isinstance(value, tuple | list | dict | set | frozenset):
                    refuse_sets(value, f"`{name}`")
        return values

    def with_value(self, path: str, value: object) -> Self:
        """A copy whose field at `path` ("training.learning_rate") is `value`, validated whole.

        Raises:
            InputError: if there is no such path, or the value is out of its range.
        """
        return with_value(self, path, value)


AnyConfig = Any
"""A `Config`, another frozen pydantic model, or a dataclass."""

C = TypeVar("C")
_adapters: dict[Any, TypeAdapter[Any]] = {}


def is_config(value: object) -> bool:
    """Whether it is a pydantic model or a dataclass with values of its own."""
    return isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type))


def fields_of(config: AnyConfig) -> dict[str, Any]:
    """The values of a config by name, one level deep."""
    return {name: getattr(config, name) for name in _annotations(type(config))}


def as_json(config: AnyConfig) -> dict[str, Any]:
    """JSON-ready values by name, at every depth; of a secret, the environment variable that holds it."""
    values: dict[str, Any] = _adapter(type(config)).dump_python(config, mode="json")
    _hide_secrets(config, values)
    return values


_secret_fields: dict[Any, frozenset[str]] = {}


def secret_fields(kind: Any) -> frozenset[str]:
    """Names of the fields of a config's type that hold secrets."""
    if kind not in _secret_fields:
        _secret_fields[kind] = frozenset(name for name, hint in _hints(kind).items() if SECRET in _marks(hint))
        declared_names.update(_secret_fields[kind])
    return _secret_fields[kind]


def _hints(kind: Any) -> Mapping[str, Any]:
    """The type of each field, with what it is annotated with."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        own = kind.model_fields.items()
        return {name: Annotated[field.annotation, *(field.metadata or ("",))] for name, field in own}
    return get_type_hints(kind, include_extras=True) if is_dataclass(kind) else {}


def _marks(hint: Any) -> frozenset[str]:
    """What a type is marked with, in `Annotated`, and in what may be None too; `SecretStr` is a secret unmarked."""
    if get_origin(hint) is Annotated:
        return _marks(get_args(hint)[0]).union(mark for mark in hint.__metadata__ if isinstance(mark, str))
    if isinstance(hint, type) and issubclass(hint, SecretStr):
        return frozenset({SECRET})
    return frozenset().union(*map(_marks, get_args(hint))) if type(None) in get_args(hint) else frozenset()


def _hide_secrets(value: Any, dumped: Any) -> None:
    """Puts what stands for a secret in place of each in `dumped`, which is `value` as JSON."""
    if is_config(value) and isinstance(dumped, dict):
        secrets = secret_fields(type(value))
        for name, part in fields_of(value).items():
            if name in secrets and name in dumped:
                dumped[name] = None if plain(part) is None else {FROM: variable_of(name)}
            elif not isinstance(part, PLAIN):
                _hide_secrets(part, dumped.get(name))
    elif isinstance(value, list | tuple | Mapping) and isinstance(dumped, list | dict):
        inner = value.values() if isinstance(value, Mapping) else value
        for part, as_dumped in zip(inner, dumped.values() if isinstance(dumped, dict) else dumped, strict=False):
            _hide_secrets(part, as_dumped)


def restored(kind: type[C], values: Mapping[str, Any], secrets: Mapping[str, str] | None = None) -> C:
    """The config of type `kind` that `as_json` wrote.

    Args:
        secrets: by variable; default: this process's environment.

    Raises:
        InputError: if a secret is not there.
        ValidationError: as `from_values`.
    """
    return from_values(kind, _revealed(values, os.environ if secrets is None else secrets))


def refuse_lacking_secrets(values: Mapping[str, Any]) -> None:
    """Raises InputError where this process's environment has not all secrets of what `as_json` wrote."""
    _revealed(values, os.environ)


def _revealed(value: Any, secrets: Mapping[str, str], field: str = "") -> Any:
    if isinstance(value, Mapping):
        if value.keys() != {FROM}:
            return {name: _revealed(part, secrets, name) for name, part in value.items()}
        if value[FROM] not in secrets:
            raise InputError(lacking_secret(field, value[FROM]))
        return plain(secrets[value[FROM]])
    return [_revealed(part, secrets, field) for part in value] if isinstance(value, list) else value


def lacking_secret(field: str, variable: str) -> str:
    """A sentence: that a secret is needed here."""
    return (
        f"`{field}` is a secret, which is recorded nowhere and travels with no job; set the environment variable "
        f"{variable} where it is needed."
    )


def secrets_of(config: AnyConfig, prefix: str = "") -> Iterator[tuple[str, AnyConfig, str]]:
    """Every secret field: its path, the config that has it, and its name there."""
    secrets = secret_fields(type(config))
    for name, value in fields_of(config).items():
        if name in secrets:
            yield prefix + name, config, name
        elif is_config(value):
            yield from secrets_of(value, f"{prefix}{name}.")


def offer_secrets(configs: Iterable[AnyConfig]) -> None:
    """Puts the secrets that configs were given into this process's environment, where its workers find them.

    What the environment has goes before the default of a field, and after what a config was given.

    Raises:
        InputError: if two fields that are asked for by one variable were given different values.
    """
    given: dict[str, str] = {}
    for config in configs:
        for path, owner, name in secrets_of(config):
            text, default = plain(getattr(owner, name)), _default(owner, name)
            is_default = isinstance(default, str | SecretStr) and plain(default) == text
            if text is None or (is_default and variable_of(name) in os.environ):
                continue
            if given.setdefault(variable_of(name), text) != text:
                raise InputError(
                    f"`{path}` is asked for as {variable_of(name)}, but fields of that name were given different "
                    "values; give them one value, or rename one."
                )
    os.environ.update(given)


def with_secrets(config: C) -> C:
    """The config with the secrets that this process's environment has."""
    for path, _, name in list(secrets_of(config)):
        if variable_of(name) in os.environ:
            config = with_value(config, path, plain(os.environ[variable_of(name)]))
    return config


def refuse_sets(value: object, subject: str) -> None:
    """Raises InputError where `value` is a set or holds one, at any depth: its order differs in each process."""
    if isinstance(value, set | frozenset):
        raise InputError(
            f"{subject} must hold no set, whose order differs each time, but got {shown(value)}; use a tuple."
        )
    inner: Iterable[object] = ()
    if isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, Mapping):
        inner = (*value, *value.values())
    elif is_config(value):
        inner = fields_of(value).values()
    for part in inner:
        if not isinstance(part, PLAIN):  # which most are, and a sweep has many
            refuse_sets(part, subject)


def from_values(kind: type[C], values: Mapping[str, Any]) -> C:
    """The config of type `kind` with these values.

    Raises:
        ValidationError: if one is missing or out of its range.
    """
    return cast(C, _adapter(kind).validate_python(dict(values)))


def with_value(config: C, path: str, value: object) -> C:
    """A copy of any config whose field at `path` ("training.learning_rate") is `value`, validated whole.

    Raises:
        InputError: if there is no such path, or the value is out of its range or holds a set.
    """
    refuse_sets(value, f"`{path}`")
    return _with_value(config, path, value, path)


def _with_value(config: C, path: str, value: object, whole_path: str) -> C:
    name, _, rest = path.partition(".")
    values = fields_of(config)
    if name not in values:
        raise InputError(f"`{whole_path}` is not a config path: {name!r} is not one of {', '.join(sorted(values))}.")
    if rest and not is_config(values[name]):
        raise InputError(f"`{whole_path}` is not a config path: `{name}` has no fields of its own.")
    if is_dataclass(config) and not rest and not all(one.init for one in fields(config) if one.name == name):
        raise InputError(f"`{whole_path}` cannot be set: {type(config).__name__} computes it (`init=False`).")
    values[name] = _with_value(values[name], rest, value, whole_path) if rest else value
    if not rest and name in secret_fields(type(config)) and isinstance(value, str):
        plain(value)
    is_secret = not rest and name in secret_fields(type(config))
    if is_secret and not isinstance(value, str | SecretStr | None):
        raise InputError(
            f"`{whole_path}` is a secret and must be text; set {variable_of(name)}, or write '{whole_path}=\"...\"'."
        )
    try:
        return from_values(type(config), values)
    except ValidationError as error:
        if is_secret:  # pydantic says what it got
            raise InputError(f"`{whole_path}`: {error.errors(include_url=False)[0]['msg']}.") from None
        raise InputError(explain(error, whole_path)) from None
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # of the config's own checks
        reason = f"{type(error).__name__}: {text_of(error)}".rstrip(": ")
        raise InputError(shortened(f"`{whole_path}` cannot be set: {reason}.")) from error


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


_noted: dict[Any, Mapping[str, frozenset[str]]] = {}  # a sweep of two thousand conditions asks ten thousand times


def _annotations(kind: Any) -> Mapping[str, frozenset[str]]:
    """What is noted of each field, such as `NOT_IN_KEY`."""
    if kind not in _noted:
        is_model = issubclass(kind, BaseModel)
        names = kind.model_fields if is_model else [field.name for field in fields(kind)]
        by_name = is_model and (kind.model_config.get("populate_by_name") or kind.model_config.get("validate_by_name"))
        for name in names if is_model else ():
            field = kind.model_fields[name]
            if field.validation_alias is not None and not by_name:
                raise InputError(
                    f"`{kind.__name__}.{name}` has an alias, and pydantic reads the field by nothing else; give the "
                    "config `model_config = ConfigDict(validate_by_name=True)`, for a sweep sets fields by their names."
                )
            if field.exclude:
                rule = f"`{kind.__name__}.{name}` has `exclude=True`, so no record could hold it"
                raise InputError(f"{rule}; mark what changes no result `Annotated[T, ponderay.NOT_IN_KEY]`.")
        hints = _hints(kind)
        _noted[kind] = {name: _marks(hints[name]) for name in names}
    return _noted[kind]


def explain(error: ValidationError, path: str = "") -> str:
    """One line for the first thing that pydantic found wrong."""
    first = error.errors(include_url=False)[0]
    inner = ".".join(str(part) for part in first["loc"])
    before, _, last = path.rpartition(".")
    overlaps = inner == last or inner.startswith(f"{last}.")
    where = path if path.endswith(inner) else f"{before if overlaps else path}.{inner}".strip(".")
    if first["type"] == "value_error":  # ours, which name the value
        reason = first["msg"].removeprefix("Value error, ").rstrip(".")
        return shortened(f"`{where}`: {reason}." if where else f"{reason}.")
    remedy = ""
    is_one_kind = first["type"] == "literal_error" and " or " not in first["ctx"]["expected"]
    if before and path.endswith(inner) and is_one_kind and isinstance(first["input"], str):
        remedy = f"; another kind is set whole: `--set '{before}={json.dumps({last: first['input']})}'`"
    return shortened(f"`{where}`: {first['msg']}, but got {shown(first['input'])}{remedy}.")


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


def key_content(config: AnyConfig) -> dict[str, Any]:
    """The JSON-ready values of `config`, but secrets, those marked `NOT_IN_KEY`, `IN_KEY_IF_SET` with their default."""
    content: dict[str, Any] = {}
    dumped, secrets = as_json(config), secret_fields(type(config))
    for name, notes in _annotations(type(config)).items():
        value = getattr(config, name)
        if name in secrets:
            continue
        if NOT_IN_KEY not in notes and not (IN_KEY_IF_SET in notes and value == _default(config, name)):
            content[name] = _in_key(value, dumped[name])
    return content


def _in_key(value: Any, dumped: Any) -> Any:
    """What of a value identifies a replicate; `dumped` is the value, JSON-ready."""
    if is_config(value):
        return key_content(value)
    if isinstance(value, list | tuple) and isinstance(dumped, list) and len(value) == len(dumped):
        return [_in_key(*both) for both in zip(value, dumped, strict=True)]
    if isinstance(value, Mapping) and isinstance(dumped, dict) and len(value) == len(dumped):
        return {name: _in_key(part, dumped[name]) for name, part in zip(dumped, value.values(), strict=True)}
    return dumped  # also where a field is written in a way of its own


def _default(config: AnyConfig, name: str) -> Any:
    """What a field is that is not given; made anew where a function makes it."""
    checked = getattr(type(config), "__pydantic_fields__", None)
    if checked is not None:  # of a model, or of pydantic's dataclasses
        return checked[name].get_default(call_default_factory=True, validated_data=fields_of(config))
    field = type(config).__dataclass_fields__[name]
    return field.default if field.default_factory is MISSING else field.default_factory()


def content_hash(*parts: object) -> str:
    """16 hexadecimal digits that name the content of JSON-ready values and configs."""
    ready = [key_content(part) if is_config(part) else part for part in parts]
    text = json.dumps(ready, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def flatten(config: AnyConfig, prefix: str = "") -> dict[str, Any]:
    """Leaf values by dotted path, as a table or a tracker shows them: no secrets."""
    flat: dict[str, Any] = {}
    for name, value in fields_of(config).items():
        if name in secret_fields(type(config)):
            continue
        if is_config(value):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
