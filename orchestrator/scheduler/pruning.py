"""Pruning: which conditions of a search get no seed but their first, by domination, or not even that, by its curve.

A rule over one metric would cut the cheap end of a front. So a condition is pruned only where another, whose seeds are
all complete, is no worse than its first seed in every objective, and better in one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from search_spaces.halving import Halving, Rung, goes_on

KEPT: Final = "kept"
PRUNED: Final = "pruned: "
STOPPED: Final = f"{PRUNED}at step "


def is_pruned(decision: str) -> bool:
    """Whether the decision is that the condition gets no more seeds."""
    return decision.startswith(PRUNED)


def is_stopped(decision: str) -> bool:
    """Whether the decision is that the first seed was stopped early by its curve."""
    return decision.startswith(STOPPED)


def decision_at(rung: Rung, others: Sequence[float], halving: Halving, num_steps: int | None) -> str:
    """In words, why a first seed is stopped at a rung; empty where it goes on.

    Args:
        others: what the trials had at this rung that came there before it.
        num_steps: of the whole training, where that is known.
    """
    if goes_on(halving.cost(rung.value), [halving.cost(other) for other in others], halving.factor):
        return ""
    place, num_all = f"{rung.step:,}{f' of {num_steps:,}' if num_steps else ''}", len(others) + 1
    best = f"the best {num_all // halving.factor} of {num_all}"
    return f"{STOPPED}{place} {halving.metric} {rung.value:.4g} is not among {best}"


def decision_on(first: Sequence[float], whole: Mapping[str, Sequence[float]]) -> str:
    """In words, whether a condition gets its other seeds.

    Args:
        first: what its first seed came to; less is better in every place. A NaN is neither better nor worse.
        whole: the means of every condition whose seeds are all complete, by name, in the same order.
    """
    from orchestrator.statistics.student import RESOLUTION  # loads numpy

    rivals = []
    for name, means in whole.items():
        pairs = [
            (mean, own, math.isclose(mean, own, rel_tol=RESOLUTION)) for mean, own in zip(means, first, strict=True)
        ]
        is_no_worse = all(mean <= own or is_same for mean, own, is_same in pairs)
        if is_no_worse and any(mean < own and not is_same for mean, own, is_same in pairs):
            rivals.append(name)
    return f"{PRUNED}{min(rivals)} is no worse in every objective and better in one" if rivals else KEPT
