"""Borders of what is attained, as corners to draw a line through."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.pareto.attainment import Surface
from orchestrator.pareto.front import signs
from search_spaces.sweep import Objective

Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Border:
    """Two objectives of a panel, up to whose limits borders go."""

    upwards: Objective
    across: Objective
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]

    def around(self, rows: Sequence[Sequence[float]]) -> Corners:
        """Corners around what `rows` (upwards, across) attain, from the limit of the worst y to that of the worst x."""
        if not rows:
            return ()
        sign = signs((self.across, self.upwards))
        worst = np.max(np.array([self.x_limits, self.y_limits]) * sign[:, None], axis=1)
        places = np.array(rows)[:, ::-1] * sign
        places = places[np.argsort(places[:, 0], kind="stable")]
        corners = [(places[0, 0], max(worst[1], places[0, 1]))]
        for x, y in places:
            corners += [(x, corners[-1][1]), (x, y)]
        corners.append((max(worst[0], places[-1, 0]), corners[-1][1]))
        return tuple((float(x), float(y)) for x, y in np.array(corners) * sign)

    def between(self, surfaces: Sequence[Surface]) -> Corners:
        """Corners around what the first level attains and the last one does not."""
        if not (surfaces and surfaces[0].steps and surfaces[-1].steps):
            return ()
        return (*self.around(surfaces[0].steps), *reversed(self.around(surfaces[-1].steps)))
