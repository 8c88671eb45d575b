"""What is asked of the runs of a study beside its replicates, whoever answers: MLflow or the store's own file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class StoredFile:
    """A file that is stored on a run.

    Attributes:
        path: below the run's files, with slashes.
        num_bytes: its size.
        read: gives its content; raises OSError where it cannot be had now.
    """

    path: str
    num_bytes: int
    read: Callable[[], bytes]


@dataclass(frozen=True)
class CurveRun:
    """The run of a condition, as far as learning curves are in it.

    Attributes:
        tags: those that hold its replicates.
        metrics: names of what was ever logged in it.
        history: gives the values of one of these by step.
    """

    tags: Mapping[str, str]
    metrics: Collection[str]
    history: Callable[[str], Mapping[int, float]]


class StudyRuns(Protocol):
    """The runs of one sweep's experiment."""

    def values_of(self, tag: str, most: int) -> tuple[Sequence[str], bool]:
        """The distinct values, not empty, of a tag over the replicates' runs, by their start; and whether it is all."""
        ...

    def params_of(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """The parameters of these runs by id, of those that are there."""
        ...

    def files_of(self, folder: str) -> Sequence[StoredFile]:
        """The files in a folder of the sweep's own run, by path.

        Raises:
            OSError: if the store of files is away.
        """
        ...


class NoRuns:
    """Those of a sweep that has not run here, whose results come from bundles alone: both protocols, and nothing."""

    def values_of(self, tag: str, most: int) -> tuple[Sequence[str], bool]:
        """None of any tag."""
        return (), True

    def params_of(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """None of any run."""
        return {}

    def files_of(self, folder: str) -> Sequence[StoredFile]:
        """None in any folder."""
        return ()

    def run_of(self, condition: str) -> CurveRun | None:
        """None of any condition."""
        return None

    def histories_of(self, run_ids: Collection[str], metric: str) -> Mapping[str, Mapping[int, float]]:
        """None of any run."""
        return {}


class CurveRuns(Protocol):
    """The runs of one sweep's conditions, and of their replicates."""

    def run_of(self, condition: str) -> CurveRun | None:
        """Of the condition; None where there is none."""
        ...

    def histories_of(self, run_ids: Collection[str], metric: str) -> Mapping[str, Mapping[int, float]]:
        """The values of a metric, as stored, by step, of each of these runs that has one."""
        ...
