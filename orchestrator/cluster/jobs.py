"""Sweeps as jobs of a Ray cluster: which there are, which one is meant, and whether another may start."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.console.errors import RefusedError
from trainables.errors import InputError

SUCCEEDED: Final = "SUCCEEDED"
ENDED: Final = (SUCCEEDED, "FAILED", "STOPPED")


class ClusterAwayError(InputError):
    """The cluster does not answer; it may later."""


@dataclass(frozen=True)
class Job:
    """A job as the cluster has it.

    Attributes:
        name: its submission id.
        sweep: empty where it is none of Ponderay's.
        state: PENDING, RUNNING, or one of `ENDED`.
        started_ms: when it was submitted, since 1970; likewise `ended_ms`.
        message: one line, without secrets.
        variables: of its environment, as they were given to `ponderay submit`.
        named: its sweep as it was named there; empty where that is not known.
    """

    name: str
    sweep: str
    state: str
    entrypoint: str
    started_ms: int
    ended_ms: int | None = None
    message: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    named: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED


class JobLogs(Protocol):
    """Where logs come from."""

    def jobs(self) -> list[Job]:
        """All jobs of the cluster, the newest first."""

    def log(self, name: str) -> str:
        """What the job has said so far."""

    def follow(self, name: str) -> Iterator[str]:
        """The log in pieces from its beginning, until the job ends or the connection does."""


def of_ponderay(jobs: Sequence[Job]) -> list[Job]:
    """Those that run sweeps."""
    return [job for job in jobs if job.sweep]


def next_name(jobs: Sequence[Job], sweep: str) -> str:
    """Name of the sweep's next job, such as asr.demo-2.

    Two who submit at once come to the same name, which the cluster gives to one of them only.

    Raises:
        RefusedError: if the sweep has a job that has not ended.
    """
    for job in jobs:
        if job.sweep == sweep and not job.has_ended:
            raise already_running(sweep, job.name)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", sweep)
    numbers = [int(found[1]) for job in jobs if (found := re.fullmatch(rf"{re.escape(safe)}-(\d+)", job.name))]
    return f"{safe}-{max(numbers, default=0) + 1}"


def already_running(sweep: str, name: str) -> RefusedError:
    """A sweep has one job at a time."""
    remedy = f"`ponderay logs {name} --follow` follows it, `ponderay stop {name}` stops it"
    return RefusedError(f"{sweep} is already run by the job {name}; {remedy}.")


def find_job(jobs: Sequence[Job], wanted: str) -> Job:
    """The job of that name, or the newest one of the sweep of that name; `jobs` come newest first.

    Raises:
        InputError: if there is none.
    """
    own = of_ponderay(jobs)
    found = next((job for job in own if job.name == wanted), None) or next((j for j in own if j.sweep == wanted), None)
    if found is None:
        known = (
            f"there are {', '.join(job.name for job in own)}" if own else "there is none; `ponderay submit` sends one"
        )
        raise InputError(f"The cluster has no job and no sweep {wanted!r}; {known}.")
    return found
