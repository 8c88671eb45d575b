"""One comparison at a time, by the product's functions of many."""

from collections.abc import Sequence

import numpy as np

from orchestrator.statistics import pairwise, student
from orchestrator.statistics.pairwise import Direction, Groups
from orchestrator.statistics.power import POWER, noncentrality
from orchestrator.statistics.summary import Interval, of_estimates


def paired_difference_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval:
    return of_estimates(student.of_paired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)), level)


def welch_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval:
    return of_estimates(student.of_unpaired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)), level)


def jackknife_interval(value: float, leave_one_out: Sequence[float], level: float = 0.95) -> Interval:
    values = np.asarray(leave_one_out, np.float64)
    return of_estimates(student.of_jackknife(np.asarray(value, np.float64), values), level)


def improvement_probability(a: Sequence[float], b: Sequence[float], direction: Direction) -> float:
    return float(pairwise.improvement_rows(np.array([a], np.float64), np.array([b], np.float64), direction)[0])


def violation_ratio(a: Sequence[float], b: Sequence[float]) -> float:
    places_a, places_b, widths = pairwise._steps(len(a), len(b))
    rounding = pairwise.RESOLUTION * max(np.abs(a).max(), np.abs(b).max())
    return float(pairwise._ratio(np.sort(b)[places_b] - np.sort(a)[places_a], widths, rounding))


def hedges_g(a, b):
    return float(pairwise.hedges_g_rows(_row(a), _row(b))[0])


def almost_stochastic_order(a, b, *arguments):
    return float(pairwise.almost_stochastic_order_rows(_row(a), _row(b), *arguments)[0])


def permutation_p(a, b):
    """Of regroupings."""
    return float(Groups(_row(a), _row(b), is_paired=False).permutation_p[0])


def minimum_detectable_difference(standard_error, freedom, level=0.05, power=POWER):
    """By Welch's test."""
    return standard_error * float(noncentrality(np.asarray(freedom), level, power))


def _row(values):
    return np.array([values], np.float64)
