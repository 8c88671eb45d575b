"""Two points of a study held against each other: difference, tests, effect, and what so many seeds can show."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.results.points import Point, counterpart
from orchestrator.results.question import Question
from orchestrator.statistics import pairwise, scale, shape, student
from orchestrator.statistics.pairwise import LEVEL, MOST_ORDERS, Groups, Test
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import Interval, Summary
from search_spaces.sweep import Objective


@dataclass(frozen=True)
class Comparison:
    """Point `a` against point `b` in one metric.

    Attributes:
        a: name of a point: the condition, with `@evaluation` where the study has several.
        is_paired: whether both have the same seeds, so that differences are taken seed by seed.
        is_better: whether a's mean is on the good side of b's.
        difference: mean of a minus mean of b.
        interval: of the difference, 95 %, of the kind of the promised test: Welch's, or of paired differences where the
            paired permutation test is promised and the seeds pair, or both points are of one condition.
        welch_p: NaN where it says nothing.
        permutation_p: exact, of sign flips where paired, else of regroupings; NaN with fewer than two seeds.
        least_p: the smallest p that the permutation test can give with so many seeds.
        p: of the test that the sweep promises. Welch's where that is of pairs and the seeds do not pair; a paired
            t-test in place of Welch's where both points are of one condition. NaN where it says nothing, and where the
            difference is certain.
        p_holm: `p` adjusted for the family it is in.
        effect: Hedges' g, the difference in units of the standard deviation; NaN without spread.
        epsilon: of almost stochastic order, an upper bound of how far a is from being better throughout; NaN with fewer
            than three seeds, without spread or difference, and among more than 2,000 comparisons.
        improvement: probability that a replicate of a is better than one of b.
        shown: the smallest difference that so many seeds show by the promised test with power 0.8, at the first step of
            Holm; NaN where they show none, however large, and where the difference is certain.
        seeds_needed: for the difference seen, as `shown`; None where no number below 1,000 does, where it is certain,
            and with one seed, which says nothing of the spread.
        can_decide: whether the promised test can reach 0.05 in its family at all with so many seeds.
        warnings: what the reader must know: a test that cannot reach its level, skew, ties. Comparisons share them.
        is_certain: whether neither point has any spread over two seeds or more, in a metric whose constant values are
            no accident. Then there is no test, and `answer` follows from the difference.
    """

    a: str
    b: str
    metric: str
    summary_a: Summary
    summary_b: Summary
    is_paired: bool
    is_better: bool
    difference: float
    interval: Interval
    welch_p: float
    permutation_p: float
    least_p: float
    p: float
    p_holm: float
    effect: float
    epsilon: float
    improvement: float
    shown: float
    seeds_needed: int | None
    can_decide: bool
    warnings: tuple[str, ...] = ()
    is_certain: bool = False

    @property
    def answer(self) -> str:
        """`better`, `worse` or `undecided`, by the adjusted p; where the difference is certain by it: 0 is `equal`."""
        if self.is_certain and self.difference == 0:
            return "equal"
        if not (self.is_certain or self.p_holm <= 0.05):
            return "undecided"
        return "better" if self.is_better else "worse"


def is_not_worse(comparison: Comparison, question: Question) -> bool:
    """Whether a comparison that decides nothing shows that a is not worse in the first objective.

    It does where its interval ends before a is worse by the margin that the sweep names; without a margin none does.
    """
    first, margin = question.objectives[0], question.non_inferiority
    if margin is None or comparison.metric != first.metric or comparison.answer != "undecided":
        return False
    loss = comparison.interval.high if first.direction == "minimize" else -comparison.interval.low
    return loss < margin


def compare(
    a: Point,
    b: Point,
    objectives: Sequence[Objective],
    test: Test,
    all_points: Sequence[Point] = (),
    tied: Collection[str] = (),
) -> tuple[Comparison, ...]:
    """`a` against `b` in each objective; these comparisons are a family.

    Args:
        objectives: those that the points have values of, in their order.
        test: the one that the sweep promises.
        all_points: of the study, from which skew and ties of its noise are judged; default: the two.
        tied: metrics whose values repeat in conditions that are not among the points.
    """
    return _compared([(a, b)], objectives, test, all_points or (a, b), tied)


def compare_with_reference(
    points: Sequence[Point],
    reference: str,
    objectives: Sequence[Objective],
    test: Test,
    all_points: Sequence[Point] = (),
    tied: Collection[str] = (),
    beside: Sequence[float] = (),
) -> tuple[Comparison, ...]:
    """Every point against the reference's in each objective, in the order of both; all together are a family.

    Points of the reference itself are not compared; there is nothing to compare where it has none.

    Args:
        reference: a condition.
        all_points: of the study, from which skew and ties of its noise are judged; default: `points`.
        tied: metrics whose values repeat in conditions that are not among the points.
        beside: p-values of other tests that are of the family too.
    """
    rivals = reference_points(points, reference)
    pairs = [(point, rivals[point.name]) for point in points if point.name in rivals]
    return _compared(pairs, objectives, test, all_points or points, tied, beside)


def reference_points(points: Sequence[Point], reference: str) -> dict[str, Point]:
    """What each point is compared with, by its name: the reference under the evaluation's `counterpart`."""
    own = {point.evaluation: point for point in points if point.condition == reference}
    if not own:
        return {}
    return {point.name: own[counterpart(point.evaluation, own)] for point in points if point.condition != reference}


@dataclass(frozen=True)
class _Batch:
    """Comparisons in one metric whose points have as many seeds, so that they are computed at once.

    Attributes:
        index: of the objective.
        pairs: their points.
        places: of each comparison in the family.
        powers: of two, by which the values of each comparison were divided; 0 but beyond 1e298 or below 1e-298.
        hides_noise: whether what is constant in this metric need not be certain.
        warnings: about the metric.
    """

    objective: Objective
    index: int
    pairs: tuple[tuple[Point, Point], ...]
    places: NDArray[np.intp]
    groups: Groups
    powers: NDArray[np.intp]
    hides_noise: bool
    warnings: tuple[str, ...]

    def is_certain(self) -> NDArray[np.bool_]:
        """Whether there is no noise in each of the comparisons."""
        return self.groups.is_constant() & (not self.hides_noise)


@dataclass(frozen=True)
class _Family:
    """The family of comparisons that are adjusted together.

    Attributes:
        p: of the promised test, in their order.
        p_holm: the same, adjusted.
        can_decide: of each, if it is tested.
        num_tests: those that have a p, at least 1.
        level: of the first step of Holm.
        has_orders: whether they are few enough for almost stochastic order.
    """

    test: Test
    p: list[float]
    p_holm: list[float]
    can_decide: list[bool]
    num_tests: int
    level: float
    has_orders: bool


def _compared(
    pairs: Sequence[tuple[Point, Point]],
    objectives: Sequence[Objective],
    test: Test,
    points: Sequence[Point],
    tied: Collection[str],
    beside: Sequence[float] = (),
) -> tuple[Comparison, ...]:
    batches = list(_batches(pairs, objectives, points, tied))
    family = _family(batches, len(pairs) * len(objectives), test, beside)
    found: dict[int, Comparison] = {}  # by its place in the family: batches are by number of seeds
    for batch in batches:
        columns, j = _columns(batch, family), batch.index
        for i, (place, (a, b)) in enumerate(zip(batch.places.tolist(), batch.pairs, strict=True)):
            own = {name: column[i] for name, column in columns.items()}
            found[place] = Comparison(a.name, b.name, batch.objective.metric, a.summaries[j], b.summaries[j], **own)
    return tuple(found[place] for place in range(len(found)))


def _batches(
    pairs: Sequence[tuple[Point, Point]],
    objectives: Sequence[Objective],
    points: Sequence[Point],
    tied: Collection[str],
) -> Iterator[_Batch]:
    sizes: dict[tuple[int, int, bool, bool], list[int]] = {}
    for i, (a, b) in enumerate(pairs):
        kind = len(a.seeds), len(b.seeds), a.seeds == b.seeds, a.condition == b.condition
        sizes.setdefault(kind, []).append(i)
    for j, objective in enumerate(objectives):
        noise = [point.values[j] for point in points]
        warnings = tuple(f"{objective.metric}: {sentence}" for sentence in shape.warnings(noise))
        hides_noise = objective.metric in tied or shape.may_hide_noise(noise)
        for (_, _, is_paired, is_one_condition), members in sizes.items():
            chosen = tuple(pairs[i] for i in members)
            left, right = (np.array([pair[side].values[j] for pair in chosen], np.float64) for side in (0, 1))
            places = np.array(members, np.intp) * len(objectives) + j
            powers = scale.headroom(left, right)
            groups = Groups(scale.divided(left, powers), scale.divided(right, powers), is_paired, is_one_condition)
            yield _Batch(objective, j, chosen, places, groups, powers, hides_noise, warnings)


def _family(batches: Sequence[_Batch], num_comparisons: int, test: Test, beside: Sequence[float]) -> _Family:
    p, least = np.full(num_comparisons, np.nan), np.full(num_comparisons, np.nan)
    for batch in batches:
        is_certain = batch.is_certain()
        p[batch.places] = np.where(is_certain, np.nan, batch.groups.p(test))
        least[batch.places] = np.where(is_certain, np.nan, batch.groups.least_p(test))
    p_values = [*p.tolist(), *beside]
    num_p = max(1, sum(not math.isnan(value) for value in p_values))
    return _Family(
        test=test,
        p=p.tolist(),
        p_holm=holm(p_values)[:num_comparisons],
        can_decide=[adjusted <= LEVEL for adjusted in holm([*least.tolist(), *beside])[:num_comparisons]],
        num_tests=num_p,
        level=LEVEL / num_p,
        has_orders=num_comparisons <= MOST_ORDERS,
    )


def _columns(batch: _Batch, family: _Family) -> dict[str, Sequence[Any]]:
    """The values of every further field of `Comparison`, one for each comparison of the batch."""
    groups, direction, places = batch.groups, batch.objective.direction, batch.places.tolist()
    difference, num_rows = groups.difference.value, len(batch.pairs)
    half = student.half_width(groups.estimates(family.test), 0.95)
    half = np.where(batch.groups.is_constant() & ~batch.is_certain(), np.nan, half)
    orders = (
        pairwise.almost_stochastic_order_rows(groups.a, groups.b, direction)
        if family.has_orders
        else np.full(num_rows, np.nan)
    )
    is_certain = batch.is_certain()
    shown, needed = (
        np.where(groups.is_constant(), np.nan, found)
        for found in (
            groups.minimum_detectable_difference(family.test, family.level),
            groups.required_sample_size(family.test, family.level),
        )
    )
    low, high = (scale.times(end, batch.powers) for end in (difference - half, difference + half))
    stds = [[point.summaries[batch.index].std for point in pair] for pair in batch.pairs]
    is_infinite: NDArray[np.bool_] = np.isinf(low) | np.isinf(high) | np.isinf(stds).any(1)
    columns = {
        "is_better": difference > 0 if direction == "maximize" else difference < 0,
        "difference": scale.times(difference, batch.powers),
        "welch_p": groups.welch_p,
        "permutation_p": groups.permutation_p,
        "effect": pairwise.hedges_g_rows(groups.a, groups.b),
        "epsilon": orders,
        "improvement": pairwise.improvement_rows(groups.a, groups.b, direction),
        "shown": scale.times(shown, batch.powers),
        "is_certain": is_certain,
        "can_decide": is_certain | np.array([family.can_decide[place] for place in places]),
    }
    return {name: column.tolist() for name, column in columns.items()} | {
        "is_paired": [groups.is_paired] * num_rows,
        "interval": list(map(Interval, low.tolist(), high.tolist())),
        "least_p": [groups.least_permutation_p()] * num_rows,
        "p": [family.p[place] for place in places],
        "p_holm": [family.p_holm[place] for place in places],
        "seeds_needed": [None if math.isnan(n) else int(n) for n in needed.tolist()],
        "warnings": _warnings(batch, family, is_infinite),
    }


def _warnings(batch: _Batch, family: _Family, is_infinite: NDArray[np.bool_]) -> list[tuple[str, ...]]:
    """The warnings of each comparison, those about its seeds first.

    Args:
        is_infinite: whether a spread or an end of the interval is larger than any number.
    """
    groups, is_certain, is_constant = batch.groups, batch.is_certain(), batch.groups.is_constant()
    can_decide = any(family.can_decide[place] for place in batch.places.tolist())
    of_metric = batch.warnings if family.has_orders else (*batch.warnings, pairwise.NO_ORDERS)
    of_test = pairwise.of_seeds(groups, family.test, can_decide, family.num_tests) + of_metric
    has_one_difference = groups.is_paired & (groups.estimates(family.test).standard_error == 0)
    found = []
    for i in range(len(batch.pairs)):
        if is_certain[i]:
            found.append((pairwise.NO_SPREAD, *of_metric))
        elif is_constant[i]:
            found.append((pairwise.HIDDEN_SPREAD, *of_test))
        else:
            found.append((pairwise.ONE_DIFFERENCE, *of_test) if has_one_difference[i] else of_test)
    return [(pairwise.BEYOND, *own) if infinite else own for own, infinite in zip(found, is_infinite, strict=True)]
