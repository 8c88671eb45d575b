"""How much each parameter of a search matters."""

from dataclasses import dataclass


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
