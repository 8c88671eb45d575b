"""What running a sweep came to."""

from dataclasses import dataclass

from orchestrator.results.study import Replicate


@dataclass(frozen=True)
class Outcome:
    """What a driver leaves.

    Attributes:
        replicates: every one of the sweep.
        input_errors: the user's mistakes that only the work itself found.
        num_unwritten: how many things the tracking store could not take; they are in the journals.
    """

    replicates: tuple[Replicate, ...]
    input_errors: tuple[str, ...] = ()
    num_unwritten: int = 0

    @property
    def num_failed(self) -> int:
        """Replicates that failed."""
        return sum(replicate.state == "failed" for replicate in self.replicates)
