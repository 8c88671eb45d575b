"""The command `ponderay`: arguments, printing and exit codes."""

import contextlib
import errno
import math
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from orchestrator.cli import data
from orchestrator.cli.analyse import analyse
from orchestrator.cli.check import check
from orchestrator.cli.compare import compare
from orchestrator.cli.curve import curve
from orchestrator.cli.doctor import doctor
from orchestrator.cli.jobs import jobs, logs, stop, submit
from orchestrator.cli.options import (
    AcceptCode,
    Conditions,
    MaxDeviceHours,
    Resources,
    Retry,
    Seeds,
    Smoke,
    SweepName,
    Values,
    find,
    find_with,
    parse,
)
from orchestrator.cli.pareto import pareto
from orchestrator.cli.plan import plan
from orchestrator.cli.repair import repair
from orchestrator.cli.report import report
from orchestrator.cli.serve import serve
from orchestrator.cli.sources import sources
from orchestrator.cli.status import status
from orchestrator.cli.ui import ui
from orchestrator.cli.verify import verify
from orchestrator.console.exit_codes import DONE, FAILED, REFUSED, WRONG_INPUT
from orchestrator.console.printing import (
    Format,
    OutputFormat,
    err,
    forget_odd_width,
    harmless,
    out,
    print_rows,
    said_briefly,
)
from orchestrator.console.streams import is_cut_off, open_streams
from search_spaces.bounds import MOST_DEVICES, MOST_SEED
from trainables.errors import DataWarning, InputError, shown

if TYPE_CHECKING:
    from orchestrator.results.outcome import Outcome
    from search_spaces.sweep import Sweep

MOST_OF_PATH: Final = 500
"""Characters that a message shows of a path."""

OF_PLACES: Final = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG)
)
"""What a disk or its owner says, which no program mends."""

EXIT_CODES = "Exit codes: 0 done, 1 the sweep has failures, 2 wrong usage or input, 3 refused before it started."


def example(command: str, more: str = "") -> str:
    """The last lines of a command's help."""
    return f"Example: ponderay {command}" + (f"\n\n{more}" if more else "")


class Commands(TyperGroup):
    """All commands; what typer says of an argument is as harmless and as brief as what we say."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Of the command itself, whose own options are read here."""
        with _harmless_errors():
            return super().make_context(*arguments, **named)

    def invoke(self, context: Any) -> Any:
        """One of them, whose arguments are read here."""
        with _harmless_errors():
            return super().invoke(context)


@contextlib.contextmanager
def _harmless_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        told: Any = error
        if hasattr(told, "format_message"):  # of typer, whose class has no public name
            told.message = said_briefly(harmless(told.message))
        raise


app = typer.Typer(
    help="Replicated sweeps of models that spend computation where the input is hard.\n\n"
    "Start with `ponderay sweeps`, then `ponderay run asr.demo` and `ponderay pareto asr.demo`.",
    epilog=EXIT_CODES,
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
_shown_warnings: set[str] = set()


@app.command(epilog=example("sweeps --format json"))
def sweeps(
    place: Annotated[
        str | None,
        typer.Argument(metavar="[PLACE]", help="A file, an import path or a family, such as asr."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every sweep instead of families.")] = False,
    format: OutputFormat = Format.table,
) -> None:
    """List the families of shipped sweeps and what other packages bring; or all sweeps of a place.

    json and csv always list every sweep.
    """
    from search_spaces.find import installed_sweeps, sweeps_at

    if format is Format.table and not (place or every):
        _show_families()
        return
    found = sweeps_at(place) if place else installed_sweeps()
    rows = [_listed(one.name, one.sweep) for one in found]
    if not rows:
        rule = "a ponderay.Sweep, or a function that says `-> Sweep`"
        raise InputError(f"{place} declares no sweep: nothing at the top of the module is {rule}.")
    print_rows(rows, format, title="Sweeps", whole=("sweep",))


def _show_families() -> None:
    from search_spaces.find import families, others

    rows = [{"family": f.name, "sweeps": f.num_sweeps, "first try": f.first, "about": f.about} for f in families()]
    rows += [
        {"family": one.name, "sweeps": "", "first try": "", "about": _listed(one.name, None)["about"]}
        for one in others()
    ]
    print_rows(rows, Format.table, title="Sweeps", whole=("family", "first try"))
    out.print(
        "`ponderay sweeps FAMILY` lists the sweeps of a family, `ponderay sweeps --all` lists all.", soft_wrap=True
    )


def _listed(name: str, sweep: "Sweep | None") -> dict[str, Any]:
    if sweep is None:
        about = f"of another package; `ponderay sweeps {name}` says more"
        return {"sweep": name, "conditions": None, "seeds": None, "about": about}
    about = sweep.description
    return {"sweep": name, "conditions": sweep.num_conditions(), "seeds": len(sweep.seeds), "about": about}


@app.command(epilog=example("show asr.demo --set training.num_epochs=3"))
def show(name: SweepName, smoke: Smoke = False, values: Values = None, seeds: Seeds = None) -> None:
    """Show what a sweep would run: conditions, seeds, objectives, the whole base config; and what each metric means."""
    from orchestrator.worker.trainable import load
    from search_spaces.redaction import redacted_leaf, redacted_text
    from trainables.config import flatten

    sweep = find(name, smoke, values, seeds)
    out.print(f"{sweep.name}: {sweep.description}", markup=False)
    out.print(f"trainable   {sweep.trainable}\nseeds       {', '.join(map(str, sweep.seeds))}")
    out.print(f"objectives  {', '.join(f'{o.direction} {o.metric}' for o in sweep.objectives)}")
    out.print(f"reference   {sweep.reference or 'none'}")
    if sweep.sequential:
        out.print(f"by need     {sweep.sequential}", markup=False)
    for condition in sweep.conditions:
        changes = ", ".join(f"{path} = {redacted_text(repr(value))}" for path, value in condition.values.items())
        out.print(f"condition   {condition.name}: {changes or 'the base config'}", markup=False)
    if sweep.is_pruned:
        out.print("pruned      a condition gets its other seeds only if nothing dominates its first")
    for path, distribution in (sweep.search.space if sweep.search else {}).items():
        out.print(f"search      {path}: {distribution}", markup=False)
    for path, value in flatten(sweep.base).items():
        out.print(f"  {path} = {redacted_leaf(path, value)}", markup=False)
    for one in load(sweep.trainable).metrics:
        kind = ", ".join(word for word in (one.unit, one.direction) if word not in ("", "none"))
        out.print(f"metric      {one.name}{f' ({kind})' if kind else ''}: {one.definition}", markup=False)


@app.command(epilog=example("run asr.demo --seeds 3", EXIT_CODES))
def run(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    conditions: Conditions = None,
    resources: Resources = None,
    cpus: Annotated[
        int | None, typer.Option(min=1, max=MOST_DEVICES, help="CPUs of a cluster made on this machine; default: all.")
    ] = None,
    accept_code: AcceptCode = False,
    retry: Retry = None,
    max_device_hours: MaxDeviceHours = math.inf,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all messages of Ray.")] = False,
) -> None:
    """Run a sweep on Ray; complete replicates stay as they are, and interrupted ones continue.

    RAY_ADDRESS names a cluster; without it the sweep starts Ray on this machine for as long as it runs.
    `ponderay plan` shows beforehand what a run would do and cost.
    """
    from orchestrator.cluster.address import refuse_malformed
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run as run_sweep

    refuse_malformed()
    settings, sweep = read_settings(), find(name, smoke, values, seeds, resources, conditions)
    with _saying_how_to_continue():
        outcome = run_sweep(sweep, settings, out, cpus, accept_code, max_device_hours, verbose, retry or ())
    _finish(sweep, outcome)


@app.command(epilog=example("train asr.demo --condition surprisal --seed 2", EXIT_CODES))
def train(
    name: SweepName,
    condition: Annotated[str, typer.Option(help="A condition's name, as `ponderay show` lists them.")],
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED)] = 1,
    smoke: Smoke = False,
    values: Values = None,
    accept_code: AcceptCode = False,
) -> None:
    """Run one replicate in this process, without Ray; a later `run` finds it complete."""
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run_here
    from orchestrator.worker.template import Template
    from search_spaces.sweep import refuse_computed

    settings, sweep = read_settings(), find_with(name, smoke, values).only(condition, seed)
    refuse_computed(sweep, parse(values))
    if values:  # refuses what changes other conditions but not this one
        find_with(name, smoke, None).only(sweep.conditions[0].declared, seed).with_values(parse(values))
    with _saying_how_to_continue(), contextlib.closing(Template()) as template:
        outcome = run_here(sweep, settings, out, accept_code, template=template)
    for metric, value in sorted(outcome.replicates[0].metrics.items()):
        out.print(f"{metric:32} {value:.6g}")
    _finish(sweep, outcome)


app.command(epilog=example("check toy.py:toy", EXIT_CODES))(check)
app.command(epilog=example("plan asr.demo --seeds 5 --cpus 16", EXIT_CODES))(plan)
app.command(epilog=example("doctor asr.demo", EXIT_CODES))(doctor)
app.command(epilog=example("status asr.demo"))(status)
app.command(epilog=example("pareto asr.demo --x real_time_factor"))(pareto)
app.command(epilog=example("curve lm.step_size --metric valid_perplexity"))(curve)
app.command(epilog=example("compare asr.demo surprisal random"))(compare)
app.command(epilog=example("report asr.demo --bundle demo.zip"))(report)
app.command(epilog=example("repair"))(repair)
app.command(epilog=example("verify demo.zip"))(verify)
app.command(epilog=example("sources 'Table 5.1'"))(sources)
app.command(epilog=example("analyse lm.laptop CONDITION theorems", EXIT_CODES))(analyse)
app.command(epilog=example("ui --port 5001"))(ui)
app.command(epilog=example("serve --background"))(serve)
app.command(epilog=example("submit asr.demo --env PONDERAY_TRACKING_URI=URL", EXIT_CODES))(submit)
app.command(epilog=example("jobs"))(jobs)
app.command(epilog=example("logs asr.demo --follow"))(logs)
app.command(epilog=example("stop asr.demo"))(stop)


def _remedy(name: str) -> str:
    """What to do about a file or folder of this name that cannot be used: of the runs, where else they can be kept."""
    from orchestrator.environment.settings import read_settings

    if not name:
        return " The disk must be writable and have room."
    with contextlib.suppress(InputError, OSError):
        if not Path(name).absolute().is_relative_to(read_settings().runs):
            return ""
    return " Runs are kept in PONDERAY_RUNS, or `runs` in ponderay.toml, which must be writable and have room."


def main() -> None:
    """The entry point: a user's mistake is one line and exit code 2, and an answer that is cut off is none."""
    try:
        _answer()
    except SystemExit as ended:
        if is_cut_off() and not ended.code:
            raise SystemExit(FAILED) from None
        raise


def _answer() -> None:
    """The command with these arguments; ends by SystemExit."""
    from orchestrator.console.errors import RefusedError
    from orchestrator.journal.bucket import UnavailableError
    from orchestrator.tracking.damage import is_damage
    from orchestrator.tracking.store import reason_of

    warnings.showwarning = _show_warning
    forget_odd_width()  # typer makes consoles of its own
    try:
        open_streams()
        _check_place()
        _check_arguments()
        app()
    except InputError as error:
        _fail(str(error), WRONG_INPUT)
    except (RefusedError, UnavailableError) as error:
        _fail(str(error), REFUSED)
    except OSError as error:
        if error.errno not in OF_PLACES:
            raise
        name = str(error.filename or "")
        where = f"{name if len(name) <= MOST_OF_PATH else shown(name)}: " if name else ""
        _fail(f"{where}{error.strerror}.{_remedy(name)}", WRONG_INPUT)
    except Exception as error:
        if not is_damage(error):
            raise
        _fail(
            f"A database is damaged ({reason_of(error, '')}); `ponderay repair` says which, and what to do.",
            WRONG_INPUT,
        )


def _check_place() -> None:
    """Settings are looked for in the working folder, and MLflow and Ray look for theirs in the user's home."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("The working folder is not there any more; change to one that is.") from None
    try:
        Path.home()
    except RuntimeError:
        rule = f"User {os.geteuid()} has no home folder here, where MLflow and Ray keep settings"
        raise InputError(f"{rule}; set HOME to a folder, such as `HOME=/tmp`.") from None


def _check_arguments() -> None:
    """What is no text cannot be recorded, and not even printed."""
    for argument in sys.argv[1:]:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise InputError(f"Arguments must be text in UTF-8, but got {shown(argument)}.")


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Notes about the user's data, each once; what libraries warn of is for developers."""
    if issubclass(category, DataWarning) and str(message) not in _shown_warnings:
        _shown_warnings.add(str(message))
        err.print(f"ponderay: {said_briefly(str(message))}", markup=False, soft_wrap=True)


def _finish(sweep: "Sweep", outcome: "Outcome") -> NoReturn:
    if outcome.input_errors:
        _fail(outcome.input_errors[0], WRONG_INPUT)
    num_complete = sum(replicate.state == "complete" for replicate in outcome.replicates)
    out.print(f"{sweep.name}: {num_complete} complete, {outcome.num_failed} failed", markup=False)
    if outcome.num_unwritten:
        unwritten = "The tracking store stayed unavailable; the journals keep what it lacks."
        from orchestrator.cluster.submission import this_command

        _fail(f"{unwritten} `{this_command()}` writes it when the store is available again.", FAILED)
    raise SystemExit(FAILED if outcome.num_failed else DONE)


@contextlib.contextmanager
def _saying_how_to_continue() -> Iterator[None]:
    """A block that runs a sweep: one that is stopped goes on by the same command."""
    from orchestrator.scheduler.stop_request import StoppedError

    try:
        yield
    except (StoppedError, KeyboardInterrupt) as stopped:
        from orchestrator.cluster.submission import this_command

        reason = str(stopped) if isinstance(stopped, StoppedError) else "Stopped."
        _fail(f"{reason} Finished work is kept; `{this_command()}` continues from here.", FAILED)


def _fail(message: str, code: int) -> NoReturn:
    err.print(f"ponderay: {said_briefly(message)}", markup=False, soft_wrap=True)
    raise SystemExit(code)
