"""How sure the front is, given so few seeds: a bootstrap over seeds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from orchestrator.pareto.attainment import MAX_FRONT, Surface, surfaces, thinned
from orchestrator.pareto.front import front, is_minimal, places, signs
from orchestrator.pareto.hypervolume import Volume, volume
from orchestrator.pareto.seed_values import Floats, Indices, SeedValues, every_resample, num_distinct, random_resamples
from orchestrator.results.points import Point, counterpart
from orchestrator.results.study import Study
from orchestrator.statistics import scale, student
from orchestrator.statistics.summary import Interval
from search_spaces.known_names import known_names
from search_spaces.sweep import Objective

Standing = Literal["front", "front within noise", "near within noise", "dominated"]
SURE: Final = 0.95
LEVELS: Final = (0.05, 0.5, 0.95)
MAX_NAMED: Final = 3
FEW_SEEDS: Final = 3
CLOSE: Final = (
    "Points within noise of each other at the front: the best of them is not as good as it looks, and the interval of "
    "the hypervolume covers less than 95 %: in simulation 89 to 92 % where two are equal at each place of the front, "
    "71 to 80 % where five are."
)


@dataclass(frozen=True)
class Membership:
    """What the draws say of one point.

    Attributes:
        on_front: share of the draws in which no other point dominates it.
        dominates_reference: share of the draws in which it dominates the reference; NaN for that and without one.
        standing: on the front of the means in at least 95 % of the draws, or in fewer; off it but on the front in more
            than 5 % of them, or dominated.
        intervals: of each objective's mean, 95 %.
    """

    on_front: float
    dominates_reference: float
    standing: Standing
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class UncertainFront:
    """A front with its uncertainty.

    Attributes:
        memberships: one for each of the points, in their order.
        num_draws: how many resamples; with `is_exact` every one there is.
        is_paired: whether all points have the same seeds, so that a draw takes the same seeds of all.
        reference: name of the reference's point, of the first where it has several; empty without one.
        notes: what the reader must know: one seed, no spread, unequal seeds.
        attainment: surfaces that 5, 50 and 95 % of the draws' fronts attain.
        seed_attainment: surfaces that the fronts of 1, 2, ... n seeds attain; none where seeds are not paired.
    """

    points: tuple[Point, ...]
    memberships: tuple[Membership, ...]
    volume: Volume | None
    num_draws: int
    is_exact: bool
    is_paired: bool
    reference: str = ""
    notes: tuple[str, ...] = ()
    attainment: tuple[Surface, ...] = ()
    seed_attainment: tuple[Surface, ...] = ()


def uncertain_front(
    study: Study, objectives: Sequence[Objective], reference: str | None, num_draws: int = 1000, seed: int = 0
) -> UncertainFront:
    """The front of a study's means, and the share of bootstrap draws in which each point is on it.

    A draw takes n of a point's n seeds with replacement, the same ones of all points that have the same seeds, so that
    what a seed does to all of them alike moves no point against another; points with other seeds draw on their own. A
    drawn mean's distance from the mean is stretched (`seed_values.stretch`), for so few seeds say little of the spread:
    at three seeds 2.2 times, at ten 1.2 times. Where there are no more than
    `num_draws` different resamples (126 of five seeds), each is taken with its weight, and nothing is random.

    The shares say what is likely given these seeds' spread; they are no tests. A point of one seed and an objective
    without spread have no noise here.

    Args:
        reference: the condition that others are held against, each under its own evaluation where the reference has it.
        num_draws: at most so many.
        seed: of the random draws; the same one gives the same shares.
    """
    points = front(study, objectives)
    if not points:
        return UncertainFront((), (), None, 0, is_exact=True, is_paired=True)
    values = SeedValues.of(points, objectives)
    sign = scale.times(signs(objectives), values.powers)
    own: dict[str, int] = {}  # the place of the reference's point under each of its evaluations
    for i, point in enumerate(points):
        if point.condition == reference:
            own.setdefault(point.evaluation, i)
    rivals = np.array([own[counterpart(point.evaluation, own)] for point in points], np.intp) if own else None
    tally = _tally(values, rivals, num_draws, seed)
    is_paired = len(values.sizes) == 1
    # Only where all points have the same seeds is there a front under each seed.
    by_seed = [rows[is_minimal(places(rows, values.magnitudes))] for rows in values.by_seed()] if is_paired else []
    levels = [k / len(by_seed) for k in range(1, len(by_seed) + 1)]
    memberships = tuple(
        Membership(float(share), float(dominates), _standing(point.is_front, share), intervals)
        for point, share, dominates, intervals in zip(
            points, tally.on_front, tally.dominates, _intervals(points), strict=True
        )
    )
    size = volume(points, objectives)
    return UncertainFront(
        points=points,
        memberships=memberships,
        volume=size,
        num_draws=len(tally.weights),
        is_exact=tally.is_exact,
        is_paired=is_paired,
        reference=points[int(rivals.min())].name if rivals is not None else "",
        notes=_notes(study, points, objectives, reference, memberships, size),
        attainment=surfaces(tally.fronts, tally.weights, LEVELS, sign),
        seed_attainment=surfaces(by_seed, [1.0] * len(by_seed), levels, sign) if is_paired else (),
    )


@dataclass(frozen=True)
class _Tally:
    """Shares of all draws by point, and each draw's front (thinned) with its weight."""

    on_front: Floats
    dominates: Floats
    fronts: list[Floats]
    weights: list[float]
    is_exact: bool


def _tally(values: SeedValues, rivals: Indices | None, num_draws: int, seed: int) -> _Tally:
    """The shares of the draws in which each point is on the front, and dominates its rival.

    Points that no draw can bring to the front are left out of the draws, unless they are held against rivals.
    """
    num_points, contenders = len(values.means), values.contenders(values.resample_reach())
    drawn = values.chosen(contenders) if rivals is None else values
    chosen = np.arange(len(contenders)) if rivals is None else contenders
    sizes = [int(n) for n in drawn.sizes]
    is_exact = num_distinct(sizes) <= num_draws
    on_front, dominates = np.zeros(num_points), np.zeros(num_points)
    fronts, weights = [], []
    for weight, counts in every_resample(sizes) if is_exact else random_resamples(sizes, num_draws, seed):
        rows = drawn.resampled(counts)
        ranks = places(rows, drawn.magnitudes)
        marks = is_minimal(ranks[chosen])
        on_front[contenders[marks]] += weight
        fronts.append(thinned(rows[chosen[marks]], MAX_FRONT))
        weights.append(weight)
        if rivals is not None:
            others = ranks[rivals]
            dominates += weight * ((ranks <= others).all(axis=1) & (ranks < others).any(axis=1))
    total = sum(weights)
    has_rival = np.zeros(num_points, bool) if rivals is None else rivals != np.arange(num_points)
    return _Tally(on_front / total, np.where(has_rival, dominates / total, math.nan), fronts, weights, is_exact)


def _standing(is_front: bool, share: float) -> Standing:
    if is_front:
        return "front" if share >= SURE else "front within noise"
    return "near within noise" if share > 1 - SURE else "dominated"


def _intervals(points: Sequence[Point]) -> list[tuple[Interval, ...]]:
    """The intervals of each point's means, as `mean_interval` gives them; points of as many seeds at once."""
    found: list[tuple[Interval, ...]] = [()] * len(points)
    numbers = np.array([len(point.seeds) for point in points])
    for n in np.unique(numbers):
        chosen = np.flatnonzero(numbers == n)
        estimates = student.of_mean(np.array([points[int(i)].values for i in chosen]))
        for i, lows, highs in zip(chosen, *student.bounds(estimates, 0.95), strict=True):
            found[i] = tuple(Interval(float(low), float(high)) for low, high in zip(lows, highs, strict=True))
    return found


def _notes(
    study: Study,
    points: Sequence[Point],
    objectives: Sequence[Objective],
    reference: str | None,
    memberships: Sequence[Membership],
    size: Volume | None,
) -> tuple[str, ...]:
    """Sentences on missing values, one seed, few seeds, no spread, unequal seeds and a reference that is not there.

    Then on a spread, an interval's end or a hypervolume larger than any number, and on points within noise.
    """
    found = []
    num_complete = Counter(replicate.condition for replicate in study.replicates if replicate.state == "complete")
    pairs = [(point.name, len(point.seeds), num_complete[point.condition]) for point in points]
    if lacking := [f"{name} ({total - used} of {total})" for name, used, total in pairs if used < total]:
        names = known_names(lacking, most=MAX_NAMED)
        found.append(f"Complete replicates without a finite value of every objective are left out: {names}.")
    if single := [point for point in points if len(point.seeds) == 1]:
        found.append(
            f"One seed with values only: {_listed(single, points)}. Their noise is not known, and counts as none."
        )
    if few := [point for point in points if 1 < len(point.seeds) <= FEW_SEEDS]:
        found.append(
            f"Two or three seeds: {_listed(few, points)}. They can be drawn in 3 or 10 ways, so shares are coarse."
        )
    for i, objective in enumerate(objectives):
        if constant := [point for point in points if point.summaries[i].std == 0]:
            found.append(
                f"{objective.metric} does not vary over seeds: {_listed(constant, points)}. It counts as exact."
            )
    num_groups = len({point.seeds for point in points})
    if num_groups > 1:
        found.append(
            f"Seeds differ: {num_groups} sets of seeds, each drawn on its own; only within one are points paired."
        )
    if reference and not any(point.condition == reference for point in points):
        found.append(
            f"The reference {reference} is not shown: none of its replicates has these metrics, or --where hides it."
        )
    infinite = []
    for point, sure in zip(points, memberships, strict=True):
        ends = (end for interval in sure.intervals for end in interval)
        if any(map(math.isinf, (*(summary.std for summary in point.summaries), *ends))):
            infinite.append(point)
    beyond = [_listed(infinite, points)] if infinite else []
    if size and any(map(math.isinf, (size.value, *size.reference, *size.interval))):
        beyond.append("the hypervolume")
    if beyond:
        found.append(f"Beyond 1.8e308, the largest number, and so infinite: {' and '.join(beyond)}.")
    if size and any(one.standing.endswith("within noise") for one in memberships):
        found.append(CLOSE)
    return tuple(found)


def _listed(chosen: Sequence[Point], points: Sequence[Point]) -> str:
    if len(chosen) == len(points):
        return "all points"
    return known_names((point.name for point in chosen), most=MAX_NAMED)
