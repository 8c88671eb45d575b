"""What every process of a Ray worker starts with; light, because Ray imports it into all of them."""

import os
from typing import Any

PASSED_ON = (  # no secrets: Ray shows them to whoever sees the job
    "PONDERAY_DATA",
    "PONDERAY_CACHE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_DEFAULT_REGION",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S",
)


def pin_cluster() -> None:
    """Whatever the process starts belongs to its own cluster, though others may run on the host."""
    import ray

    os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address


def runtime_environment() -> dict[str, Any]:
    """Ray's `runtime_env` of a sweep."""
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {"worker_process_setup_hook": pin_cluster, "env_vars": {"OMP_NUM_THREADS": "1"} | variables}
