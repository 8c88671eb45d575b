"""What every process of a Ray worker starts with; light, because Ray imports it into all of them.

A cluster made for a sweep gives its workers this process's variables as they are (`made_here`): with a `runtime_env`
Ray would start each worker three times, once ahead of any work, once to set the variables and once to work.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.worker.own_runs import VARIABLE
from search_spaces.redaction import redacted_setting

PASSED_ON = (  # no secrets: Ray shows them to whoever sees the job
    "PONDERAY_DATA",
    "PONDERAY_CACHE",
    VARIABLE,
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_DEFAULT_REGION",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S",
)


_began_in: list[Path] = []
"""The folder in which Ray started this process: of a submitted job that of its sources."""


def begin() -> None:
    """Ray's hook at the start of a worker on a cluster that was there before."""
    _began_in.append(Path.cwd())
    pin_cluster()


def pin_cluster() -> None:
    """Whatever the process starts belongs to its own cluster, though others may run on the host."""
    import ray

    os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address


def enter(folder: Path | None) -> None:
    """Changes to the working folder of the driver's command; where this machine lacks it, to that of the process.

    Tune and Train have changed to one of theirs, which is removed with all that a trainable has put there.
    """
    for place in (folder, *_began_in) if folder else ():
        with contextlib.suppress(OSError):
            os.chdir(place)
            return


def runtime_environment() -> dict[str, Any]:
    """Ray's `runtime_env` of a sweep on a cluster that was there before."""
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if redacted_setting(VARIABLE, own := variables.get(VARIABLE, "")) != own:  # Ray's processes here have it anyway
        del variables[VARIABLE]
    return {"worker_process_setup_hook": begin, "env_vars": {"OMP_NUM_THREADS": "1"} | variables}


@contextlib.contextmanager
def made_here() -> Iterator[None]:
    """A block in which a cluster is started whose processes all have what `runtime_environment` would give them."""
    own = {"OMP_NUM_THREADS": "1", "PL_DISABLE_FORK": "1"}  # the second is what Tune gives each trial
    own["RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"] = "0"  # a process for each replicate: nobody takes this machine back
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
