"""Sweeps of the tiny trainable; run as a program, a driver without Ray on one of them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.results.outcome import Outcome
from orchestrator.run import run_here
from search_spaces.distributions import Real
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Prerequisite, Search, Sweep
from tests.integration.tiny import TinyConfig

REFUSED = 3
FIRST = Prerequisite("first", "tests.integration.tiny_first", "first")
IN_TRIAL = Resources(num_workers=0)


def tiny(
    conditions: Mapping[str, Mapping[str, Any]] | tuple[Condition, ...], name: str = "tiny.sweep", **changes: Any
) -> Sweep:
    """A sweep of the given conditions, or with one for each entry of a mapping."""
    if not isinstance(conditions, tuple):
        conditions = tuple(Condition(label, values) for label, values in conditions.items())
    fields: dict[str, Any] = {
        "name": name,
        "description": "For tests.",
        "trainable": "tests.integration.tiny",
        "base": TinyConfig(),
        "conditions": conditions,
        "objectives": (Objective("error"), Objective("cost")),
        "seeds": (1, 2),
        "prerequisites": (FIRST,),
        "resources": IN_TRIAL,
    }
    return Sweep(**fields | changes)


def searched(num_trials: int, name: str = "tiny.search", **changes: Any) -> Sweep:
    """A sweep that Optuna draws."""
    return tiny((), name, search=Search({"x": Real(0.1, 1.0)}, num_trials=num_trials), **changes)


def run_quietly(sweep: Sweep, accept_code: bool = False) -> Outcome:
    """Runs it here."""
    return run_here(sweep, read_settings(), Console(quiet=True), accept_code)


if __name__ == "__main__":
    name, sleep_s, first_sleep_s, *go = sys.argv[1:]
    values = {"sleep_s": float(sleep_s), "first.sleep_s": float(first_sleep_s), "go": Path(go[0]) if go else None}
    try:
        run_quietly(tiny({"a": values, "b": {"x": 0.25}}, name=name))
    except RefusedError as error:
        print(error)
        raise SystemExit(REFUSED) from None
