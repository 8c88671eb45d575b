"""The one seam between a trainable and whatever runs it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable


@runtime_checkable
class Trial(Protocol):
    """What `train(config, trial)` and `evaluate(config, checkpoint, evaluation, trial)` see of the outside.

    In a distributed run every process makes the same calls; only what rank 0 passes is kept.
    """

    def report(
        self,
        metrics: Mapping[str, float],
        *,
        step: int,
        checkpoint: Path | None = None,
        artifacts: Sequence[Path] = (),
    ) -> None:
        """Record `metrics` at `step` (rising; 0 is untrained), and keep copies of `checkpoint` and `artifacts`.

        A checkpoint is a file or a folder; `restore` gives the same back.

        Raises:
            ValueError: if `step` is no whole number from 0 or does not rise, a metric has no name that MLflow takes or
                is no number, or the checkpoint is not there.
        """

    def restore(self) -> Path | None:
        """The newest whole checkpoint of this replicate, or None where it starts anew."""

    def prerequisite(self, name: str) -> Path:
        """The checkpoint of the finished prerequisite `name`.

        Raises:
            KeyError: if the sweep, or this condition of it, has none of that name.
        """
