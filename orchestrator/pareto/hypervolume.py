"""Volume that a front dominates."""

from collections.abc import Sequence

import moocore
import numpy as np

from orchestrator.pareto.front import Point
from search_spaces.sweep import Objective


def hypervolume(points: Sequence[Point], objectives: Sequence[Objective]) -> tuple[float, tuple[float, ...]] | None:
    """Volume that the front's means dominate, and the reference point: the worst mean of each objective, 1 % further.

    None for fewer than two points.
    """
    if len(points) < 2:
        return None
    signs = np.array([-1.0 if objective.direction == "maximize" else 1.0 for objective in objectives])
    means = np.array([[summary.mean for summary in point.summaries] for point in points]) * signs
    reference = means.max(0) + 0.01 * np.abs(means.max(0))
    return float(moocore.hypervolume(means, ref=reference)), tuple(float(x) for x in reference * signs)
