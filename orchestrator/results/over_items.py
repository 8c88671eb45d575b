"""What a difference owes to seeds and to test items together, and whether errors by item add up."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.study import Study
from orchestrator.statistics import over_groups, student
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.over_groups import Floats
from trainables.errors import InputError


@dataclass(frozen=True)
class OverItems:
    """The difference of two points in an error rate.

    Attributes:
        metric: without evaluation.
        seeds: over seeds alone, which says nothing of other test items.
        both: over seeds and groups of test items together.
        is_whole: whether the items of every seed that has the metric were kept; of fewer it is another difference.
    """

    a: str
    b: str
    metric: str
    n_a: int
    n_b: int
    num_groups: int
    num_items: int
    seeds: Difference
    both: Difference
    is_whole: bool


@dataclass(frozen=True)
class Place:
    """A point: a condition under an evaluation, and its name where both are said."""

    name: str
    condition: str
    evaluation: str


@dataclass(frozen=True)
class ByGroup:
    """What several points erred on a test set that they share, by group of its items.

    Attributes:
        num_items: of the test set.
        lengths: of each group.
        errors: of each point: the errors of each group, by seed.
    """

    num_items: int
    lengths: Floats
    errors: tuple[Mapping[int, Floats], ...]


def by_group(items: ItemErrors, points: Sequence[tuple[str, str]], metric: str, is_paired: bool) -> ByGroup | None:
    """The errors in `metric` of all points; None where one has none by item, or test sets differ or are of one group.

    Args:
        points: each a condition and an evaluation.
        metric: without evaluation.
        is_paired: whether only seeds count that all points have.
    """
    names = [items.metrics(*point).get(metric, "") for point in points]
    found = [items.by_seed(condition, name) for (condition, _), name in zip(points, names, strict=True)]
    if is_paired:
        shared = set.intersection(*(set(own) for own in found))
        found = [{seed: own[seed] for seed in shared} for own in found]
    sets = {one.test_set for own in found for one in own.values()}
    if len(sets) != 1 or not all(found):  # of other items there is nothing to say together
        return None
    test_set = items.test_sets[sets.pop()]
    groups, of_group = np.unique([one.group for one in test_set], return_inverse=True)
    if len(groups) < 2:  # one speaker says nothing of others
        return None
    lengths = np.bincount(of_group, [one.length for one in test_set]).astype(np.float64)
    errors = [
        {seed: np.bincount(of_group, own[seed].errors, len(groups)).astype(np.float64) for seed in sorted(own)}
        for own in found
    ]
    return ByGroup(len(test_set), lengths, tuple(errors))


def over_items(study: Study, a: Place, b: Place, is_paired: bool) -> Iterator[OverItems]:
    """Every error rate that both points have by item, on the same test set of two groups at least.

    Args:
        is_paired: whether differences are taken seed by seed; then only seeds count that both have.
    """
    for metric in study.items.metrics(a.condition, a.evaluation):  # in an order that no process changes
        found = by_group(study.items, [(one.condition, one.evaluation) for one in (a, b)], metric, is_paired)
        if found is None:
            continue
        seeds_of = []
        for one in (a, b):
            name = study.items.metrics(one.condition, one.evaluation)[metric]
            complete = (r for r in study.of(one.condition) if r.state == "complete")
            seeds_of.append({r.seed for r in complete if math.isfinite(r.metrics.get(name, math.nan))})
        if is_paired:
            seeds_of = [set.intersection(*seeds_of)] * 2
        is_whole = [set(own) for own in found.errors] == seeds_of
        tables = [np.array(list(own.values())) for own in found.errors]  # errors (seeds, groups)
        both = over_groups.of_difference(tables[0], tables[1], found.lengths, is_paired)
        rates = [table.sum(1) / found.lengths.sum() for table in tables]
        seeds = student.of_paired_difference(*rates) if is_paired else student.of_unpaired_difference(*rates)
        yield OverItems(
            a.name, b.name, metric, len(tables[0]), len(tables[1]), len(found.lengths), found.num_items,
            Difference(*map(float, seeds)), Difference(*map(float, both)), is_whole,
        )  # fmt: skip


def check_sums(study: Study) -> None:
    """Checks that the errors of each replicate add up to its metric.

    Raises:
        InputError: where they do not, so that they are of something else.
    """
    replicates = {(replicate.condition, replicate.seed): replicate for replicate in study.replicates}
    for own in study.items.errors:
        replicate = replicates.get((own.condition, own.seed))
        if replicate is None or own.metric not in replicate.metrics:
            continue
        rate = sum(own.errors) / sum(item.length for item in study.items.test_sets[own.test_set])
        if not math.isclose(rate, replicate.metrics[own.metric], rel_tol=1e-6, abs_tol=1e-12):
            raise InputError(
                f"Errors by item must add up to the metric, but those of {own.metric} of {own.condition}, seed "
                f"{own.seed}, come to {rate:.8g}, and the metric is {replicate.metrics[own.metric]:.8g}; report errors "
                "and lengths whose sums have it as their ratio."
            )
