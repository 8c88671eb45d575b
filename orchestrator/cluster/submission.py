"""What a job is to do, before it is sent anywhere: a sweep, its command line, and variables of its environment."""

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from orchestrator.cluster.ray_internals import JOB_VARIABLE
from orchestrator.machine.network import is_loopback
from search_spaces.redaction import is_secret_name, redacted_setting, redacted_uri, without_secrets
from trainables.errors import InputError
from trainables.secret import declared_names, variable_of

STOP_S: Final = 60
"""What Ray gives a driver to end in order before it kills it; one needs up to 40 s."""

OF_JOBS: Final = MappingProxyType(
    {
        "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_S),
        "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",  # the driver sets variables for its workers that the job may have set too
    }
)
TYPED_NAME: Final = "ponderay.named"
"""The key of a job's metadata for the sweep as the user named it: a file lies elsewhere in what is sent."""

RAYJOB: Final = "ponderay.rayjob"
"""The key of a job's metadata for the name of the RayJob that made its cluster, and is what to begin again."""

RUN: Final = ("python", "-m", "orchestrator", "run")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Submission:
    """A sweep on its way to a cluster.

    Attributes:
        sweep: the full name of the study that it runs, such as asr.demo.smoke or asr.demo.confirm.
        entrypoint: the shell command that runs it.
        variables: of the environment of its driver and workers; none is a secret.
        typed_name: the sweep as the user named it, from the folder that was sent or any other.
    """

    sweep: str
    entrypoint: str
    variables: Mapping[str, str]
    typed_name: str = ""


def status_name(submission: Submission) -> list[str]:
    """Arguments of `ponderay status`, which before a record finds no sweep of the user's own by its name.

    What confirms a choice has no other name than its study's.
    """
    words = shlex.split(submission.entrypoint)
    if not submission.typed_name or "--confirm" in words:
        return [submission.sweep]
    return [submission.typed_name, *(["--smoke"] if "--smoke" in words else [])]


def run_options(
    smoke: bool,
    values: list[str] | None,
    seeds: str | None,
    resources: list[str] | None,
    accept_code: bool,
    max_device_hours: float,
    retry: list[str] | None = None,
    conditions: list[str] | None = None,
    grid: list[str] | None = None,
    again: bool = False,
    confirm: bool = False,
) -> list[str]:
    """The options of `ponderay run`, as they were given.

    Raises:
        InputError: if one looks like a secret, because all who see the cluster see a job's command.
    """
    checked = {"--set": values, "--grid": grid, "--resource": resources, "--seeds": [seeds] if seeds else None}
    for option, given in checked.items():
        for path, _, value in (item.partition("=") for item in given or []):
            if redacted_setting(path, value) != value:
                raise InputError(
                    f"`{option} {path}` looks like a secret, and everyone who sees the cluster sees its jobs."
                )
    repeated = {**checked, "--condition": conditions, "--retry": retry}
    options = [argument for option, given in repeated.items() for item in given or [] for argument in (option, item)]
    hours = [] if math.isinf(max_device_hours) else ["--max-device-hours", str(max_device_hours)]
    flags = {"--accept-code": accept_code, "--again": again, "--confirm": confirm}
    given_flags = [flag for flag, is_given in flags.items() if is_given]
    return [*(["--smoke"] if smoke else []), *options, *given_flags, *hours]


def entrypoint(name: str, options: list[str]) -> str:
    """The shell command that runs the sweep on a cluster."""
    return shlex.join([*RUN, name, *options])


def submit_again(command: str, variables: Mapping[str, str], address: str | None, typed: str = "") -> str:
    """The `ponderay submit` that goes on with what the job of the entrypoint `command` has begun.

    Args:
        variables: of the job's environment.
        address: of its cluster, as it was given.
        typed: the sweep as the user named it; default: as the job names it.
    """
    name, *options = shlex.split(command)[len(RUN) :]
    environment = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    where = ["--address", address] if address else []
    return shlex.join(["ponderay", "submit", typed or name, *options, *environment, *where])


def _is_job_of_slurm() -> bool:
    number = os.environ.get("SLURM_JOB_ID", "")
    return bool(number) and f"/.slurm-{number}-" in os.environ.get("RAY_AUTH_TOKEN_PATH", "")


def is_job() -> bool:
    """Whether this process is the driver of a sweep that was submitted."""
    return JOB_VARIABLE in os.environ or _is_job_of_slurm()


def continued_by(options: Sequence[str]) -> str:
    """The command that goes on with the `ponderay run` of `options` in this process: in a job, one that sends it again.

    Of a job in an allocation of Slurm it names the sweep, its options and the nodes; the batch file has the rest. A
    RayJob of Kubernetes is made anew from what the cluster has of it.
    """
    if _is_job_of_slurm():
        nodes = os.environ.get("SLURM_JOB_NUM_NODES", "1")
        return shlex.join(["ponderay", "submit", *options, "--slurm", "--nodes", nodes])
    if JOB_VARIABLE in os.environ:
        job = json.loads(os.environ[JOB_VARIABLE])
        variables = (job.get("runtime_env") or {}).get("env_vars") or {}
        given = {name: value for name, value in variables.items() if name not in OF_JOBS}
        metadata = job.get("metadata") or {}
        if rayjob := metadata.get(RAYJOB):
            return f"kubectl get rayjob {shlex.quote(rayjob)} -o yaml | kubectl replace --force -f -"
        return submit_again(shlex.join([*RUN, *options]), given, None, metadata.get(TYPED_NAME, ""))
    return shlex.join(["ponderay", "run", *options])


def this_command() -> str:
    """What continues the command of this process; a job is sent again, for nobody types what runs in it."""
    command, *options = sys.argv[1:]
    again = continued_by(options) if command == "run" else shlex.join(["ponderay", command, *options])
    return again if again.startswith("kubectl ") else without_secrets(again)


def command_of_job() -> str:
    """What sends the `ponderay run` of this process again, where it is a job that `submit` sends; else nothing.

    Variables are named without their values: it stands in bundles, and the shell that sends it again has them.
    """
    again = this_command() if is_job() and sys.argv[1:2] == ["run"] else ""
    if not again.startswith("ponderay "):
        return ""
    words = shlex.split(again)
    pairs = zip(["", *words], words, strict=False)
    return shlex.join([word.partition("=")[0] if before == "--env" else word for before, word in pairs])


def refuse_loopback(addresses: Mapping[str, str], what: str) -> None:
    """Raises InputError where a variable has an address of this machine, such as the end of a tunnel.

    Args:
        what: reads the variables on another machine.
    """
    for name, value in addresses.items():
        if "://" in value and is_loopback(urlsplit(value).hostname or ""):
            raise InputError(
                f"{name} must be an address that {what} reaches, but {redacted_uri(value)} is loopback, which is each "
                f"machine's own; `--env {name}=URL` names another."
            )


def parse_variables(given: list[str] | None) -> dict[str, str]:
    """Variables by name, from `NAME=VALUE` each, or `NAME` for what this shell has.

    Raises:
        InputError: if one is not set here, or may be a secret, because Ray keeps them in a job's record and shows them.
    """
    variables, declared = {}, set(map(variable_of, declared_names))
    for item in given or []:
        name, sign, value = item.partition("=")
        if not _NAME.fullmatch(name):
            raise InputError(f"--env must be NAME or NAME=VALUE, but {name!r} is not the name of a variable.")
        if not sign and name not in os.environ:
            raise InputError(
                f"`--env {name}` sends the value of this shell, but {name} is not set; set it or give a value."
            )
        variables[name] = value if sign else os.environ[name]
        if name in declared or is_secret_name(name) or redacted_setting(name, variables[name]) != variables[name]:
            raise InputError(
                f"`--env {name}` looks like a secret, and Ray shows a job's variables to all who see the cluster; put "
                "it on the cluster's machines, in a file such as ~/.mlflow/credentials or ~/.aws/credentials."
            )
    return variables
