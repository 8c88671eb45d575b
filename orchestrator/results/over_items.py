"""What a difference owes to seeds and to test items together, and whether errors by item add up."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orchestrator.results.study import Study
from orchestrator.statistics import over_groups, student
from orchestrator.statistics.equivalence import Difference
from trainables.errors import InputError


@dataclass(frozen=True)
class OverItems:
    """The difference of two points in an error rate.

    Attributes:
        metric: without evaluation.
        seeds: over seeds alone, which says nothing of other test items.
        both: over seeds and groups of test items together.
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


@dataclass(frozen=True)
class Place:
    """A point: a condition under an evaluation, and its name where both are said."""

    name: str
    condition: str
    evaluation: str


def over_items(study: Study, a: Place, b: Place, is_paired: bool) -> Iterator[OverItems]:
    """Every error rate that both points have by item, on the same test set of two groups at least.

    Args:
        is_paired: whether differences are taken seed by seed; then only seeds count that both have.
    """
    ours, theirs = (study.items.metrics(point.condition, point.evaluation) for point in (a, b))
    for metric in [name for name in ours if name in theirs]:  # in an order that no process changes
        first = study.items.by_seed(a.condition, ours[metric])
        second = study.items.by_seed(b.condition, theirs[metric])
        if is_paired:
            shared = sorted(first.keys() & second.keys())
            first, second = ({seed: part[seed] for seed in shared} for part in (first, second))
        sets = {one.test_set for part in (first, second) for one in part.values()}
        if len(sets) != 1:  # of other items there is nothing to say together
            continue
        items = study.items.test_sets[sets.pop()]
        groups, of_group = np.unique([one.group for one in items], return_inverse=True)
        if len(groups) < 2:  # one speaker says nothing of others
            continue
        lengths = np.bincount(of_group, [one.length for one in items]).astype(np.float64)
        tables = [  # errors (seeds, groups)
            np.array([np.bincount(of_group, part[seed].errors, len(groups)) for seed in sorted(part)], np.float64)
            for part in (first, second)
        ]
        both = over_groups.of_difference(tables[0], tables[1], lengths, is_paired)
        rates = [table.sum(1) / lengths.sum() for table in tables]
        seeds = student.of_paired_difference(*rates) if is_paired else student.of_unpaired_difference(*rates)
        yield OverItems(
            a.name, b.name, metric, len(first), len(second), len(groups), len(items),
            Difference(*map(float, seeds)), Difference(*map(float, both)),
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
