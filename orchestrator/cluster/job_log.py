"""A job's log as it grows, over connections that may break."""

import time
from collections.abc import Callable
from typing import Final

from orchestrator.cluster.jobs import ClusterAwayError, Job, JobLogs, find_job

PATIENCE_S: Final = 60.0
AGAIN_S: Final = 1.0


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
