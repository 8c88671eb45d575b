"""The front of the conditions that have ended, while the sweep still runs."""

import time
from collections.abc import Sequence
from typing import Final

from orchestrator.scheduler.progress import ProgressView
from search_spaces.sweep import Sweep

LEAST_S: Final = 2.0
MOST_LINES: Final = 6


class FrontSoFar:
    """Shows which finished conditions no other beats in the means of all objectives."""

    def __init__(self, sweep: Sweep, view: ProgressView) -> None:
        self._objectives, self._view = sweep.objectives, view
        self._means: dict[str, Sequence[float]] = {}
        self._shown_s = -LEAST_S

    def add(self, condition: str, means: Sequence[float]) -> None:
        """Takes in a finished condition, with a mean for each objective; none where it failed."""
        if not means:
            return
        self._means[condition] = means
        if len(self._means) > 1 and time.monotonic() - self._shown_s >= LEAST_S:
            self._shown_s = time.monotonic()
            self._view.front(self._lines())

    def _lines(self) -> list[str]:
        from orchestrator.pareto.front import non_dominated

        names = list(self._means)
        marks = non_dominated([self._means[name] for name in names], self._objectives)
        sign = -1 if self._objectives[0].direction == "maximize" else 1
        best = sorted(
            (name for name, mark in zip(names, marks, strict=True) if mark), key=lambda n: sign * self._means[n][0]
        )
        return [f"{name}: {self._text(name)}" for name in best[:MOST_LINES]]

    def _text(self, name: str) -> str:
        pairs = zip(self._objectives, self._means[name], strict=True)
        return ", ".join(f"{objective.metric} {mean:.4g}" for objective, mean in pairs)
