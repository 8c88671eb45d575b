"""The command `checkpoint`: the trained model of a replicate, for other programs."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import Smoke, SweepName, find_recorded
from orchestrator.console.printing import path_from_here, say
from search_spaces.bounds import MOST_SEED
from search_spaces.names import PART_BYTES


def checkpoint(
    name: SweepName,
    condition: Annotated[
        str,
        typer.Argument(help="A condition's name, as `ponderay status` lists them, its beginning, or a trial's number."),
    ],
    seed: Annotated[int, typer.Argument(min=0, max=MOST_SEED)] = 1,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to copy it; it is made where it is not there.")
    ] = Path(),
    smoke: Smoke = False,
    evaluation: Annotated[
        str | None, typer.Option(metavar="NAME", help="The evaluation under which it is the best; default: the first.")
    ] = None,
) -> None:
    """Copy the best checkpoint of a complete replicate into a folder; it is fetched where it is kept in a bucket."""
    from orchestrator.environment.places import folder_at
    from orchestrator.environment.settings import read_settings
    from orchestrator.results.lookup import find_condition
    from orchestrator.scheduler.kept_checkpoint import kept_checkpoint
    from orchestrator.tracking.load import load_study
    from trainables.config import content_hash

    folder = folder_at(to, "--to")
    settings, sweep = read_settings(), find_recorded(name, smoke)
    study = load_study(sweep.name, settings)
    condition = find_condition(study, condition)
    kept = kept_checkpoint(study, condition, seed, evaluation, settings)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{sweep.name}.{condition}.seed{seed}".replace("/", "_")
    if len(stem.encode()) > PART_BYTES:  # digits tell apart what begins alike
        end = f".{content_hash(condition)[:8]}.seed{seed}"
        stem = stem.encode()[: PART_BYTES - len(end)].decode(errors="ignore") + end
    place = folder / f"{stem}{kept.path.suffix}"
    if kept.path.is_dir():
        shutil.copytree(kept.path, place, dirs_exist_ok=True)
    else:
        shutil.copyfile(kept.path, place)
    best = f", the best by {kept.metric}" if kept.metric else ""
    say(f"Checkpoint: {path_from_here(place)} (step {kept.step:,}{best})")
