"""The commands that put results away: `rm`, `archive`, `restore` and `rename`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import Smoke, SweepName, find_recorded
from orchestrator.console.errors import RefusedError
from orchestrator.console.printing import path_from_here, say
from search_spaces.bounds import MOST_SEED
from search_spaces.known_names import known_names
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.results.study import Replicate

Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
To = Annotated[
    Path | None, typer.Option("--to", metavar="FILE", help="Of the archive; default: a new one in RUNS/archives.")
]


def rm(
    name: SweepName,
    conditions: Annotated[
        list[str] | None, typer.Option("--condition", metavar="NAME", help="Only this one; may be repeated.")
    ] = None,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", min=0, max=MOST_SEED, help="Only this one; may be repeated.")
    ] = None,
    smoke: Smoke = False,
    to: To = None,
    yes: Yes = False,
) -> None:
    """Remove replicates from a study; they are moved to an archive first, from which `restore` brings them back.

    Their runs go into MLflow's bin.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.put_away import remove
    from orchestrator.tracking.load import load_study
    from search_spaces.settings import same_name

    settings, sweep = read_settings(), find_recorded(name, smoke)
    study = load_study(sweep.name, settings)
    named = {same_name(one, study.conditions) or one for one in conditions or study.conditions}
    if unknown := named.difference(study.conditions):
        known = known_names(study.conditions, min(unknown))
        raise InputError(f"{sweep.name} has no condition {min(unknown)!r}; there are {known}.")

    def is_chosen(one: "Replicate") -> bool:
        return one.condition in named and (not seeds or one.seed in seeds)

    number = sum(map(is_chosen, study.replicates))
    if number:
        agree(f"Remove {number:,} of the {len(study.replicates):,} replicates of {sweep.name}", yes)
    file, number = remove(sweep.name, settings, is_chosen, to)
    say(f"Of {sweep.name} {number:,} replicate{' is' if number == 1 else 's are'} in {path_from_here(file)} now.")
    say(f"`ponderay restore {shlex.quote(path_from_here(file))}` brings them back.")


def archive(
    name: SweepName,
    to: To = None,
    without_checkpoints: Annotated[
        bool, typer.Option("--without-checkpoints", help="Leave the trained models out.")
    ] = False,
    smoke: Smoke = False,
) -> None:
    """Write a whole study into one file, from which `restore` brings it back, here or on another machine."""
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.put_away import archive as write

    settings, sweep = read_settings(), find_recorded(name, smoke)
    file = write(sweep.name, settings, to, not without_checkpoints)
    say(f"Archive: {path_from_here(file)} ({file.stat().st_size / 1e6:,.1f} MB)")


def restore(file: Annotated[Path, typer.Argument(help="Of `ponderay archive`, `rm` or `--again`.")]) -> None:
    """Bring the replicates of an archive back into their study; nothing that is there is written over.

    Names and checksums in the file are checked first, and nothing in it is executed.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.put_away import restore as bring_back

    name, number, every = bring_back(file, read_settings())
    if number == 0:
        say(f"Of {name} all {every:,} are there already; nothing to do.")
        return
    part = "" if number == every else f" of {every:,}"
    say(f"Of {name} {number:,}{part} replicate{' is' if number == every == 1 else 's are'} back.")


def rename(
    old: SweepName, new: Annotated[str, typer.Argument(metavar="NEW", help="Letters, digits and . _ -")]
) -> None:
    """Give a study another name; a sweep of the new name goes on with it, and the old name is free."""
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.put_away import rename as rename_study

    settings = read_settings()
    name = find_recorded(old, smoke=False).name if ":" in old else old
    rename_study(name, new, settings)
    say(f"{name} is {new} now.")


def agree(question: str, yes: bool) -> None:
    """Raises RefusedError unless the user agrees, on a terminal or by --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RefusedError(f"{question}? Nothing was done: answer in a terminal, or add --yes.")
    if not typer.confirm(f"{question}?"):
        raise RefusedError("Nothing was done.")
