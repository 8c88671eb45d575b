"""A sweep as a RayJob of KubeRay, which makes a Ray cluster for it and removes it afterwards."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from orchestrator.cluster.jobs import SWEEP_TAG
from orchestrator.cluster.submission import OF_JOBS, STOP_S, Submission
from trainables.config import content_hash
from trainables.errors import InputError

SECRET: Final = "ponderay"
OF_HEAD: Final = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "PONDERAY_SEARCH_URI")
OF_STORAGE: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Variables from the Secret; where it lacks one, the pods go without."""

HEAD_CPUS: Final = 2
GIB_PER_CPU: Final = 4
KEEP_S: Final = 600
"""How long the cluster, and with it the log, outlives the job."""

MAX_NAME: Final = 47
NUM_DIGITS: Final = 6
"""Of what tells sweeps apart whose names begin alike."""


@dataclass(frozen=True)
class Pods:
    """What the cluster consists of, beside its head.

    Attributes:
        claim: a persistent volume claim for PONDERAY_RUNS.
    """

    image: str
    num_workers: int
    cpus: int
    gpus: int
    claim: str | None


def print_manifest(submission: Submission, pods: Pods) -> None:
    """Prints the RayJob as YAML, with what must be there before."""
    import yaml  # type: ignore[import-untyped]

    manifest = ray_job(submission, pods)
    names = ", ".join((*OF_HEAD, *_of_storage(submission.variables)))
    print("# For KubeRay 1.5.1 or later, which makes the cluster's token itself.")
    print(f"# Taken from a Secret named {SECRET}, where it is there and has them: {names}.")
    name = manifest["metadata"]["name"]
    print(f"# To continue it once it has ended: kubectl delete rayjob {name}, then apply this again.")
    print(yaml.safe_dump(manifest, sort_keys=False, width=1000), end="")


def ray_job(submission: Submission, pods: Pods) -> dict[str, Any]:
    """The RayJob; it holds no secret.

    Raises:
        InputError: if nothing that it makes would outlive it, or a variable is to be read on the cluster.
    """
    variables = submission.variables
    if unread := [name for name, value in variables.items() if "$" in value]:
        raise InputError(f"Kubernetes does not replace $NAME in `--env {unread[0]}`; write the value itself.")
    if not variables.get("PONDERAY_RUNS" if pods.claim else "PONDERAY_STORAGE"):
        kept = "`--env PONDERAY_STORAGE=s3://BUCKET/FOLDER`, or `--claim NAME --env PONDERAY_RUNS=/FOLDER`"
        raise InputError(
            f"The pods and their disks end with the job, so its checkpoints need storage that stays: {kept}."
        )
    if not (pods.claim or variables.get("PONDERAY_TRACKING_URI")):
        remedy = "`--env PONDERAY_TRACKING_URI=URL`"
        raise InputError(f"The pods and their disks end with the job, so its records need a server: {remedy}.")
    cluster = {
        "rayVersion": version("ray"),
        "authOptions": {"mode": "token"},
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": _head(variables, pods)},
        "workerGroupSpecs": [_workers(variables, pods)],
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": _name(submission.sweep), "labels": {"app.kubernetes.io/name": "ponderay"}},
        "spec": {
            "entrypoint": submission.entrypoint,
            "metadata": {SWEEP_TAG: submission.sweep},
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": KEEP_S,
            "rayClusterSpec": cluster,
        },
    }


def _head(variables: Mapping[str, str], pods: Pods) -> dict[str, Any]:
    """The pod of the driver, which trains nothing and alone talks to MLflow."""
    secret = [name for name in (*OF_HEAD, *_of_storage(variables)) if name not in variables]
    template = _pod("ray-head", pods, _resources(HEAD_CPUS, 0), dict(variables) | dict(OF_JOBS), secret)
    template["spec"]["terminationGracePeriodSeconds"] = STOP_S
    return template


def _workers(variables: Mapping[str, str], pods: Pods) -> dict[str, Any]:
    template = _pod("ray-worker", pods, _resources(pods.cpus, pods.gpus), variables, _of_storage(variables))
    replicas = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), pods.num_workers)
    return {"groupName": "workers", **replicas, "rayStartParams": {}, "template": template}


def _of_storage(variables: Mapping[str, str]) -> tuple[str, ...]:
    return OF_STORAGE if variables.get("PONDERAY_STORAGE", "").startswith("s3://") else ()


def _pod(
    name: str, pods: Pods, resources: dict[str, str], variables: Mapping[str, str], secret: Sequence[str]
) -> dict[str, Any]:
    environment: list[dict[str, Any]] = [{"name": one, "value": value} for one, value in variables.items()]
    for one in secret:
        reference = {"name": SECRET, "key": one, "optional": True}
        environment.append({"name": one, "valueFrom": {"secretKeyRef": reference}})
    volumes: list[dict[str, Any]] = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    mounts = [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    if pods.claim:
        volumes.append({"name": "runs", "persistentVolumeClaim": {"claimName": pods.claim}})
        mounts.append({"name": "runs", "mountPath": variables["PONDERAY_RUNS"]})
    container = {
        "name": name,
        "image": pods.image,
        "env": environment,
        "resources": {"requests": resources, "limits": dict(resources)},
        "volumeMounts": mounts,
    }
    return {"spec": {"containers": [container], "volumes": volumes}}


def _resources(cpus: int, gpus: int) -> dict[str, str]:
    cards = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"cpu": str(cpus), "memory": f"{GIB_PER_CPU * cpus}Gi"} | cards


def _name(sweep: str) -> str:
    """One that Kubernetes allows; the same for a sweep each time, so it has one job at a time."""
    start = re.sub(r"[^a-z0-9]+", "-", sweep.lower())[: MAX_NAME - NUM_DIGITS - 1].strip("-")
    return f"{start}-{content_hash(sweep)[:NUM_DIGITS]}"
