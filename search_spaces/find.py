"""Shipped sweeps by name: `asr.demo` is the function `search_spaces.asr.demo`."""

import importlib
import inspect
from collections.abc import Callable

from search_spaces.sweep import Sweep
from trainables.errors import InputError

FAMILIES = ("asr", "act", "lm")


def sweep_functions() -> dict[str, Callable[..., Sweep]]:
    """Every shipped sweep's function by the sweep's name."""
    found: dict[str, Callable[..., Sweep]] = {}
    for family in FAMILIES:
        module = importlib.import_module(f"search_spaces.{family}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                found[f"{family}.{name}"] = function
    return found


def find_sweep(name: str, smoke: bool = False) -> Sweep:
    """The sweep `name`, in its small size if `smoke`; that one is a sweep of its own, `NAME.smoke`.

    Raises:
        InputError: if there is none of that name.
    """
    plain = name.removesuffix(".smoke")
    functions = sweep_functions()
    if plain not in functions:
        raise InputError(f"There is no sweep {name!r}; there are {', '.join(functions)}.")
    return functions[plain](smoke=smoke or plain != name)
