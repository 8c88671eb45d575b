"""Sweeps whose replicates do nothing."""

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
        objectives=(Objective("error"),),
        conditions=tuple(Condition(f"c{i}", {"number": i}) for i in range(num_conditions)),
        seeds=tuple(range(1, num_seeds + 1)),
        resources=Resources(num_workers=num_workers),
    )


def four() -> Sweep:
    """Four replicates in the trials themselves."""
    return noops("noop.four", 4, 1, 0)
