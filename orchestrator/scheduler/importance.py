"""How much each parameter of a search matters, by functional ANOVA of what Optuna was told.

A random forest predicts an objective from the parameters. A parameter's share is the variance of its marginal
prediction among those of all parameters (Hutter, Hoos & Leyton-Brown 2014, "An Efficient Approach for Assessing
Hyperparameter Importance"), over the space as the search draws from it: evenly in the logarithm where the search does
so. Optuna's default, PED-ANOVA, asks what leads to the best tenth, and of 20 trials that would be two.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    json_to_distribution,
)

from orchestrator.results.trials import Importance, Trial, Trials
from orchestrator.statistics import functional_anova, scale
from orchestrator.statistics.student import is_constant
from orchestrator.statistics.subsample import subsample

LEAST_TRIALS: Final = 20
"""With 20, one parameter of four that alone matters gets 0.97 or more; with 10 it may get 0.7."""

MOST_TRIALS: Final = 500
"""The time grows with the square; 500 take seconds."""

MOST_LEFT_OUT: Final = 60
"""The most trials that are left out in turn: of more one matters less, and ranges, a forest each, take too long."""

NUM_GROUPS: Final = 20
NUM_TREES: Final = 64
NUM_JUDGES: Final = 256
"""Trees whose predictions are held against trials that were not drawn for them: a third of all for each trial."""
SEED: Final = 0


def importance(search: Trials) -> Importance:
    """What the trials of a search say, for each of its objectives; the same trials give the same.

    Where they are too few, the notes say so.
    """
    trials, notes = search.trials, list(search.notes)
    if len(trials) < LEAST_TRIALS:
        if trials or not notes:
            notes.append(
                f"Importance needs {LEAST_TRIALS} complete trials, but there are {len(trials)}; with a larger "
                "`num_trials` in its Search `ponderay run` continues it."
            )
        return Importance(search.sweep, search.objectives, notes=tuple(notes))
    used = [trials[i] for i in subsample(len(trials), MOST_TRIALS)]
    if len(used) < len(trials):
        notes.append(f"{len(used)} of {len(trials):,} trials were used.")
    spaces = {path: json_to_distribution(text) for path, text in search.distributions.items()}
    explained = [_explained(used, spaces, i) for i in range(len(search.objectives))]
    columns = [_shares(used, spaces, i) if share > 0 else {} for i, share in enumerate(explained)]
    for name, share in zip(search.objectives, explained, strict=True):
        if math.isnan(share):
            notes.append(f"{name} does not vary, so nothing matters for it.")
        elif share <= 0:
            notes.append(
                f"The parameters do not predict {name} of trials that a forest has not seen (R² = {share:.2f}), "
                "so nothing is said of what matters for it."
            )
    num_groups = NUM_GROUPS if len(used) <= MOST_LEFT_OUT else 0
    ranges = [_ranges(used, spaces, i, num_groups if column else 0) for i, column in enumerate(columns)]
    return Importance(
        search.sweep,
        search.objectives,
        tuple(spaces),
        tuple(tuple(column.get(path) for column in columns) for path in spaces),
        tuple(tuple(column.get(path) for column in ranges) for path in spaces),
        len(used),
        num_groups,
        tuple(share if share > 0 else None for share in explained),
        tuple(notes),
    )


def _ranges(
    trials: Sequence[Trial], spaces: Mapping[str, BaseDistribution], objective: int, num_groups: int
) -> dict[str, tuple[float, float]]:
    """Each parameter's lowest and highest share without one group: of few trials one alone may decide."""
    groups = ([trial for i, trial in enumerate(trials) if i % num_groups != group] for group in range(num_groups))
    shares = [without for group in groups if (without := _shares(group, spaces, objective))]
    return {path: (min(s[path] for s in shares), max(s[path] for s in shares)) for path in spaces if shares}


def _explained(trials: Sequence[Trial], spaces: Mapping[str, BaseDistribution], objective: int) -> float:
    """R² of what each tree of a forest predicts for the trials that were not drawn for it; NaN where nothing varies.

    Of noise alone it is above 0 in one search of twenty.
    """
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

    values = np.array([trial.values[objective] for trial in trials], np.float64)
    if is_constant(values):
        return math.nan
    rows = [[cell for path, space in spaces.items() for cell in _cells(space, trial.drawn[path])] for trial in trials]
    forest = RandomForestRegressor(NUM_JUDGES, oob_score=True, random_state=SEED).fit(rows, *scale.normalised(values))
    return float(forest.oob_score_)


def _cells(space: BaseDistribution, drawn: Any) -> list[float]:
    """A value as numbers: a choice as a 1 among zeros.

    Raises:
        ValueError: if the space does not have the value.
    """
    if isinstance(space, CategoricalDistribution):
        cells = [float(choice == drawn) for choice in space.choices]
        outside = not any(cells)
    else:
        assert isinstance(space, FloatDistribution | IntDistribution)
        outside = not space.low <= drawn <= space.high
        cells = [] if outside else [float(_even_value(space, drawn))]
    if outside:
        raise ValueError(f"{drawn!r} was not drawn from {space}")
    return cells


def _shares(trials: Sequence[Trial], spaces: Mapping[str, BaseDistribution], objective: int) -> dict[str, float]:
    """Each parameter's share; none where the objective does not vary over these trials."""
    (values,) = scale.normalised(np.array([trial.values[objective] for trial in trials], np.float64))
    varied = [path for path in sorted(spaces) if not spaces[path].single()]
    cells = [[_cells(spaces[path], trial.drawn[path]) for path in varied] for trial in trials]
    ends = np.cumsum([0, *(len(of_path) for of_path in cells[0])])
    found = functional_anova.shares(
        np.array([[cell for of_path in row for cell in of_path] for row in cells]),
        values,
        np.array([bounds for path in varied for bounds in _bounds(spaces[path])]).T,
        [range(start, end) for start, end in pairwise(ends)],
        NUM_TREES,
        SEED,
    )
    total = found.sum()
    return dict.fromkeys(spaces, 0.0) | dict(zip(varied, (found / total).tolist(), strict=True)) if total else {}


def _bounds(space: BaseDistribution) -> list[tuple[float, float]]:
    """Where each of a value's numbers lies; a logarithm is drawn evenly where the search draws so."""
    if isinstance(space, CategoricalDistribution):
        return [(0.0, 1.0)] * len(space.choices)
    assert isinstance(space, FloatDistribution | IntDistribution)
    return [(_even_value(space, space.low), _even_value(space, space.high))]


def _even_value(distribution: BaseDistribution, drawn: Any) -> Any:
    is_log = isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log
    return math.log(drawn) if is_log else drawn
