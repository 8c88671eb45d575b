"""Secrets that a config declares: fields whose values are no part of a key, of a name or of any record.

A record says from which environment variable such a value comes, and there it is asked for wherever it is needed again.
"""

from typing import Any, Final

SECRET: Final = "secret"
"""Marks a field (`Annotated[str, SECRET]`) that holds one; a field of type `pydantic.SecretStr` needs no mark."""

FROM: Final = "secret from"
"""The only name in what stands for a secret in a record: `{"secret from": "API_KEY"}`."""

declared_names: Final[set[str]] = set()
"""Fields that are secrets, of every config type that this process has looked at."""

known_values: Final[set[str]] = set()
"""Values of them that this process has seen, for whoever looks through texts that leave it."""


def variable_of(field: str) -> str:
    """The environment variable that holds the secret of a field: `api_key` is asked for as API_KEY."""
    return field.upper()


def plain(value: Any) -> str | None:
    """The text of a secret, which is noted as one; None where there is none."""
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else value  # pydantic loads slowly
    if text is None:
        return None
    known_values.add(str(text))
    return str(text)
