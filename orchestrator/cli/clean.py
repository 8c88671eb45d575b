"""The command `clean`: what takes room in the runs folder and is no result."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.console.errors import RefusedError
from orchestrator.console.printing import Format, OutputFormat, print_rows, say

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it.")] = False,
    format: OutputFormat = Format.table,
) -> None:
    """Say what in the runs folder is no result, and how much room it takes; with --yes, remove it.

    That is the cache, what Ray left of killed drivers, checkpoints that were unpacked, what was set aside as damaged,
    folders of replicates that are in no study, and what `verify --rerun` has trained.
    """
    from orchestrator.checks.at_work import at_work
    from orchestrator.environment.settings import read_settings
    from orchestrator.journal.folder import size_bytes

    settings = read_settings()
    rows: list[dict[str, Any]] = []
    places: list[Path] = []
    for what, found in _removable(settings).items():
        size = sum(size_bytes(path) if path.is_dir() else path.lstat().st_size for path in found)
        rows.append({"what": what, "number": len(found), "MB": round(size / 1e6, 1)})
        places += found
    print_rows(rows, format, "What is no result")
    if not yes:
        if format is Format.table:
            say("`ponderay clean --yes` removes it.")
        return
    for sweep, holder in at_work(settings):
        raise RefusedError(f"{sweep} is at work ({holder}): stop it, then run `ponderay clean --yes` again.")
    for path in places:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if format is Format.table:
        say(f"Removed: {sum(row['MB'] for row in rows):,.1f} MB.")


def _removable(settings: "Settings") -> dict[str, list[Path]]:
    """Files and folders by what they are; a link is removed itself."""
    from orchestrator.journal.file_names import CHECKPOINT, JOURNAL
    from orchestrator.journal.study_file import read_study_file
    from orchestrator.machine.process_lock import Lease

    runs = settings.runs
    of_tune = [path for name in ("tune-*", "new-tune-*") for path in runs.glob(name)]
    unpacked, aside, orphans = list[Path](), list[Path](), list[Path]()
    for folder in sorted(runs.glob("replicates/*")):
        content = read_study_file(folder)
        known = {one["key"] for one in content.replicates.values()} if content and content.replicates else None
        for replicate in sorted(path for path in folder.glob("*") if path.is_dir() and (path / JOURNAL).exists()):
            if known is not None and replicate.name not in known:
                orphans.append(replicate)
                continue
            unpacked += replicate.glob("unpacked.*")
            unpacked += (
                path for path in replicate.glob("step_*") if path.is_dir() and CHECKPOINT.fullmatch(f"{path.name}.zip")
            )
            aside += [
                path for end in ("unreadable.*", "journal.damaged-*", "*.partial") for path in replicate.glob(end)
            ]
    return {
        "cache": list((runs / "cache").glob("*")),
        "left by killed drivers (tune-*)": [path for path in of_tune if not Lease(path / "in_use").is_held()],
        "checkpoints unpacked for reading": unpacked,
        "damaged files set aside": aside,
        "replicates in no study": orphans,
        "bundles' replicates trained again": list((runs / "reruns").glob("*")),
    }
