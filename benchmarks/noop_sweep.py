"""Sweeps whose replicates do nothing."""

import os

from benchmarks.noop import NoopConfig
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Sweep


def noops(name: str, num_conditions: int, num_seeds: int, num_workers: int) -> Sweep:
    """Conditions that differ in a number that nothing depends on."""
    return Sweep(
        name=name,
        description="Does nothing.",
        trainable="benchmarks.noop",
        base=NoopConfig(),
        objectives=(Objective("error"), Objective("macs")),
        conditions=tuple(Condition(f"c{i}", {"number": i}) for i in range(num_conditions)),
        seeds=tuple(range(1, num_seeds + 1)),
        resources=Resources(num_workers=num_workers),
    )


def four() -> Sweep:
    """Four replicates in the trials themselves."""
    return noops("noop.four", 4, 1, 0)


def many() -> Sweep:
    """A sweep of as many conditions and seeds as the variable NOOPS says, such as 2000x5."""
    num_conditions, _, num_seeds = os.environ["NOOPS"].partition("x")
    return noops("noop.many", int(num_conditions), int(num_seeds), 0)
