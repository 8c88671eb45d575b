"""`ponderay.toml`, and the same settings in the environment: read and checked, whoever wrote them."""

import os
import tomllib
from pathlib import Path
from typing import Any, Final

from trainables.errors import InputError, shown

TEXTS: Final = ("data", "runs", "storage", "cache", "tracking_uri", "search_uri")
NUMBERS: Final = ("price_per_device_hour", "watts_per_device", "cluster_wait")
NAMES: Final = (*TEXTS, *NUMBERS)
MOST: Final = 1e9
"""The largest number; no price, power or time is larger."""

MOST_BYTES: Final = 1_000_000
MOST_CHARACTERS: Final = 4_000
"""The longest setting; no path of Linux is longer."""


def read_file(path: Path) -> dict[str, Any]:
    """The settings in the file by name; none where there is no file.

    Raises:
        InputError: if it is no TOML, holds an unknown name, or a value of the wrong kind.
    """
    values = _parsed(path)
    unknown = sorted(set(values) - {*NAMES})
    if unknown:
        raise InputError(f"{path}: {unknown[0]!r} is not a setting; the settings are {', '.join(NAMES)}.")
    for name in TEXTS:
        if name in values and not isinstance(values[name], str):
            raise InputError(f'{path}: `{name}` must be text, such as {name} = "...", but got {shown(values[name])}.')
        _check_text(f"{path}: `{name}`", values.get(name, ""))
    return values


def of_environment(name: str) -> str:
    """The setting as PONDERAY_NAME says it; empty where it does not.

    Raises:
        InputError: if it holds what no setting can.
    """
    variable = f"PONDERAY_{name.upper()}"
    value = os.environ.get(variable, "")
    _check_text(variable, value)
    return value


def number(name: str, from_file: dict[str, Any]) -> float | None:
    """The setting as a number; None where there is none."""
    value = of_environment(name) or from_file.get(name)
    if value is None:
        return None
    try:
        amount = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        amount = -1.0
    if not 0 <= amount <= MOST:
        raise InputError(f"`{name}` must be a number from 0 to {MOST:,.0f}, but got {shown(value)}.")
    return amount


def _parsed(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    if not path.is_file():
        raise InputError(f"{path} must be a file of settings, but a folder or something else has that name.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} must be at most {MOST_BYTES / 1e6:g} MB large, as no settings need more.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be text in UTF-8, but byte {error.start} is none.") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {str(error)[:200]}.") from None


def _check_text(where: str, value: str) -> None:
    if not value.isprintable():
        raise InputError(f"{where} must be one line of text that can be printed, but got {shown(value)}.")
    if len(value) > MOST_CHARACTERS:
        raise InputError(f"{where} must have at most {MOST_CHARACTERS:,} characters, but has {len(value):,}.")
