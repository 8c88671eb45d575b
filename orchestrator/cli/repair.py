"""The command `ponderay repair`: moves damaged databases away, and says what brings their contents back."""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.console.errors import RefusedError
from orchestrator.console.printing import say
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings

Yes = Annotated[bool, typer.Option("--yes", help="Move what is damaged without asking.")]
OF_TRACKING = (
    "Nothing is lost but what was written into MLflow by hand, stored reports and figures, and uncommitted changes. "
    "The commands below write all results anew from the journals, without training."
)
OF_SEARCH = (
    "The search draws again from its first condition. What is drawn without a look at results (random, qmc, grid, "
    "the first ten of tpe) comes again, and is complete at once by its journal; what tpe, gp and nsga2 draw after "
    "that may differ, and is trained."
)


def repair(yes: Yes = False) -> None:
    """Look for damage in the databases of MLflow and Optuna, and move away what is damaged, once you agree.

    Nothing is deleted. Stop what runs before. The commands that it prints restore the results.
    """
    from orchestrator.checks.at_work import recorded_here
    from orchestrator.environment.settings import read_settings
    from search_spaces.size import arguments

    settings = read_settings()
    is_tracking_moved = _look_at("The tracking store", "tracking_uri", settings, yes)
    is_search_moved = _look_at("Optuna's database", "search_uri", settings, yes)
    if is_search_moved:
        say(OF_SEARCH)
    if is_tracking_moved:
        say(OF_TRACKING)
    if is_tracking_moved or is_search_moved:
        say("Run these, with the options that the sweep ran with, and FILE.py:NAME for one from a file:")
        for name in recorded_here(settings):
            say(f"  ponderay run {shlex.join(arguments(name))}")


def _look_at(what: str, setting: str, settings: "Settings", yes: bool) -> bool:
    """Whether a database was damaged, and is moved away."""
    from orchestrator.checks.at_work import at_work
    from orchestrator.tracking.damage import fault, is_database, move_away
    from orchestrator.tracking.store import sqlite_file, store_kind
    from search_spaces.redaction import redacted_uri

    uri = settings.tracking_uri if setting == "tracking_uri" else settings.search_store
    if uri == "sqlite:///":
        raise InputError(f"{_variable(setting)} must name a file behind sqlite:///.")
    if store_kind(uri) != "sqlite":
        say(
            f"{what} {redacted_uri(uri)} is on a server, where its backup restores it. Without one, name an empty "
            "store: `ponderay run SWEEP` writes the results there from the journals."
        )
        return False
    file = sqlite_file(uri)
    reason = fault(file)
    if not reason:
        say(f"{what} {file} {'is whole' if file.exists() else 'is not there, and the next run makes it'}.")
        return False
    if file not in (settings.runs / "mlflow.db", settings.runs / "optuna.db") and not is_database(file):
        # a setting that points by mistake may name what is the user's own
        raise InputError(
            f"{_variable(setting)} names {file}, which is no database of SQLite; `ponderay repair` moves only what "
            f"begins as one. Name another file, or move {file.name} away yourself if it was the database."
        )
    say(f"{what} {file} is damaged: {reason}.")
    for sweep, holder in at_work(settings):  # its driver would go on writing into the file that was moved
        raise RefusedError(f"{sweep} is at work ({holder}): stop it, then run `ponderay repair` again.")
    if not yes:
        if not sys.stdin.isatty():
            raise RefusedError(
                f"{file} is moved only if you agree: run `ponderay repair` in a terminal, or with --yes."
            )
        if not typer.confirm("Move it away, so that the next run makes a new one?"):
            raise RefusedError(f"{file} stays as it is.")
    say(f"It is now {move_away(file)}.")
    return True


def _variable(setting: str) -> str:
    return f"`{setting}` (PONDERAY_{setting.upper()})"
