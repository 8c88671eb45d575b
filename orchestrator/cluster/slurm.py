"""A sweep as a batch file of Slurm, which starts Ray on the job's nodes, runs the sweep, and ends both."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, StrictUndefined

from orchestrator.cluster.submission import STOP_S, Submission, refuse_loopback
from orchestrator.environment.settings import Settings
from search_spaces.known_names import known_names
from search_spaces.redaction import redacted_setting
from trainables.errors import InputError

TEMPLATE: Final = Path(__file__).with_suffix(".sh")
PORT: Final = 6379
JOIN_S: Final = 300
"""The time for Ray to start on all nodes, which read its packages from a shared folder."""

OWN: Final = MappingProxyType({"ntasks-per-node": "1", "exclusive": "", "signal": f"B:TERM@{2 * STOP_S}"})
"""What the batch file depends on; the signal leaves time for the driver, and then for Ray."""

DEFAULTS: Final = MappingProxyType({"mem": "0", "output": "slurm-%j.out"})
"""All memory of each node: an exclusive node brings its CPUs alone."""

CARRIED: Final = ("PONDERAY_DATA", "PONDERAY_STORAGE", "PONDERAY_TRACKING_URI", "PONDERAY_SEARCH_URI")
"""Settings of this shell that the job gets, for it may be sent from another."""

SBATCH: Final = """
time partition account qos gpus-per-node gres mem cpus-per-task acctg-freq batch bb bbf begin chdir cluster-constraint
clusters comment constraint container container-id contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu deadline
delay-boot dependency distribution error exclude export export-file extra extra-node-info get-user-env gid gpu-bind
gpu-freq gpus gpus-per-socket gpus-per-task gres-flags hint hold input job-name kill-on-invalid-dep licenses mail-type
mail-user mcs-label mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill no-requeue nodefile nodelist
ntasks-per-core ntasks-per-gpu ntasks-per-socket open-mode output overcommit oversubscribe power prefer priority profile
propagate requeue reservation resv-ports segment sockets-per-node spread-job stepmgr switches thread-spec
threads-per-core time-min tmp tres-bind tres-per-task uid use-min-nodes wait-all-nodes wckey
"""
"""The long options of sbatch (Slurm 25.05) that a job may have; the first ones are the most used."""

OF_ONE_NODE: Final = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/local")
"""Where folders begin that each machine commonly has for itself."""

_OPTION: Final = re.compile(r"[a-z][a-z-]+")
_UNPLAIN: Final = re.compile(r"[^\w.,:/@%+=-]")
_VARIABLE: Final = re.compile(r"(\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})")


def slurm_options(given: list[str] | None) -> dict[str, str]:
    """Options of sbatch by name, from `NAME=VALUE` each, or `NAME` for one without a value.

    Raises:
        InputError: if one is not written so, is none of sbatch's, or is the batch file's own.
    """
    options = {}
    for item in given or []:
        name, _, value = item.partition("=")
        if not _OPTION.fullmatch(name):
            rule = (
                "--sbatch must be NAME=VALUE or NAME, with the long name of an option of sbatch and no dashes before it"
            )
            raise InputError(f"{rule}, such as time=08:00:00, but got {item!r}.")
        if name in (*OWN, "nodes", "ntasks", "array"):
            remedy = "Give the number of nodes by --nodes." if name in ("nodes", "ntasks") else "Leave it out."
            raise InputError(f"`--sbatch {name}` cannot be set, because the batch file depends on its own. {remedy}")
        if name not in SBATCH.split():
            remedy = "One of a plugin of your cluster goes into the file that --dry-run prints"
            raise InputError(
                f"sbatch has no option {name!r}; there are {known_names(SBATCH.split(), name, 8)}. {remedy}."
            )
        if not value.isprintable() or re.search(r"[\"'\\]", value):
            raise InputError(
                f"The value of `--sbatch {name}` must be one line without quotes and \\, but got {value!r}."
            )
        options[name] = value
    return options


def batch_file(submission: Submission, settings: Settings, num_nodes: int, given: Mapping[str, str]) -> str:
    """The batch file as text; it holds no secret.

    Args:
        given: options of sbatch, as `slurm_options` returns them.

    Raises:
        InputError: if a store is named by an address of this machine alone.
    """
    job = re.sub(r"[^\w.-]+", "-", submission.sweep, flags=re.ASCII)
    has_memory = any(option in ("mem", "mem-per-cpu", "mem-per-gpu") for option in given)  # Slurm takes only one
    defaults = {option: value for option, value in DEFAULTS.items() if option != "mem" or not has_memory}
    options = {"job-name": job, "nodes": str(num_nodes), **OWN, **defaults, **given}
    carried = {name: os.environ[name] for name in CARRIED if os.environ.get(name)}
    of_settings = {"PONDERAY_TRACKING_URI": settings.tracking_uri, "PONDERAY_SEARCH_URI": settings.search_uri}
    refuse_loopback(of_settings | dict(submission.variables), "a node of the job")
    carried["PONDERAY_RUNS"] = str(settings.runs)
    withheld = [name for name, value in carried.items() if redacted_setting(name, value) != value]
    plain = {name: shlex.quote(value) for name, value in carried.items() if name not in withheld}
    template = Environment(undefined=StrictUndefined).from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        sweep=job,
        options={option: f'"{value}"' if _UNPLAIN.search(value) else value for option, value in options.items()},
        folder=shlex.quote(str(Path.cwd())),
        programs=shlex.quote(str(Path(sys.executable).parent)),
        variables=plain | {name: _expandable(value) for name, value in submission.variables.items()},
        withheld=[name for name in withheld if name not in submission.variables],
        entrypoint=submission.entrypoint,
        port=PORT,
        join_s=JOIN_S,
        stop_s=STOP_S,
    )


def send(text: str) -> tuple[str, str]:
    """Hands a batch file to sbatch on this machine, and returns the job's number and cluster; "" for this machine's.

    Raises:
        InputError: if there is no sbatch, or it refuses the job.
    """
    try:
        done = subprocess.run(["sbatch", "--parsable"], input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        remedy = "Add `--dry-run > job.sh` to this command, and type `sbatch job.sh` on a machine of the Slurm cluster"
        raise InputError(f"--slurm needs the program sbatch, but this machine has none. {remedy}.") from None
    if done.returncode:
        raise InputError(f"sbatch refused the job: {done.stderr.strip() or f'exit code {done.returncode}'}")
    number, _, cluster = done.stdout.strip().partition(";")
    return number, cluster


def _expandable(value: str) -> str:
    """Text for bash, in which $NAME and ${NAME} are read where the job runs, and nothing else is."""
    parts = _VARIABLE.split(value)
    return "".join(f'"{part}"' if at % 2 else shlex.quote(part) for at, part in enumerate(parts) if part) or "''"
