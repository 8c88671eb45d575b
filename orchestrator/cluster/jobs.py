"""Sweeps as jobs of a Ray cluster: which there are, which is meant, whether another may start, and what a job logs."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.console.errors import RefusedError
from trainables.errors import InputError

SUCCEEDED: Final = "SUCCEEDED"
ENDED: Final = (SUCCEEDED, "FAILED", "STOPPED")
PATIENCE_S: Final = 60.0
AGAIN_S: Final = 1.0


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
        typed_name: its sweep as the user named it there; empty where that is not known.
    """

    name: str
    sweep: str
    state: str
    entrypoint: str
    started_ms: int
    ended_ms: int | None = None
    message: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    typed_name: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED


class JobLogs(Protocol):
    """A source of jobs and their logs."""

    def jobs(self) -> list[Job]:
        """All jobs of the cluster, the newest first."""

    def log(self, name: str) -> str:
        """The log of the job so far."""

    def follow(self, name: str) -> Iterator[str]:
        """The log in pieces from its beginning, until the job ends or the connection does."""


def of_ponderay(jobs: Sequence[Job]) -> list[Job]:
    """The jobs that run sweeps."""
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
    matches = [re.fullmatch(rf"{re.escape(safe)}-(\d+)", job.name) for job in jobs]
    return f"{safe}-{max((int(match[1]) for match in matches if match), default=0) + 1}"


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
    matching = [job for job in own if job.name == wanted] + [job for job in own if job.sweep == wanted]
    if not matching:
        names = ", ".join(job.name for job in own)
        known = f"there are {names}" if own else "there is none; `ponderay submit` sends one"
        raise InputError(f"The cluster has no job and no sweep {wanted!r}; {known}.")
    return matching[0]


def follow_log(source: JobLogs, name: str, write: Callable[[str], object]) -> Job:
    """The job once it has ended; until then all that it says is given to `write`, nothing twice.

    Raises:
        ClusterAwayError: if the cluster stays away for `PATIENCE_S`.
    """
    num_written, lost_since_s = 0, None
    while True:
        try:
            position = 0
            for piece in source.follow(name):
                lost_since_s = None
                fresh = piece[max(0, num_written - position) :]
                if fresh:
                    write(fresh)
                position += len(piece)
                num_written = max(num_written, position)
            job, lost_since_s = find_job(source.jobs(), name), None
            if job.has_ended:
                return job
        except ClusterAwayError:
            lost_since_s = lost_since_s or time.monotonic()
            if time.monotonic() - lost_since_s > PATIENCE_S:
                raise
        time.sleep(AGAIN_S)
