"""The commands of jobs on a cluster: `submit`, `jobs`, `logs` and `stop`."""

import math
import shlex
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from orchestrator.cli.options import (
    AcceptCode,
    Again,
    Conditions,
    Confirm,
    Grid,
    MaxDeviceHours,
    Resources,
    Retry,
    Seeds,
    Smoke,
    SweepName,
    Values,
    find,
)
from orchestrator.cluster.jobs import SUCCEEDED, Job, JobLogs, find_job, follow_log, next_name, of_ponderay
from orchestrator.console.exit_codes import FAILED
from orchestrator.console.printing import Format, OutputFormat, err, out, print_rows
from orchestrator.machine.clock import now_ms
from orchestrator.machine.waiting import wait_until
from search_spaces.bounds import MOST_DEVICES
from search_spaces.confirmation import ENDING
from search_spaces.size import plain_name, size_of
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.cluster.job_api import RayJobs
    from orchestrator.cluster.rayjob import Pods
    from orchestrator.cluster.submission import Submission
    from orchestrator.environment.settings import Settings

POLL_S: Final = 1.0
MORE_STOP_S: Final = 30.0

Address = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The cluster's dashboard; default: RAY_API_SERVER_ADDRESS, else http://127.0.0.1:8265, where "
        "the tunnel of `ray dashboard cluster.yaml` ends.",
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="A variable of the job's environment, such as PONDERAY_TRACKING_URI; without a value that of this shell. "
        "May be repeated. $NAME in a value is read on the cluster (not of Kubernetes). No secrets: Ray shows them.",
    ),
]
Which = Annotated[str, typer.Argument(metavar="JOB|SWEEP", help="A job's name, or a sweep's for its newest job.")]
Follow = Annotated[bool, typer.Option("--follow", help="Print until the job ends; Ctrl-C leaves it running.")]

NumNodes = Annotated[int | None, typer.Option(min=1, max=MOST_DEVICES, help="Slurm: number of nodes; default: 1.")]
SbatchOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=VALUE]",
        help="Slurm: an option of sbatch, such as time=08:00:00 or partition=gpu. May be repeated.",
    ),
]

Image = Annotated[str | None, typer.Option(help="Kubernetes: an image with this version of Ponderay.")]
NumPods = Annotated[
    int | None, typer.Option(min=1, max=MOST_DEVICES, help="Kubernetes: number of pods that train; default: 1.")
]
PodCpus = Annotated[int | None, typer.Option(min=1, max=MOST_DEVICES, help="Kubernetes: CPUs of each; default: 4.")]
PodGpus = Annotated[int | None, typer.Option(min=0, max=MOST_DEVICES, help="Kubernetes: GPUs of each; default: 0.")]
Claim = Annotated[
    str | None, typer.Option(help="Kubernetes: a persistent volume claim, mounted at PONDERAY_RUNS on all pods.")
]
ServiceAccount = Annotated[
    str | None, typer.Option(help="Kubernetes: the pods' service account, such as one that may use the bucket.")
]
PullSecret = Annotated[str | None, typer.Option(help="Kubernetes: the Secret by which a private image is pulled.")]
Tolerations = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY[=VALUE]",
        help="Kubernetes: a taint of nodes that the pods bear; may be repeated. Pods with GPUs bear nvidia.com/gpu.",
    ),
]


def submit(
    name: SweepName,
    address: Address = None,
    variables: Variables = None,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    conditions: Conditions = None,
    grid: Grid = None,
    confirm: Confirm = False,
    resources: Resources = None,
    accept_code: AcceptCode = False,
    retry: Retry = None,
    again: Again = False,
    max_device_hours: MaxDeviceHours = math.inf,
    follow: Annotated[bool, typer.Option("--follow", help="Then print its log until it ends.")] = False,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print a RayJob for KubeRay 1.5.1 or later; needs --dry-run.")
    ] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="Send it as a job of Slurm, by sbatch.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; with --slurm or --kubernetes print what would be sent.")
    ] = False,
    nodes: NumNodes = None,
    sbatch: SbatchOptions = None,
    image: Image = None,
    workers: NumPods = None,
    worker_cpus: PodCpus = None,
    worker_gpus: PodGpus = None,
    claim: Claim = None,
    service_account: ServiceAccount = None,
    pull_secret: PullSecret = None,
    toleration: Tolerations = None,
) -> None:
    """Send a sweep and its sources to a Ray cluster; a second submission continues the sweep.

    The job runs `ponderay run` with the same options on the cluster's head. The cluster must ask for a token. With
    --slurm the job starts Ray on its own nodes, in this folder, and nothing is uploaded.
    """
    from orchestrator.cluster.rayjob import Pods
    from orchestrator.cluster.submission import Submission, entrypoint, parse_variables, run_options
    from orchestrator.environment.settings import read_settings
    from orchestrator.worker.contract import check_contract
    from search_spaces.find import place_in_upload

    of_pods = (image, claim, workers, worker_cpus, worker_gpus, service_account, pull_secret, toleration)
    is_for_kubernetes = kubernetes or any(option is not None for option in of_pods)
    is_for_slurm = slurm or nodes is not None or bool(sbatch)
    if not (is_for_kubernetes or is_for_slurm or dry_run):
        from orchestrator.cluster.job_api import usable

        usable(address)  # before the sweep is loaded, which takes longer
    name, smoke = plain_name(name), smoke or size_of(name) == "smoke"  # the place that a job gets bears no size
    sweep = find(name, smoke, values, seeds, resources, conditions, grid, confirm)
    check_contract(sweep)
    (place, module), variables_of_job, settings = place_in_upload(sweep), parse_variables(variables), read_settings()
    study = sweep.name + (ENDING if confirm else "")
    given = (retry, conditions, grid, again, confirm)
    options = run_options(smoke, values, seeds, resources, accept_code, max_device_hours, *given)
    if is_for_slurm:
        if not slurm or address or follow or is_for_kubernetes:
            rule = "--nodes and --sbatch go with --slurm, and --slurm goes with no option of another kind of cluster"
            raise InputError(f"{rule}: --address, --follow, and those of Kubernetes.")
        here = Submission(study, entrypoint(name, options), variables_of_job, name)  # they share this folder
        _send_to_slurm(here, settings, nodes or 1, sbatch, dry_run)
        return
    submission = Submission(study, entrypoint(place, options), variables_of_job, name)
    if dry_run and not is_for_kubernetes:
        raise InputError("--dry-run prints what --slurm or --kubernetes would send; name one of them.")
    if is_for_kubernetes:
        if kubernetes and not image:
            raise InputError("--kubernetes needs --image IMAGE, with this version of Ponderay; see docs/cluster.md.")
        if not (kubernetes and dry_run and image) or address or follow:
            needed = "`--kubernetes --dry-run --image IMAGE | kubectl apply -f -`, without --address and --follow"
            raise InputError(f"Ponderay only prints the manifest for Kubernetes, and kubectl sends it: {needed}.")
        given_pods = (claim, service_account, pull_secret, tuple(toleration or ()))
        _print_manifest(submission, place, Pods(image, workers or 1, worker_cpus or 4, worker_gpus or 0, *given_pods))
        return
    modules = [module, sweep.trainable, *(needed.trainable for needed in sweep.prerequisites)]
    _send(submission, settings, address, follow, modules)


def jobs(address: Address = None, format: OutputFormat = Format.table) -> None:
    """List the sweeps that were submitted to a cluster, the newest first.

    Fields: job, sweep, state (PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED), started (UTC), duration_s, message.
    """
    everything = _connect(address).jobs()
    own = of_ponderay(everything)
    asked_ms = now_ms()
    rows: list[dict[str, Any]] = [
        {
            "job": job.name,
            "sweep": job.sweep,
            "state": job.state,
            "started": datetime.fromtimestamp(job.started_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "duration_s": round(max(0, (job.ended_ms or asked_ms) - job.started_ms) / 1000),
            "message": job.message,
        }
        for job in own
    ]
    if format is not Format.table:
        print_rows(rows, format, title="")
    elif rows:
        fields = ("job", "sweep", "state", "started", "duration_s")
        short = [{name: row[name] for name in fields} | {"started": row["started"][:16]} for row in rows]
        print_rows(short, format, title="Jobs", whole=("job", "sweep", "state"))
        for row in rows:  # below, for with it the table would not fit a terminal of 80 columns
            if row["state"] == "FAILED" and row["message"]:
                out.print(f"{row['job']}: {row['message']}", markup=False, soft_wrap=True)
    else:
        out.print("This cluster has no sweep yet; `ponderay submit asr.demo` submits one.")
    if format is Format.table and len(everything) > len(own):
        out.print(f"Other jobs of this cluster, not from Ponderay: {len(everything) - len(own)}")


def logs(which: Which, follow: Follow = False, address: Address = None) -> None:
    """Print a job's log so far, or until it ends; the exit code is 1 if the job failed or was stopped."""
    api = _connect(address)
    job = find_job(api.jobs(), which)
    if follow:
        _follow(api, job.name, address)
    _write(api.log(job.name))
    _finish(job)


def stop(which: Which, address: Address = None) -> None:
    """Stop a job safely; finished work is kept, and the next submission of its sweep continues from there."""
    from orchestrator.cluster.submission import submit_again
    from orchestrator.console.spinner import spinner

    api = _connect(address)
    job = find_job(api.jobs(), which)
    if job.has_ended:
        out.print(f"{job.name} has ended already: {job.state}.", markup=False)
        return
    api.stop(job.name)
    with spinner(f"Stopping {job.name}; it first records what it has"):
        job = _wait(api, job.name)
    again = f"`{submit_again(job.entrypoint, job.variables, address, job.typed_name)}` continues from there"
    out.print(f"{job.name} has ended: {job.state}. Finished work is kept; {again}.", markup=False, soft_wrap=True)


def _print_manifest(submission: "Submission", place: str, pods: "Pods") -> None:
    from orchestrator.cluster.rayjob import manifest

    if place.partition(":")[0].endswith(".py"):
        remedy = "install the sweep's package in the image, and name it by entry point or import path"
        raise InputError(f"Nothing is sent to the pods, so they do not have {submission.typed_name}; {remedy}.")
    print(manifest(submission, pods))


def _send(
    submission: "Submission", settings: "Settings", address: str | None, follow: bool, modules: list[str]
) -> None:
    from orchestrator.cluster.upload import find_upload, packed
    from orchestrator.console.spinner import spinner

    upload = find_upload(settings, modules=modules)
    upload.check_size()
    api = _connect(address)
    name = next_name(api.jobs(), submission.sweep)
    with packed(upload) as package:
        sent = (
            f"{upload.num_files} files, {upload.num_bytes / 1e6:.1f} MB, {package.stat().st_size / 1e6:.1f} MB packed"
        )
        out.print(f"Upload  {sent}, from {', '.join(map(str, upload.roots))}", markup=False, soft_wrap=True)
        with spinner("Sending; a cluster that has just come up may take half a minute to answer"):
            api.submit(submission, name, package)
    follow_again = ["ponderay", "logs", name, "--follow", *_where(address)]
    _print_next(submission, name, follow_again, ["ponderay", "stop", name, *_where(address)])
    if follow:
        _follow(api, name, address)


def _send_to_slurm(
    submission: "Submission", settings: "Settings", num_nodes: int, given: list[str] | None, dry_run: bool
) -> None:
    """Prints the batch file, or sends it and says the job's number and what to type next."""
    from orchestrator.cluster.slurm import DEFAULTS, OF_ONE_NODE, batch_file, send, slurm_options

    options = slurm_options(given)
    text = batch_file(submission, settings, num_nodes, options)
    if str(settings.runs).startswith(OF_ONE_NODE):
        rule = (
            f"PONDERAY_RUNS must be a folder that all nodes share, but {settings.runs} is commonly each machine's own"
        )
        err.print(f"ponderay: {rule}; set it to a shared one first.", markup=False, soft_wrap=True)
    if dry_run:
        print(text)
        return
    job, cluster = send(text)
    follow = [] if "output" in options else ["tail", "-F", DEFAULTS["output"].replace("%j", job)]
    _print_next(
        submission, job, follow, ["scancel", *(["-M", cluster] if cluster else []), "--batch", "--signal=TERM", job]
    )


def _print_next(submission: "Submission", job: str, follow: list[str], stop: list[str]) -> None:
    """The job's name and the commands that a user may want next; none to follow it where that is not known."""
    from orchestrator.cluster.submission import status_name

    status = ["ponderay", "status", *status_name(submission)]
    for word, command in {"Job": [job], "Follow": follow, "Stop": stop, "Status": status}.items():
        if command:
            out.print(f"{word:7} {shlex.join(command)}", markup=False, soft_wrap=True)


def _where(address: str | None) -> list[str]:
    return ["--address", address] if address else []


def _connect(address: str | None) -> "RayJobs":
    from orchestrator.cluster.job_api import connect

    return connect(address)


def _follow(api: JobLogs, name: str, address: str | None) -> NoReturn:
    try:
        job = follow_log(api, name, _write)
    except KeyboardInterrupt:
        again = shlex.join(["ponderay", "logs", name, "--follow", *_where(address)])
        err.print(f"ponderay: {name} is still running; `{again}` follows it again.", markup=False, soft_wrap=True)
        raise SystemExit(0) from None
    _finish(job)
    raise SystemExit(0)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _finish(job: Job) -> None:
    """Ends with exit code 1 where the job has ended otherwise than well."""
    if job.has_ended and job.state != SUCCEEDED:
        err.print(f"ponderay: {job.name} has ended: {job.state}. {job.message}", markup=False, soft_wrap=True)
        raise SystemExit(FAILED)


def _wait(api: JobLogs, name: str) -> Job:
    """The job once it has ended."""
    from orchestrator.cluster.submission import STOP_S

    limit_s = STOP_S + MORE_STOP_S

    def ended() -> Job | None:
        job = find_job(api.jobs(), name)
        return job if job.has_ended else None

    job = wait_until(ended, limit_s, POLL_S)
    if job is None:
        state = find_job(api.jobs(), name).state
        raise InputError(f"{name} was asked to stop {limit_s:.0f} s ago, but is still {state}.")
    return job
