"""Draws of a search and their values: all that the importance of its parameters is computed from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from search_spaces.distributions import Scalar


@dataclass(frozen=True)
class Trial:
    """A condition whose values the search knows.

    Attributes:
        drawn: for each parameter what Optuna drew; of an exponential range that is the quantile, from 0 to 1.
        values: for each objective the mean over the seeds that the condition had then.
    """

    condition: str
    drawn: Mapping[str, Scalar]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Trials:
    """The trials of a search whose values are finite numbers.

    Attributes:
        objectives: names of metrics.
        distributions: for each parameter, by config path, what it was drawn from, as JSON that Optuna reads.
        notes: what to know, in sentences.
    """

    sweep: str
    objectives: tuple[str, ...]
    distributions: Mapping[str, str]
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()

    def of_conditions(self, names: Collection[str]) -> "Trials":
        """The trials of these conditions alone."""
        return replace(self, trials=tuple(trial for trial in self.trials if trial.condition in names))
