"""Studies and points for tests of fronts."""

from collections.abc import Mapping, Sequence
from itertools import product

from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Objective

ERROR_COST = (Objective("per"), Objective("macs"))
ERROR_COST_LATENCY = (*ERROR_COST, Objective("latency"))
NAMES = ("per", "macs", "latency")


def study_of(conditions: Mapping[str, Mapping[int, Sequence[float]]], evaluation: str = "e") -> Study:
    """A study from {condition: {seed: values of per, macs and so on}}."""
    replicates = [
        Replicate(
            f"{name}/{seed}",
            name,
            seed,
            "complete",
            {f"{metric}@{evaluation}": value for metric, value in zip(NAMES, values, strict=False)},
        )
        for name, by_seed in conditions.items()
        for seed, values in by_seed.items()
    ]
    return Study("made.up", tuple(replicates))


def is_dominated(row: Sequence[float], rows: Sequence[Sequence[float]]) -> bool:
    """By the definition, less being better: some other row is nowhere worse and somewhere better."""
    return any(
        all(x <= y for x, y in zip(other, row, strict=True)) and any(x < y for x, y in zip(other, row, strict=True))
        for other in rows
    )


def every_draw(seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """All n^n ordered resamples of n seeds."""
    return list(product(seeds, repeat=len(seeds)))
