"""Shipped sweeps by name: `asr.demo` is `demo` among the sweeps of `search_spaces.asr`."""

from typing import Final

from search_spaces import act, asr, lm
from search_spaces.size import plain_name, size_of
from search_spaces.sweep import Sweep, SweepFunction
from trainables.errors import InputError

FAMILIES: Final = {"asr": asr.SWEEPS, "act": act.SWEEPS, "lm": lm.SWEEPS}


def sweep_functions() -> dict[str, SweepFunction]:
    """Every shipped sweep's function by the sweep's name."""
    return {f"{family}.{name}": sweeps[name] for family, sweeps in FAMILIES.items() for name in sorted(sweeps)}


def find_sweep(name: str, smoke: bool = False) -> Sweep:
    """The sweep `name`, in its small size if `smoke`; that one is a sweep of its own, `NAME.smoke`.

    Raises:
        InputError: if there is none of that name.
    """
    functions = sweep_functions()
    if plain_name(name) not in functions:
        raise InputError(f"There is no sweep {name!r}; the sweeps are {', '.join(functions)}.")
    return functions[plain_name(name)]("smoke" if smoke else size_of(name))
