"""Points held against controls of the same cost: the straight lines through controls at several costs, seed by seed."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from orchestrator.pareto.front import signs
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.over_items import by_group
from orchestrator.results.points import Point
from orchestrator.statistics import over_groups, scale, shape, student
from orchestrator.statistics.pairwise import LEVEL
from orchestrator.statistics.scale import between
from orchestrator.statistics.significance import holm
from orchestrator.statistics.student import RESOLUTION
from orchestrator.statistics.summary import NONE, Interval, exact_mean, of_estimates
from search_spaces.sweep import Objective
from trainables.errors import InputError

Answer = Literal["better", "worse", "undecided"]


@dataclass(frozen=True)
class BesideLine:
    """A point and what its controls have at its cost, over the seeds in which its cost lies between theirs.

    Attributes:
        name: of the point.
        num_seeds, num_better: how many such seeds there are; in how many the point is better.
        cost, error, line: means over these seeds: the point's cost and error, and the error on the line.
        difference, interval: mean of error less line within each seed, and its 95 % interval by Student's t.
        both: of the same mean, over these seeds and groups of test items together; none where there is no interval
            over seeds, or a seed has no errors by test item.
        num_groups: of test items.
        p, p_holm: two-sided, that this mean is 0; adjusted for all points together.
        is_certain: whether neither the point nor a control varies over the seeds, so that there is no test.
    """

    name: str
    num_seeds: int
    num_better: int
    cost: float
    error: float
    line: float
    difference: float
    interval: Interval
    p: float
    p_holm: float
    answer: Answer
    is_certain: bool = False
    both: Interval = NONE
    num_groups: int = 0


def beside_line(
    pairs: Sequence[tuple[Point, Sequence[Point]]],
    objectives: Sequence[Objective],
    every: Sequence[Point],
    tied: Collection[str] = (),
    others: Sequence[float] = (),
    items: ItemErrors | None = None,
) -> tuple[BesideLine, ...]:
    """Each point against the line through its controls: is it better than they are at its own cost?

    Within a seed the controls are ordered by cost, and the error between two of them is interpolated. So noise that a
    seed gives to all of them does not count. Nothing is said beyond the cheapest and the most costly control: those
    seeds are left out. A point and its controls need the same seeds.

    Args:
        pairs: points, with values of an error and of a cost, which is minimized; and the controls of each, two at
            least.
        every: all points of the study: where values repeat in those that vary, others without spread may vary too.
        tied: metrics whose values repeat in conditions that are not shown.
        others: p-values of other tests that are adjusted together with these.
        items: errors by test item, of the study that the points are of.

    Raises:
        InputError: if a point has fewer than two controls, two costs are equal within a seed, or seeds differ.
    """
    hides_noise = any(
        one.metric in tied or shape.may_hide_noise([point.values[j] for point in every])
        for j, one in enumerate(objectives[:2])
    )
    for point, controls in pairs:
        _check(point, controls)
    sign = float(signs(objectives)[0])
    results = [_beside(point, controls, sign, hides_noise) for point, controls in pairs]
    adjusted = holm([*(result.p for result in results), *others])
    answered = []
    for pair, result, p in zip(pairs, results, adjusted[: len(results)], strict=True):
        has_spread = not math.isnan(result.interval.low)
        both, num_groups = _over_items(items, *pair, objectives[0].metric) if has_spread else (NONE, 0)
        answer: Answer = "better" if result.difference * sign < 0 else "worse"
        is_decided = p <= LEVEL or (result.is_certain and result.difference != 0)
        answer = answer if is_decided else "undecided"
        answered.append(replace(result, p_holm=p, answer=answer, both=both, num_groups=num_groups))
    return tuple(answered)


def _check(point: Point, controls: Sequence[Point]) -> None:
    if len(controls) < 2:
        raise InputError(f"A line needs two controls of different cost at least, but got {len(controls)}.")
    for one in (point, *controls):
        if one.seeds != controls[0].seeds:
            raise InputError(
                f"A line is laid within each seed, so all need the same seeds, but {one.name} has "
                f"{_listed(one)} and {controls[0].name} {_listed(controls[0])}."
            )
    for seed, costs in zip(controls[0].seeds, zip(*(one.values[1] for one in controls), strict=True), strict=True):
        if student.is_constant(np.array(costs)):
            names = ", ".join(one.name for one in controls)
            raise InputError(
                f"A line needs two controls of different cost, but {names} cost the same under seed {seed}."
            )


def _listed(point: Point) -> str:
    return ", ".join(map(str, point.seeds))


def _beside(point: Point, controls: Sequence[Point], sign: float, hides_noise: bool) -> BesideLine:
    errors, costs = np.array(point.values[:2], np.float64)
    seeds = range(len(costs))
    lines = np.array([_line(_costs(controls, i), [one.values[0][i] for one in controls], costs[i]) for i in seeds])
    inside = np.isfinite(lines)
    errors, costs, lines = errors[inside], costs[inside], lines[inside]
    cost, error, line = (float(student.of_mean(values).value) for values in (costs, errors, lines))
    power = scale.headroom(errors, lines)
    errors, lines = scale.divided(errors, power), scale.divided(lines, power)
    difference = student.of_paired_difference(errors, lines)
    p, gaps = float(student.two_sided_p(difference)), sign * (errors - lines)
    better = int((gaps < -RESOLUTION * np.abs(lines)).sum())
    is_constant = all(summary.std == 0 for own in (point, *controls) for summary in own.summaries[:2])
    is_certain = len(lines) > 1 and is_constant and not hides_noise
    interval = of_estimates(difference, 0.95) if difference.standard_error > 0 or is_certain else NONE
    interval = Interval(*(float(scale.times(np.asarray(bound), power)) for bound in interval))
    beside = cost, error, line, float(scale.times(difference.value, power)), interval
    return BesideLine(point.name, len(lines), better, *beside, p, math.nan, "undecided", is_certain)


def _over_items(items: ItemErrors | None, point: Point, controls: Sequence[Point], metric: str) -> tuple[Interval, int]:
    """The interval of the mean difference over seeds and groups of test items, and how many groups there are.

    The line is laid within each seed and group, at the costs of the seed: it is linear in the controls' errors, so
    those of all groups add up to the line of the seed.
    """
    sides = [(one.condition, one.evaluation) for one in (point, *controls)]
    found = by_group(items, sides, metric, is_paired=True) if items else None
    if found is None or not set(point.seeds) <= set(found.errors[0]):  # of fewer seeds it is another difference
        return NONE, 0
    own, *beside = found.errors
    gaps = []
    for i, seed in enumerate(point.seeds):
        costs, cost = _costs(controls, i), point.values[1][i]
        weights = np.array([_line(costs, unit, cost) for unit in np.eye(len(beside)).tolist()])
        if np.isfinite(weights).all():
            gaps.append(own[seed] - weights @ np.array([errors[seed] for errors in beside]))
    return of_estimates(over_groups.of_mean(np.array(gaps), found.lengths), 0.95), len(found.lengths)


def _costs(controls: Sequence[Point], seed: int) -> list[float]:
    """The cost of each control within the seed of this number."""
    return [one.values[1][seed] for one in controls]


def _line(costs: Sequence[float], errors: Sequence[float], cost: float) -> float:
    """The error at `cost` of controls with these costs and errors; NaN beyond their costs.

    Controls of equal cost, but for rounding, count as one, with the mean of their errors.
    """
    step = RESOLUTION * max(map(abs, costs))
    by_cost: dict[float, list[float]] = {}
    for own, error in sorted(zip(costs, errors, strict=True)):
        known = next((known for known in by_cost if own - known <= step), own)
        by_cost.setdefault(known, []).append(error)
    ordered = sorted(by_cost)
    means = [exact_mean(by_cost[one]) for one in ordered]
    near = next((one for one in ordered if abs(one - cost) <= step), cost)
    return between(near, ordered, means, left=math.nan, right=math.nan)
