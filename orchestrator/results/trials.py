"""Draws of a search and their values, from which the importance of its parameters is computed; and that importance."""

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


@dataclass(frozen=True)
class Importance:
    """Shares of the spread of each objective that the search's parameters explain one by one.

    Attributes:
        objectives: names of metrics.
        parameters: config paths; none where nothing can be said, and then a note says why.
        shares: for each parameter one share for each objective, which add up to 1 over the parameters; None for an
            objective that does not vary, or that the parameters do not predict.
        ranges: in the place of each share the lowest and the highest that come out when one group of trials after the
            other is left out; None where there is no share, or there are too many trials for it.
        num_trials: complete conditions that it is computed from.
        num_groups: how many groups they were left out in; with as many as trials, one by one.
        explained: of each objective the R² of trials that its prediction has not seen; None where there are no shares.
        notes: what to know, in sentences.
    """

    sweep: str
    objectives: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    shares: tuple[tuple[float | None, ...], ...] = ()
    ranges: tuple[tuple[tuple[float, float] | None, ...], ...] = ()
    num_trials: int = 0
    num_groups: int = 0
    explained: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()
