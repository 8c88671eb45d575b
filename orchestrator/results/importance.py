"""How much each parameter of a search matters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Importance:
    """Shares of the spread of each objective that the search's parameters explain one by one.

    Attributes:
        objectives: names of metrics.
        parameters: config paths; none where nothing can be said, and then a note says why.
        shares: for each parameter one share for each objective, which add up to 1 over the parameters; None for an
            objective that does not vary.
        num_trials: complete conditions that it is computed from.
        notes: what to know, in sentences.
    """

    sweep: str
    objectives: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    shares: tuple[tuple[float | None, ...], ...] = ()
    num_trials: int = 0
    notes: tuple[str, ...] = ()
