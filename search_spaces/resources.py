"""What one replicate gets: workers, CPUs, GPUs, and how long it may be silent."""

from dataclasses import dataclass
from typing import Literal

from search_spaces.bounds import MOST_DEVICES, MOST_TIMEOUT_S
from trainables.errors import InputError, shown


@dataclass(frozen=True)
class Resources:
    """What one replicate gets.

    Attributes:
        num_workers: Ray Train workers; 0 trains in the trial itself; "auto" is one worker where Ray has GPUs, else 0;
            "all" is one worker for each GPU that Ray has, and 0 where it has none; a pair (least, most) is elastic:
            Ray Train goes on with fewer workers when some are lost, and takes more as they come.
        cpus_per_worker: also the number of torch threads.
        gpus_per_worker: may be a fraction, so that several share a card; "auto" is 1 where Ray has GPUs, else 0.
        report_timeout_s: a replicate that reports nothing for so long counts as hung: it is ended and tried again.
    """

    num_workers: int | tuple[int, int] | Literal["auto", "all"] = "auto"
    cpus_per_worker: int = 1
    gpus_per_worker: float | Literal["auto"] = "auto"
    report_timeout_s: float = 6 * 3600

    def __post_init__(self) -> None:
        _check_resources(self)

    def resolve(self, num_gpus: float) -> "ResolvedResources":
        """The numbers behind "auto" on a cluster with `num_gpus`."""
        wanted = (1.0 if num_gpus else 0.0) if self.gpus_per_worker == "auto" else self.gpus_per_worker
        automatic = {"auto": 1 if wanted else 0, "all": int(num_gpus)}
        workers = automatic[self.num_workers] if isinstance(self.num_workers, str) else self.num_workers
        least, most = (workers, workers) if isinstance(workers, int) else workers
        return ResolvedResources(most, self.cpus_per_worker, wanted if most else 0.0, least, self.report_timeout_s)


def _check_resources(resources: Resources) -> None:
    """Raises InputError at the first number that cannot be."""
    workers, gpus = resources.num_workers, resources.gpus_per_worker
    if not (workers in ("auto", "all") or _is_count(workers, 0) or _is_range(workers)):
        rule = f"a number up to {MOST_DEVICES:,}, a pair (least, most), auto or all"
        raise InputError(f"`num_workers` must be {rule}, but got {shown(workers)}.")
    if not _is_count(resources.cpus_per_worker, 1):
        given = shown(resources.cpus_per_worker)
        raise InputError(f"`cpus_per_worker` must be a whole number from 1 to {MOST_DEVICES:,}, but got {given}.")
    if gpus != "auto" and not _is_share(gpus):
        rule = f"a share of a card, a number of cards up to {MOST_DEVICES:,} or auto"
        raise InputError(f"`gpus_per_worker` must be {rule}, but got {shown(gpus)}.")
    if not (isinstance(resources.report_timeout_s, int | float) and 0 < resources.report_timeout_s <= MOST_TIMEOUT_S):
        given = shown(resources.report_timeout_s)
        raise InputError(f"`report_timeout_s` must be above 0 seconds and at most {MOST_TIMEOUT_S:,}, but got {given}.")


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_DEVICES


def _is_share(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= 1 or (value <= MOST_DEVICES and value == int(value) and value > 1)


def _is_range(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and _is_count(value[0], 1) and _is_count(value[1], value[0])


@dataclass(frozen=True)
class ResolvedResources:
    """`Resources` in numbers."""

    num_workers: int
    cpus_per_worker: int
    gpus_per_worker: float
    min_workers: int
    report_timeout_s: float

    @property
    def num_cpus(self) -> int:
        """CPUs that a replicate holds while it runs."""
        return max(1, self.num_workers) * self.cpus_per_worker

    @property
    def num_gpus(self) -> float:
        """GPUs that a replicate holds while it runs."""
        return self.num_workers * self.gpus_per_worker

    @property
    def min_cpus(self) -> int:
        """CPUs with which an elastic replicate can start; `num_cpus` of any other."""
        return max(1, self.min_workers) * self.cpus_per_worker

    @property
    def min_gpus(self) -> float:
        """GPUs with which an elastic replicate can start; `num_gpus` of any other."""
        return self.min_workers * self.gpus_per_worker
