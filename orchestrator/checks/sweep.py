"""What would go wrong, before it does: data, tracking, storage, disk, seeds and GPUs, looked at without Ray."""

import contextlib
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orchestrator.checks.check import Check
from orchestrator.checks.exposure import before_run
from orchestrator.cluster.address import names_cluster
from orchestrator.cluster.ray_internals import JOB_VARIABLE
from orchestrator.environment.places import existing, folder_fault, write_fault
from orchestrator.environment.settings import Settings
from orchestrator.journal import bucket
from orchestrator.results.study import Study
from orchestrator.scheduler.floors import of_prerequisites
from orchestrator.scheduler.pruning import is_pruned
from orchestrator.scheduler.task_factory import TaskFactory, draws_data
from orchestrator.tracking import damage as tracking_damage
from orchestrator.tracking import store as tracking_store
from orchestrator.tracking.load import load_study
from orchestrator.worker.trainable import load
from search_spaces.redaction import redacted_setting, redacted_uri
from search_spaces.size import size_of
from search_spaces.sweep import Condition, Sweep
from trainables.config import flatten
from trainables.errors import InputError
from trainables.secret import variable_of

LEVEL: Final = 0.05
WRITTEN: Final = re.compile("cache|out|log|te?mp|scratch|save|checkpoint|result")
"""Part of a field's name that says that a training writes there."""

FLOOR_BYTES: Final = 1_000_000_000
NETWORK_FILE_SYSTEMS: Final = (
    "nfs", "cifs", "smb", "lustre", "ceph", "gluster", "beegfs", "gpfs", "afs", "9p", "fuse.",
)  # fmt: skip
OF_COPY: Final = "is in the job's own copy of the sources, which Ray removes"
OTHER_STORE: Final = (
    "Set PONDERAY_TRACKING_URI to sqlite:///FILE or to a server: http(s)://, postgresql:// or mysql://."
)

OTHER_RUNS: Final = "Make it writable, with room, or set PONDERAY_RUNS, or `runs` in ponderay.toml, to another folder."
REPAIR: Final = "`ponderay repair` moves it away, and says how the results come back from the journals."


def before_ray(
    sweep: Sweep, settings: Settings, factory: TaskFactory | None = None, again: bool = False
) -> list[Check]:
    """Everything that can be looked at before Ray starts.

    Args:
        factory: keeps the fingerprints for whoever asks it later.
        again: whether results on other data will make room.

    Raises:
        InputError: as `read_fingerprints`.
    """
    factory = factory or TaskFactory(sweep, settings, num_gpus=0)
    checks = look(sweep, settings, read_fingerprints(factory), again)
    return [*checks, *check_floors(factory), *before_run(settings)]


def look(
    sweep: Sweep, settings: Settings, fingerprints: Mapping[str, str] | InputError, again: bool = False
) -> list[Check]:
    """The checks of `before_ray`, given the fingerprint of each condition's data or why there is none."""
    tracking, study = check_tracking(settings), None
    if tracking.state != "failed":
        with contextlib.suppress(InputError):  # it has not run, or nobody can tell
            study = load_study(sweep.name, settings)
    return [
        check_storage(settings),
        tracking,
        check_fingerprints(sweep, fingerprints, None if again else study),
        check_disk(settings, sweep, study),
        check_seeds(sweep),
        check_gpu(sweep),
        *check_secrets(sweep),
    ]


def read_fingerprints(factory: TaskFactory) -> dict[str, str]:
    """The fingerprint of the data of each condition by its name; of a search, under "", that of its base.

    Raises:
        InputError: naming the first thing that is missing, broken or empty.
    """
    sweep, fingerprints = factory.sweep, {}
    for condition in sweep.conditions or (Condition("base"),):
        factory.prerequisites(condition, sweep.seeds[0])
        fingerprint = factory.fingerprint(sweep.trainable, sweep.config(condition, sweep.seeds[0]))
        fingerprints[condition.name if sweep.conditions else ""] = fingerprint
    return fingerprints


def check_floors(factory: TaskFactory) -> list[Check]:
    """Whether prerequisites that are complete beat what needs no learning; nothing where none has a floor."""
    floors = of_prerequisites(factory)
    if poor := [floor.sentence for floor in floors if not floor.is_beaten]:
        remedy = "Train it longer or otherwise before others rely on it."
        more = f" ({len(poor) - 1} more prerequisites are no better)" if len(poor) > 1 else ""
        return [Check("prerequisites", "warning", f"{poor[0].rstrip('.')}{more}", remedy)]
    return [Check("prerequisites", "ok", floors[0].sentence.rstrip("."))] if floors else []


def check_places(settings: Settings) -> list[Check]:
    """Whether there is room for records, as far as it can be seen without MLflow."""
    return [check_storage(settings), _check_tracking_place(settings) or Check("tracking", "ok", "it has a place")]


def check_tracking(settings: Settings) -> Check:
    """Whether the tracking store is one that is supported, and answers within seconds."""
    uri, address = settings.tracking_uri, redacted_uri(settings.tracking_uri)
    if refused := _check_tracking_place(settings):
        return refused
    if tracking_store.store_kind(uri) == "sqlite" and (
        reason := tracking_damage.place_fault(tracking_store.sqlite_file(uri))
    ):
        return Check("tracking", "failed", f"{address} cannot be used: {reason}", REPAIR)
    if not tracking_store.has_store(uri):
        return _warn_of_network(uri, f"{address}, which the first run creates")
    fault = tracking_store.fault(uri)
    if fault:
        is_file = tracking_store.store_kind(uri) == "sqlite"
        remedy = OTHER_STORE if is_file else "Start the server, or name another store with PONDERAY_TRACKING_URI."
        if is_file and tracking_damage.fault(tracking_store.sqlite_file(uri)):
            remedy = REPAIR
        if fault in tracking_store.REFUSALS.values():
            remedy = "Correct them."
        if "No module named" in fault:
            remedy = "Install the database's driver, which is that module."
        return Check("tracking", "failed", f"{address} cannot be used: {fault}", remedy)
    return _warn_of_network(uri, f"{address} answers")


def _check_tracking_place(settings: Settings) -> Check | None:
    """Why nothing can be recorded at the store's address; None where that is not known yet."""
    uri, address = settings.tracking_uri, redacted_uri(settings.tracking_uri)
    kind = tracking_store.store_kind(uri)
    if not kind:
        return Check("tracking", "failed", f"{address!r} is not a supported tracking store", OTHER_STORE)
    if kind != "sqlite":
        return None
    file = tracking_store.sqlite_file(uri)
    if fault := folder_fault(file.parent) or write_fault(file.parent):
        remedy = OTHER_RUNS if file.is_relative_to(settings.runs) else OTHER_STORE
        return Check("tracking", "failed", f"{address} cannot be written: {fault}", remedy)
    if _goes_with_job(file):
        remedy = "Set PONDERAY_TRACKING_URI on the cluster's machines, or by `submit --env PONDERAY_TRACKING_URI=URL`."
        return Check("tracking", "failed", f"{address} {OF_COPY}", remedy)
    return None


def _warn_of_network(uri: str, found: str) -> Check:
    if tracking_store.store_kind(uri) == "sqlite":
        system = file_system(tracking_store.sqlite_file(uri))
        if system.startswith(NETWORK_FILE_SYSTEMS):
            remedy = "Put it on a local disk, or use a server: its locks do not hold over a network."
            return Check("tracking", "warning", f"{found}, is on a network file system ({system})", remedy)
    return Check("tracking", "ok", found)


def _goes_with_job(place: Path) -> bool:
    return JOB_VARIABLE in os.environ and place.is_relative_to(Path.cwd())


def check_storage(settings: Settings) -> Check:
    """Whether the folder of runs can be written from here; where there is none yet, whether it can be made."""
    if not settings.storage and _goes_with_job(settings.runs):
        found = f"{settings.runs} {OF_COPY}"
        remedy = "Set PONDERAY_RUNS on the cluster's machines, or by `ponderay submit --env PONDERAY_RUNS=FOLDER`."
        return Check("storage", "failed", found, remedy)
    if fault := folder_fault(settings.runs) or write_fault(settings.runs):
        return Check("storage", "failed", f"no runs can be kept: {fault}", OTHER_RUNS)
    if not settings.storage:
        return Check("storage", "ok", f"{settings.runs} can be written")
    if fault := bucket.write_fault(settings.storage):
        remedy = "Create the bucket, give its keys (environment or role), or correct PONDERAY_STORAGE."
        return Check("storage", "failed", f"{settings.storage} cannot be written: {fault}", remedy)
    return Check("storage", "ok", f"{settings.runs} and {settings.storage} can be written")


def check_fingerprints(sweep: Sweep, fingerprints: Mapping[str, str] | InputError, study: Study | None) -> Check:
    """Whether the data are there, are those that the sweep has run on before, and would be known from others."""
    if isinstance(fingerprints, InputError):
        return Check("data", "failed", str(fingerprints), "Correct the data, or name other data with `--set`.")
    replicates = study.replicates if study else ()
    for condition, fingerprint in fingerprints.items():
        recorded = {r.data_fingerprint for r in replicates if r.condition == condition or sweep.search}
        others = sorted(recorded - {"", fingerprint})
        if sweep.search and others and fingerprint not in recorded and not draws_data(sweep):
            found = f"fingerprint {fingerprint}, but the trials so far have {', '.join(others)}"
            return Check(
                "data", "warning", found, "A new search starts; with the earlier data the old one would continue."
            )
        if not sweep.search and others:
            found = f"{condition!r} has run on data with fingerprint {others[0]}, but now it is {fingerprint}"
            remedy = "Restore the earlier data, set PONDERAY_RUNS to another folder, or let `run --again` train anew."
            return Check("data", "failed", found, remedy)
    if unwatched := check_unwatched_data(sweep):
        return unwatched[0]
    distinct = list(filter(None, dict.fromkeys(fingerprints.values())))
    found = f"fingerprint {', '.join(distinct)}{', as before' if replicates else ''}" if distinct else "no fingerprint"
    return Check("data", "ok", found)


def check_unwatched_data(sweep: Sweep) -> list[Check]:
    """A warning of a path of data in the sweep's configs, if the trainable has no fingerprint of them."""
    if hasattr(load(sweep.trainable).module, "fingerprint"):
        return []
    configs = [sweep.config(condition, sweep.seeds[0]) for condition in sweep.conditions] or [sweep.base]
    leaves = (leaf for config in configs for leaf in flatten(config).items())
    named = next((path for path, value in leaves if _holds_data(path, value)), "")
    if not named:
        return []
    found = f"nothing tells when the files at `{named}` change, and results on old and new ones count as one"
    remedy = f"Give {sweep.trainable} a function `fingerprint(config)`: a text that changes with them."
    return [Check("data", "warning", found, remedy)]


def _holds_data(path: str, value: object) -> bool:
    """Whether a config's value is the path of something that is there, and is not named as what a training writes."""
    is_path = isinstance(value, Path) or (isinstance(value, str) and bool({"/", "."} & set(value.strip("."))))
    return is_path and not WRITTEN.search(path.rpartition(".")[2]) and os.path.lexists(value)  # type: ignore[arg-type]


def check_disk(settings: Settings, sweep: Sweep | None = None, study: Study | None = None) -> Check:
    """Whether what is left of the sweep fits on the disk, by the mean size of its complete replicates.

    Without one, whether 1 GB is free.
    """
    free = shutil.disk_usage(existing(settings.runs)).free
    complete = [r for r in study.replicates if r.state == "complete"] if study else []
    sizes = [r.size_bytes for r in complete if r.size_bytes]
    needed = 0.0
    if sweep and sizes:
        num_given_up = _num_pruned(sweep, settings) * (len(sweep.seeds) - 1)
        num_given_up += sum(one.state == "pruned" for one in study.replicates) if study else 0
        num_left = max(0, sweep.num_conditions() * len(sweep.seeds) - num_given_up - len(complete))
        needed = num_left * sum(sizes) / len(sizes)
    found = f"{_gigabytes(free)} free at {settings.runs}" + (f", {_gigabytes(needed)} needed" if sizes else "")
    remedy = "Free space, or set PONDERAY_RUNS to a folder on a larger disk."
    if needed > free:
        return Check("disk", "failed", found, remedy)
    if free < FLOOR_BYTES:
        return Check("disk", "warning", found, remedy)
    return Check("disk", "ok", found)


def _num_pruned(sweep: Sweep, settings: Settings) -> int:
    """How many conditions get no seed but their first; 0 where Optuna's database cannot be read."""
    if not sweep.is_pruned:
        return 0
    from orchestrator.scheduler.search_store import decisions  # loads Optuna

    try:
        return sum(map(is_pruned, decisions(sweep.name, settings).values()))
    except InputError:  # `run` tells it
        return 0


def check_secrets(sweep: Sweep) -> list[Check]:
    """The first field of the sweep's configs whose value looks like a secret and is not declared as one; or none."""
    first = sweep.conditions[:1] or (Condition("base"),)
    for config in (sweep.base, sweep.config(first[0], sweep.seeds[0])):
        for path, value in flatten(config).items():
            if isinstance(value, str) and redacted_setting(path, value) != value:
                name = path.rpartition(".")[2]
                found = f"the value of `{path}` looks like a secret, of which records and names hold *** or a hash"
                remedy = (
                    f"Declare the field as pydantic.SecretStr, or Annotated[str, ponderay.SECRET], and give it by the "
                    f"environment variable {variable_of(name)}."
                )
                return [Check("secrets", "warning", found, remedy)]
    return []


def check_seeds(sweep: Sweep) -> Check:
    """Whether the seeds suffice for the test that the sweep promises, at a level of .05 with Holm's correction.

    The exact two-sided sign-flip test on n pairs has no p below 2 / 2^n (Fisher 1935); with m comparisons, of every
    condition under each of its evaluations in every objective, the smallest must reach .05 / m (Holm 1979). A smoke
    sweep promises nothing.
    """
    from orchestrator.statistics.significance import least_paired_p, seeds_for_level  # loads numpy

    n = len(sweep.seeds)
    if sweep.reference is None or len(sweep.conditions) < 2:
        return Check("seeds", "ok", f"{n}; no condition is compared with a reference")
    if size_of(sweep.name) == "smoke":
        return Check("seeds", "ok", f"{n}; a smoke sweep promises no test")
    if sweep.test == "paired_permutation":
        trainable = load(sweep.trainable)
        others = [sweep.config(c, sweep.seeds[0]) for c in sweep.conditions if c.name != sweep.reference]
        m = sum(max(1, len(trainable.evaluations(config))) for config in others) * len(sweep.objectives)
        enough, least_p = seeds_for_level(LEVEL, num_comparisons=m), least_paired_p(n)
        found = f"{n} pairs, {m} comparisons: the exact paired test reaches p = {min(1.0, m * least_p):.2g} at best"
        if m * least_p > LEVEL:
            remedy = f"Give the sweep {enough} seeds: `--seeds {enough}`." if enough else "Compare fewer conditions."
            return Check("seeds", "failed", found, remedy)
        return Check("seeds", "ok", found)
    if n < 2:
        remedy = "Give the sweep at least 2 seeds, such as `--seeds 5`."
        return Check("seeds", "warning", f"{n}; Welch's test against {sweep.reference!r} needs at least 2", remedy)
    enough = seeds_for_level(LEVEL) or 0
    note = f" (an exact paired test could not reach {LEVEL:g} with fewer than {enough})" if n < enough else ""
    return Check("seeds", "ok", f"{n} for Welch's test{note}")


def check_gpu(sweep: Sweep | None = None) -> Check:
    """Whether GPUs that are asked for in so many words are there, and whether torch sees those that are."""
    wanted = 0.0
    if sweep:
        own = [condition.resources for condition in sweep.conditions]
        own += [prerequisite.resources for prerequisite in sweep.prerequisites]
        for resources in filter(None, [sweep.resources, *own]):
            least = resources.resolve(0)  # where a replicate can do without a GPU, "auto" asks for none
            wanted = max(wanted, least.min_workers * least.gpus_per_worker)
    if names_cluster():
        return Check("gpu", "ok", f"{wanted:g} a replicate, of the cluster" if wanted else "decided by the cluster")
    names = gpu_names()
    if wanted > len(names):
        remedy = "Run on a machine with GPUs, or lower `gpus_per_worker` in the sweep's resources."
        return Check("gpu", "failed", f"a replicate asks for {wanted:g}, but torch sees {len(names)}", remedy)
    if not names and has_nvidia_driver():
        remedy = "Install a build of torch with CUDA that suits the driver; `nvidia-smi` shows what it supports."
        return Check(
            "gpu",
            "warning",
            "this machine has an NVIDIA driver, but torch sees no GPU; replicates train on the CPU",
            remedy,
        )
    return Check("gpu", "ok", ", ".join(names) or "none; replicates train on the CPU")


def gpu_names() -> list[str]:
    """The GPUs that torch sees; torch, which takes seconds to load, is left alone where the machine shows no card."""
    if not has_card():
        return []
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not torch.cuda.is_available():
            return []
    return [torch.cuda.get_device_properties(i).name for i in range(torch.cuda.device_count())]


def has_card() -> bool:
    """Whether this machine shows a device that torch may use: of NVIDIA, of WSL, or of AMD."""
    return any(name.startswith(("nvidia", "nvhost", "nvgpu", "dxg", "kfd")) for name in os.listdir("/dev"))  # noqa: PTH208


def has_nvidia_driver() -> bool:
    """Whether the kernel has it loaded and a card is visible here."""
    return Path("/proc/driver/nvidia/version").exists() and Path("/dev/nvidiactl").exists()


def file_system(path: Path) -> str:
    """The kind of file system that `path` is on, such as ext4 or nfs4; empty where it is not known."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return ""
    rows = [line.split(" ")[1:3] for line in os.fsdecode(mounts.read_bytes()).split("\n") if line]
    place = existing(path).resolve()
    fitting = [(folder, kind) for folder, kind in rows if place.is_relative_to(folder.replace("\\040", " "))]
    return max(fitting, key=lambda row: len(row[0]))[1] if fitting else ""


def _gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
