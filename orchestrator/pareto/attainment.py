"""What fronts reach, and how surely: the empirical attainment function of a set of fronts (Fonseca et al. 2001).

An outcome is attained by a front that has a point as good or better in every objective. The surface of a level is the
border of what at least that share of the fronts attains. Viviane Grunert da Fonseca, Carlos M. Fonseca and Andreia O.
Hall, "Inferential performance assessment of stochastic optimisers and the attainment function", EMO 2001.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import moocore
import numpy as np
from numpy.typing import NDArray

from orchestrator.pareto.front import is_minimal
from orchestrator.statistics.subsample import subsample

Floats = NDArray[np.float64]

MAX_FRONT: Final = 500
MAX_FRONT_OF_THREE: Final = 50
MAX_FRONTS_OF_THREE: Final = 40
MAX_STEPS: Final = 200


@dataclass(frozen=True)
class Surface:
    """The outcomes that are only just attained with probability `level`.

    Attributes:
        steps: rows of a value for each objective. Of two objectives a staircase by the second one, from its best value
            on: from each row's cost to the next row's, the first row's error is the best that is attained.
        is_thinned: whether steps are left out; those left are attained all the same, so that the surface lies a little
            on the bad side.
    """

    level: float
    steps: tuple[tuple[float, ...], ...]
    is_thinned: bool = False


def thinned(rows: Floats, count: int) -> Floats:
    """At most `count` of `rows`, at even steps by their last column, the first and the last among them."""
    if len(rows) <= count:
        return rows
    order = np.argsort(rows[:, -1], kind="stable")
    kept: Floats = rows[order[list(subsample(len(rows), count))]]
    return kept


def surfaces(
    fronts: Sequence[Floats], weights: Sequence[float], levels: Sequence[float], sign: Floats
) -> tuple[Surface, ...]:
    """A surface for each of `levels`, shares in (0, 1]; none of other than two or three objectives.

    Two objectives: exact in each step. Of more than `MAX_STEPS` costs so many are looked at, at even steps of the costs
    of all fronts together, so that one that many fronts share is among them. Three: by moocore (Fonseca et al. 2011),
    no more than `MAX_STEPS` of its points. Its time grows with the square of the number of fronts; so of more than
    `MAX_FRONTS_OF_THREE`, or of unequal weights, so many are taken at even steps of the sum of their weights, and of
    each at most `MAX_FRONT_OF_THREE` points.

    Args:
        fronts: each (points, objectives), less is better.
        weights: one for each front.
        sign: what makes less better, for each objective, times what values were divided by; steps are multiplied by it.
    """
    if len(sign) == 2:
        found = _of_two(fronts, np.asarray(weights, np.float64), levels)
    elif len(sign) == 3:
        found = _of_three(fronts, np.asarray(weights, np.float64), levels)
    else:
        return ()
    with np.errstate(over="ignore"):
        own = [steps * sign for steps, _ in found]
    return tuple(
        Surface(level, tuple(tuple(row) for row in steps.tolist()), is_thinned)
        for level, steps, (_, is_thinned) in zip(levels, own, found, strict=True)
    )


def _of_two(fronts: Sequence[Floats], weights: Floats, levels: Sequence[float]) -> list[tuple[Floats, bool]]:
    """Steps (error, cost) of each level, and whether some are left out."""
    kept = [thinned(front, MAX_FRONT) for front in fronts]
    pooled = np.sort(np.concatenate([front[:, 1] for front in kept]))
    all_costs = np.unique(pooled)
    costs = all_costs if len(all_costs) <= MAX_STEPS else np.unique(thinned(pooled[:, None], MAX_STEPS))
    errors = np.array([_errors_at(costs, front) for front in kept])  # (fronts, costs)
    order = np.argsort(errors, axis=0)
    shares = np.cumsum(weights[order], axis=0) / weights.sum()
    is_thinned = len(costs) < len(all_costs) or any(len(front) > MAX_FRONT for front in fronts)
    found = []
    for level in levels:
        first = (shares < level - 1e-12).sum(axis=0)
        attained = np.take_along_axis(errors, np.take_along_axis(order, first[None], 0), 0)[0]
        is_step = np.isfinite(attained) & (attained < np.concatenate([[np.inf], attained[:-1]]))
        found.append((np.stack([attained[is_step], costs[is_step]], axis=1), is_thinned))
    return found


def _errors_at(costs: Floats, front: Floats) -> Floats:
    """The least error that `front` has at each cost or below; infinite below its least cost."""
    by_cost = front[np.argsort(front[:, 1], kind="stable")]
    best = np.concatenate([[np.inf], np.minimum.accumulate(by_cost[:, 0])])
    errors: Floats = best[np.searchsorted(by_cost[:, 1], costs, side="right")]
    return errors


def _of_three(fronts: Sequence[Floats], weights: Floats, levels: Sequence[float]) -> list[tuple[Floats, bool]]:
    """Points of each level's surface by the last objective, and whether some are left out."""
    number = len(fronts)
    if number > MAX_FRONTS_OF_THREE or np.ptp(weights) > 0:
        number = MAX_FRONTS_OF_THREE
    places = (np.arange(number) + 0.5) / number * weights.sum()
    taken = [fronts[i] for i in np.searchsorted(np.cumsum(weights), places)]
    kept = [thinned(front, MAX_FRONT_OF_THREE) for front in taken]
    sets = np.repeat(np.arange(number), [len(front) for front in kept])
    is_thinned = any(len(front) > MAX_FRONT_OF_THREE for front in taken)
    found = []
    for level in levels:
        steps = _attained_by(np.concatenate(kept), sets, level)
        found.append((thinned(steps, MAX_STEPS), is_thinned or len(steps) > MAX_STEPS))
    return found


def _attained_by(rows: Floats, sets: NDArray[np.intp], level: float) -> Floats:
    """The surface of three objectives at one level.

    It is that of the ranks, equal values ranked as they come, brought back: moocore 0.3.2 takes minutes or never ends
    where values are equal. What is attained is the same, for ranks order as values do; steps that are only there
    because equal values got different ranks fall away.
    """
    order = np.argsort(rows, axis=0, kind="stable")
    ranks = np.empty_like(rows)
    np.put_along_axis(ranks, order, np.arange(len(rows), dtype=np.float64)[:, None], axis=0)
    found = moocore.eaf(ranks, sets, percentiles=[100 * level - 1e-9])[:, :3].astype(np.intp)
    steps = np.unique(np.take_along_axis(np.sort(rows, axis=0), found, axis=0), axis=0)
    kept: Floats = steps[is_minimal(steps)]
    return kept
