"""A sweep as a RayJob of KubeRay, which makes a Ray cluster for it and removes it afterwards."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, StrictUndefined

from orchestrator.cluster.submission import OF_JOBS, STOP_S, Submission, refuse_loopback
from trainables.config import content_hash
from trainables.errors import InputError

SECRET: Final = "ponderay"
OF_HEAD: Final = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "PONDERAY_SEARCH_URI")
OF_STORAGE: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Variables from the Secret; where it lacks one, the pods go without."""

CLOSED: Final = MappingProxyType(
    {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9",  # else Ray tells its makers once that a cluster started
        "RAY_enable_metrics_collection": "0",
        "DASHBOARD_METRIC_PORT": "-1",  # cannot be opened
        "AUTOSCALER_METRIC_PORT": "-1",
    }
)
"""Nothing goes to Ray's makers, and Ray's metric pages, which ask for no token, are closed."""

GIB_PER_CPU: Final = 4
TEMPLATE: Final = Path(__file__).with_suffix(".yaml")
MAX_NAME: Final = 47
NUM_DIGITS: Final = 6
"""Digits of a hash that tells sweeps apart whose names begin alike."""


@dataclass(frozen=True)
class Pods:
    """What the cluster consists of, beside its head.

    Attributes:
        claim: a persistent volume claim for PONDERAY_RUNS.
        service_account: of the pods; default: the namespace's.
        pull_secret: of a private image's registry.
        tolerations: taints that the pods bear, `KEY` or `KEY=VALUE` each.
    """

    image: str
    num_workers: int
    cpus: int
    gpus: int
    claim: str | None
    service_account: str | None = None
    pull_secret: str | None = None
    tolerations: tuple[str, ...] = ()


def manifest(submission: Submission, pods: Pods) -> str:
    """The RayJob as YAML, with what must be there before; it holds no secret.

    Raises:
        InputError: if nothing that it makes would outlive it, or a variable is to be read on the cluster.
    """
    variables = submission.variables
    _check(variables, pods)
    secret = (*OF_HEAD, *_of_storage(variables))
    # A name that Kubernetes allows, and the same for a sweep each time, so that it has one job at a time.
    plain = re.sub(r"[^a-z0-9]+", "-", submission.sweep.lower()).strip("-")
    start = (plain if plain[:1].isalpha() else f"s-{plain}")[: MAX_NAME - NUM_DIGITS - 1].strip("-")
    environment = Environment(undefined=StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # YAML has no pairs of surrogates
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        name=f"{start}-{content_hash(submission.sweep)[:NUM_DIGITS]}",
        submission=submission,
        pods=pods,
        tolerations=[_toleration(taint) for taint in pods.tolerations],
        gpu_toleration=_toleration("nvidia.com/gpu"),  # the taint that clouds give to nodes with GPUs
        variables=dict(variables),
        of_head=dict(CLOSED) | dict(variables) | dict(OF_JOBS),
        of_worker=dict(CLOSED) | dict(variables),
        of_secret=secret,
        head_secret=[name for name in secret if name not in variables],
        worker_secret=_of_storage(variables),
        secret_name=SECRET,
        gib_per_cpu=GIB_PER_CPU,
        ray_version=version("ray"),
        stop_s=STOP_S,
    )


def _check(variables: Mapping[str, str], pods: Pods) -> None:
    refuse_loopback(variables, "a pod")
    if unread := [name for name, value in variables.items() if "$" in value]:
        raise InputError(f"Kubernetes does not replace $NAME in `--env {unread[0]}`; write the value itself.")
    lacking = []
    if not (variables.get("PONDERAY_RUNS") if pods.claim else _outlives(variables.get("PONDERAY_STORAGE", ""))):
        kept = "`--env PONDERAY_STORAGE=s3://BUCKET/FOLDER`, or `--claim NAME --env PONDERAY_RUNS=/FOLDER`"
        lacking.append(f"its checkpoints need storage that stays: {kept}")
    if not (pods.claim or _outlives(variables.get("PONDERAY_TRACKING_URI", ""))):
        lacking.append("its records need a server: `--env PONDERAY_TRACKING_URI=URL`")
    if lacking:
        raise InputError(f"The pods and their disks end with the job, so {'; and '.join(lacking)}.")
    if pods.claim and not variables["PONDERAY_RUNS"].startswith("/"):
        raise InputError(
            f"With --claim PONDERAY_RUNS is where the claim is mounted, a path from /, but got "
            f"{variables['PONDERAY_RUNS']!r}."
        )


def _toleration(taint: str) -> dict[str, str]:
    """The toleration of all effects of a taint, `KEY` or `KEY=VALUE`.

    Raises:
        InputError: if it is neither.
    """
    key, sign, value = taint.partition("=")
    if not re.fullmatch(r"([a-z0-9.-]+/)?[A-Za-z0-9][A-Za-z0-9._-]*", key):
        raise InputError(f"--toleration must be KEY or KEY=VALUE, such as nvidia.com/gpu, but got {taint!r}.")
    return {"key": key, "operator": "Equal", "value": value} if sign else {"key": key, "operator": "Exists"}


def _outlives(address: str) -> bool:
    """Whether what is kept at an address is still there after the pods and their disks."""
    return "://" in address and not address.startswith(("sqlite:", "file:"))


def _of_storage(variables: Mapping[str, str]) -> tuple[str, ...]:
    return OF_STORAGE if variables.get("PONDERAY_STORAGE", "").startswith("s3://") else ()
