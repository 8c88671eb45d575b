"""The command `ponderay`: arguments, printing and exit codes."""

import contextlib
import errno
import gc
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
from orchestrator.cli.audit import audit
from orchestrator.cli.check import check
from orchestrator.cli.checkpoint import checkpoint
from orchestrator.cli.clean import clean
from orchestrator.cli.compare import compare
from orchestrator.cli.curve import curve
from orchestrator.cli.doctor import doctor
from orchestrator.cli.export import export
from orchestrator.cli.import_runs import import_runs
from orchestrator.cli.importance import importance
from orchestrator.cli.jobs import jobs, logs, stop, submit
from orchestrator.cli.options import (
    AcceptCode,
    Again,
    Anew,
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
    find_with,
    parse,
)
from orchestrator.cli.pareto import pareto
from orchestrator.cli.plan import plan
from orchestrator.cli.put_away import archive, rename, restore, rm
from orchestrator.cli.repair import repair
from orchestrator.cli.report import report
from orchestrator.cli.serve import serve
from orchestrator.cli.sources import sources
from orchestrator.cli.status import status
from orchestrator.cli.sweeps import show, sweeps
from orchestrator.cli.ui import ui
from orchestrator.cli.verify import verify
from orchestrator.console.exit_codes import DONE, FAILED, REFUSED, WRONG_INPUT
from orchestrator.console.printing import (
    brief_message,
    err,
    forget_odd_width,
    harmless,
    out,
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
        """Makes the context of the command itself, whose own options are read here."""
        with _harmless_errors():
            return super().make_context(*arguments, **named)

    def invoke(self, context: Any) -> Any:
        """Runs a command, whose arguments are read here."""
        with _harmless_errors():
            return super().invoke(context)


@contextlib.contextmanager
def _harmless_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        usage: Any = error
        if hasattr(usage, "format_message"):  # of typer, whose class has no public name
            usage.message = brief_message(harmless(usage.message))
        raise


app = typer.Typer(
    help="Replicated sweeps of models that spend computation where the input is hard.\n\n"
    "Start with `ponderay sweeps`, then `ponderay run asr.demo` and `ponderay pareto asr.demo`.",
    epilog=EXIT_CODES,
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
_shown_warnings: set[str] = set()


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"ponderay {version('ponderay')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command(epilog=example("sweeps --format json"))(sweeps)
app.command(epilog=example("show asr.demo --set training.num_epochs=3"))(show)


@app.command(epilog=example("run asr.demo --seeds 3", EXIT_CODES))
def run(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    conditions: Conditions = None,
    grid: Grid = None,
    confirm: Confirm = False,
    resources: Resources = None,
    cpus: Annotated[
        int | None, typer.Option(min=1, max=MOST_DEVICES, help="CPUs of a cluster made on this machine; default: all.")
    ] = None,
    accept_code: AcceptCode = False,
    anew: Anew = False,
    retry: Retry = None,
    again: Again = False,
    max_device_hours: MaxDeviceHours = math.inf,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all messages of Ray.")] = False,
) -> None:
    """Run a sweep on Ray; complete replicates stay as they are, and interrupted ones continue.

    RAY_ADDRESS names a cluster; without it the sweep starts Ray on this machine for as long as it runs.
    `ponderay plan` shows beforehand what a run would do and cost.
    """
    from orchestrator.cluster.address import refuse_malformed
    from orchestrator.cluster.submission import is_job
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run as run_sweep

    refuse_malformed()
    settings = read_settings()
    if confirm:
        from orchestrator.cli.confirm import find_confirmation  # loads numpy

        sweep = find_confirmation(name, smoke, values, seeds, resources, conditions, grid, settings, accept_code)
    else:
        sweep = find(name, smoke, values, seeds, resources, conditions, grid)
    is_anew = anew or is_job()  # who sends a job has said where the sweep goes on, and nobody types what runs in it
    with _saying_how_to_continue():
        outcome = run_sweep(
            sweep, settings, out, cpus, accept_code, max_device_hours, verbose, retry or (), is_anew, again
        )
    _finish(sweep, outcome)


@app.command(epilog=example("train asr.demo --condition surprisal --seed 2", EXIT_CODES))
def train(
    name: SweepName,
    condition: Annotated[str, typer.Option(help="A condition's name, as `ponderay show` lists them.")],
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED)] = 1,
    smoke: Smoke = False,
    values: Values = None,
    accept_code: AcceptCode = False,
    anew: Anew = False,
    again: Again = False,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_DEVICES, help="Threads of torch; default: those that `run` would use.")
    ] = None,
) -> None:
    """Run one replicate in this process, without Ray; a later `run` finds it complete."""
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run_here
    from orchestrator.worker.template import Template
    from search_spaces.computed import refuse_computed

    settings, sweep = read_settings(), find_with(name, smoke, values).only(condition, seed)
    sweep = sweep.with_resources({"cpus_per_worker": threads}) if threads else sweep
    refuse_computed(sweep, parse(values))
    if values:  # refuses what changes other conditions but not this one
        find_with(name, smoke, None).only(sweep.conditions[0].declared, seed).with_values(parse(values))
    with _saying_how_to_continue(), contextlib.closing(Template()) as template:
        outcome = run_here(sweep, settings, out, accept_code, template=template, is_anew=anew, again=again)
    for metric, value in sorted(outcome.replicates[0].metrics.items()):
        out.print(f"{metric:32} {value:.6g}")
    _finish(sweep, outcome)


app.command(epilog=example("check toy.py:toy", EXIT_CODES))(check)
app.command(epilog=example("audit asr.demo --smoke"))(audit)
app.command(epilog=example("plan asr.demo --seeds 5 --cpus 16", EXIT_CODES))(plan)
app.command(epilog=example("doctor asr.demo", EXIT_CODES))(doctor)
app.command(epilog=example("status asr.demo"))(status)
app.command(epilog=example("pareto asr.demo --x real_time_factor"))(pareto)
app.command(epilog=example("curve lm.step_size --metric valid_perplexity"))(curve)
app.command(epilog=example("compare asr.demo surprisal random"))(compare)
app.command(
    "import", epilog=example("import runs.csv --seed seed --condition lr,width --objective loss --objective macs")
)(import_runs)
app.command(epilog=example("checkpoint asr.demo surprisal 1 --to models"))(checkpoint)
app.command(epilog=example("export asr.demo --to demo.parquet"))(export)
app.command(epilog=example("importance lm.search"))(importance)
app.command(epilog=example("report asr.demo --bundle demo.zip"))(report)
app.command(epilog=example("rm asr.demo --condition random --seed 3"))(rm)
app.command(epilog=example("archive asr.demo --to demo.zip"))(archive)
app.command(epilog=example("restore demo.zip"))(restore)
app.command(epilog=example("rename asr.demo asr.demo.before"))(rename)
app.command(epilog=example("clean --yes"))(clean)
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
    # Ten thousand replicates are a million objects that stay: to look for garbage among them took a fourth of a query.
    if sys.argv[1:2] != ["train"]:  # whose garbage may hold a GPU's memory
        gc.set_threshold(100_000, 20, 20)
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
        for argument in sys.argv[1:]:  # what is no text cannot be recorded, and not even printed
            if any("\ud800" <= character <= "\udfff" for character in argument):
                raise InputError(f"Arguments must be text in UTF-8, but got {shown(argument)}.")
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
    """Raises InputError without a working folder, which has the settings, or a home, which has MLflow's and Ray's."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("The working folder is not there any more; change to one that is.") from None
    try:
        Path.home()
    except RuntimeError:
        rule = f"User {os.geteuid()} has no home folder here, where MLflow and Ray keep settings"
        raise InputError(f"{rule}; set HOME to a folder, such as `HOME=/tmp`.") from None


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Prints notes about the user's data, each once; what libraries warn of is for developers."""
    if issubclass(category, DataWarning) and str(message) not in _shown_warnings:
        _shown_warnings.add(str(message))
        err.print(f"ponderay: {brief_message(str(message))}", markup=False, soft_wrap=True)


def _finish(sweep: "Sweep", outcome: "Outcome") -> NoReturn:
    if outcome.input_errors:
        _fail(outcome.input_errors[0], WRONG_INPUT)
    num_complete = sum(replicate.state == "complete" for replicate in outcome.replicates)
    num_pruned = sum(replicate.state == "pruned" for replicate in outcome.replicates)
    pruned = f", {num_pruned} pruned" if num_pruned else ""
    out.print(f"{sweep.name}: {num_complete} complete, {outcome.num_failed} failed{pruned}", markup=False)
    if outcome.num_unwritten:
        from orchestrator.cluster.submission import this_command

        unwritten = "The tracking store stayed unavailable; the journals keep what it lacks."
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
    err.print(f"ponderay: {brief_message(message)}", markup=False, soft_wrap=True)
    raise SystemExit(code)
