"""Which sweeps of a runs folder are at work."""

from collections.abc import Iterator

from orchestrator.environment.settings import Settings
from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.file_names import JOURNAL
from orchestrator.machine.process_lock import Lease
from orchestrator.tracking.lease_holder import HolderFile, holder_file


def at_work(settings: Settings) -> Iterator[tuple[str, str]]:
    """Sweeps, each with a process that works on it or drives it, also of what is trained again of bundles.

    A driver has its lease before there is a journal.
    """
    leases = {holder_file(settings, f"sweep {sweep}").path for sweep in recorded_here(settings)}
    for runs in (settings.runs, *settings.runs.glob("reruns/*/*")):
        leases.update(runs.glob("replicates/*/*.lease"))
        for path in runs.glob("replicates/*/*/in_use"):
            if (lease := Lease(path)).is_held():
                yield path.parts[-3], lease.holder()
    for path in sorted(leases):
        holder = HolderFile(path).holder()
        if holder and not (holder.is_gone or holder.is_silent):
            yield path.parent.name, holder.who


def recorded_here(settings: Settings) -> list[str]:
    """The sweeps of which there is a journal."""
    if settings.storage:
        names = [name.split("/") for name in SharedFolder(settings.storage).sizes()]
    else:
        names = [
            list(path.relative_to(settings.runs).parts) for path in settings.runs.glob(f"replicates/*/*/{JOURNAL}")
        ]
    return sorted({parts[1] for parts in names if parts[-1] == JOURNAL and parts[0] == "replicates"})
