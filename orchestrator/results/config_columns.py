"""The conditions' configs as columns of typed values, which tables for programs have beside the metrics."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

Value = bool | int | float | str | None

LARGEST: Final = 2**63
PREFIX: Final = "config."
"""Begins the name of each such column; a config path follows."""


def config_columns(configs: Mapping[str, Mapping[str, str]], conditions: Sequence[str]) -> dict[str, list[Value]]:
    """A column for each config path that some of the conditions have, with a value for each of `conditions`.

    A column holds numbers, or yes and no, where all of its texts are such, and text otherwise; None stands for None and
    where a condition has no such path. The seed has no column.

    Args:
        configs: values as text by config path, by condition.
        conditions: names, which may repeat.
    """
    known = dict.fromkeys(conditions)
    paths = dict.fromkeys(path for name in known for path in configs.get(name, {}) if path != "seed")
    columns: dict[str, list[Value]] = {}
    for path in paths:
        texts = {name: configs.get(name, {}).get(path) for name in known}
        typed = {text: None if text is None else _typed(text) for text in set(texts.values())}
        kinds = {type(value) for value in typed.values() if value is not None}
        if not (kinds <= {int, float} or kinds == {bool}):
            typed = {text: None if text == "None" else text for text in typed}
        columns[f"{PREFIX}{path}"] = [typed[texts[name]] for name in conditions]
    return columns


def _typed(text: str) -> Value:
    """The value that Python writes so; other text is itself, such as 007 or 1_000."""
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        # No file but CSV has a word for what is not finite, or for whole numbers of more than 64 bits.
        if str(value) == text and math.isfinite(value) and abs(value) < LARGEST:
            return value
    return text
