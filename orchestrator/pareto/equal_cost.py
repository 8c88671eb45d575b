"""Compared points that do not cost the same: each against the interpolated front of the others at its own cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from orchestrator.pareto.front import is_minimal, signs
from orchestrator.pareto.seed_values import Floats, SeedValues, every_resample, num_distinct, random_resamples
from orchestrator.results.points import Point, counterpart
from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION
from search_spaces.sweep import Objective

TOLERANCE: Final = 0.02
"""Costs that differ by no more than this share of the second one's count as equal."""

LEAST: Final = 12
"""Pairs that are held against the front, however much work it is."""

WORK: Final = 20_000_000
"""Pairs times draws times points, of which each draw counts 1,000 more: up to this more pairs are held; seconds."""


@dataclass(frozen=True)
class EqualCost:
    """A pair of points that do not cost the same.

    Attributes:
        a, b: names of the points.
        error_metric, cost_metric: the first objective and the second.
        cost_a, cost_b: means.
        error: mean of a's error.
        line: the error that the front of the other points has at a's cost, between its points by straight lines;
            infinite where none of them costs as little; NaN where it was not looked for.
        better: share in which a is on the good side of that line, of those draws over seeds in which there is one; NaN
            where there is none in more than half of the draws, or for the means.
        num_others: how many points make the front; None where it was not looked for.
    """

    a: str
    b: str
    error_metric: str
    cost_metric: str
    cost_a: float
    cost_b: float
    error: float
    line: float
    better: float
    num_others: int | None


def has_cost(objectives: Sequence[Objective]) -> bool:
    """Whether there is an error, the first objective, and a cost, the second, which is minimized."""
    return len(objectives) > 1 and objectives[1].direction == "minimize"


def unequal_costs(
    pairs: Sequence[tuple[str, str]],
    points: Sequence[Point],
    objectives: Sequence[Objective],
    num_draws: int = 1000,
    seed: int = 0,
) -> tuple[EqualCost, ...]:
    """The pairs whose mean costs differ by more than 2 %, each with a against the front of the other points.

    The others are all points under a's evaluation, and under the one that b's condition has beside it (`counterpart`):
    an evaluation that a alone has would leave no others. A draw takes seeds again as `membership.uncertain_front` does,
    of all points together, and makes a new front and line. Where that is too much work, `WORK`, the pairs behind the
    first 12 and more have no line: they say their costs alone.

    Args:
        pairs: names of points.
        points: of the study, with values of `objectives`, of which the first two count.
    """
    if not has_cost(objectives):
        return ()
    chosen = {point.name: point for point in points}
    found = [(chosen[a], chosen[b]) for a, b in dict.fromkeys(pairs)]
    costs = [(a.summaries[1].mean, b.summaries[1].mean) for a, b in found]
    unequal = [pair for pair, (a, b) in zip(found, costs, strict=True) if abs(a - b) > TOLERANCE * abs(b)]
    if not unequal:
        return ()
    sizes = SeedValues.of(list(map(_first_two, points)), objectives[:2]).sizes
    most = max(LEAST, WORK // (min(num_draws, num_distinct(sizes.tolist())) * (1000 + len(points))))
    held = [_held(a, b, points, objectives[:2], num_draws, seed) for a, b in unequal[:most]]
    return (*held, *(_without_line(a, b, objectives) for a, b in unequal[most:]))


def _held(
    a: Point, b: Point, points: Sequence[Point], objectives: Sequence[Objective], num_draws: int, seed: int
) -> EqualCost:
    """The pair with a's place against the front of the other points at its cost."""
    # The evaluations of b's condition say under which others stand; of two points of one condition, those of all do.
    other_conditions = [point for point in points if point.condition != a.condition]
    own = {p.evaluation for p in other_conditions if p.condition == b.condition or a.condition == b.condition}
    evaluations = {a.evaluation, counterpart(a.evaluation, own or {a.evaluation})}
    among = [a, *(point for point in points if point.evaluation in evaluations and point.name != a.name)]
    values, sign = SeedValues.of(list(map(_first_two, among)), objectives), signs(objectives)
    line = _line(values.means[1:], values.means[0, 1])
    better, sizes = math.nan, [int(n) for n in values.sizes]
    if math.isfinite(line):
        is_exact = num_distinct(sizes) <= num_draws
        num_better = without = total = 0.0  # the share of draws in which a errs less than the front there
        for weight, counts in every_resample(sizes) if is_exact else random_resamples(sizes, num_draws, seed):
            rows = values.resampled(counts)
            drawn = _line(rows[1:], rows[0, 1])
            without += weight * math.isinf(drawn)
            num_better += weight * (drawn < math.inf and drawn - rows[0, 0] > RESOLUTION * abs(drawn))
            total += weight
        better = num_better / (total - without) if 2 * without <= total else math.nan
    line = float(scale.times(np.asarray(line * sign[0]), values.powers[0]))
    return replace(_without_line(a, b, objectives), line=line, better=better, num_others=len(among) - 1)


def _without_line(a: Point, b: Point, objectives: Sequence[Objective]) -> EqualCost:
    """The pair with its costs and without a line."""
    (error, cost), other = (summary.mean for summary in a.summaries[:2]), b.summaries[1].mean
    metrics = objectives[0].metric, objectives[1].metric
    return EqualCost(a.name, b.name, *metrics, cost, other, error, math.nan, math.nan, None)


def _first_two(point: Point) -> Point:
    return replace(point, summaries=point.summaries[:2], values=point.values[:2])


def _line(rows: Floats, cost: float) -> float:
    """The error at `cost` of the front of rows (error, cost), less being better; infinite below the cheapest row."""
    if not len(rows):
        return math.inf
    kept = rows[is_minimal(rows)]
    kept = kept[np.argsort(kept[:, 1], kind="stable")]
    return scale.between(cost, kept[:, 1].tolist(), kept[:, 0].tolist(), left=math.inf, right=None)
