"""The command `ponderay`: arguments, printing and exit codes."""

import importlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from orchestrator import data_commands
from orchestrator.analyse import analyse
from orchestrator.printing import Format, OutputFormat, err, out, print_rows
from trainables.errors import DataWarning, InputError

if TYPE_CHECKING:
    from orchestrator.driver import Outcome
    from search_spaces.sweep import Objective, Sweep

DONE, HAS_FAILURES, WRONG_INPUT, REFUSED = 0, 1, 2, 3
EPILOG = "Exit codes: 0 done, 1 the sweep has failures, 2 wrong usage or input, 3 refused before it started."

app = typer.Typer(
    help="Replicated sweeps of models that spend computation where the input is hard.\n\n"
    "Start with `ponderay sweeps`, then `ponderay run asr.demo` and `ponderay pareto asr.demo`.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_commands.app, name="data")
app.command(epilog=EPILOG)(analyse)
_shown_warnings: set[str] = set()


SweepName = Annotated[str, typer.Argument(metavar="SWEEP", help="A name from `ponderay sweeps`, such as asr.demo.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="The small size, a sweep of its own named SWEEP.smoke.")]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Overrides a config field; may be repeated. Values are JSON or text.",
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Replicates per condition: seeds 1 to N.")]
AcceptCode = Annotated[
    bool,
    typer.Option("--accept-code", help="Go on beside results of another version of the trainable's code."),
]


@app.command()
def sweeps(format: OutputFormat = Format.table) -> None:
    """List the shipped sweeps."""
    from search_spaces.find import sweep_functions

    found = [function() for function in sweep_functions().values()]
    rows = [
        {"sweep": s.name, "conditions": _num_conditions(s), "seeds": len(s.seeds), "about": s.description}
        for s in found
    ]
    print_rows(rows, format, title="Sweeps", whole=("sweep",))


@app.command()
def show(name: SweepName, smoke: Smoke = False, values: Values = None, seeds: Seeds = None) -> None:
    """Show what a sweep would run: conditions, seeds, objectives and the whole base config."""
    from trainables.config import flatten

    sweep = _sweep(name, smoke, values, seeds)
    out.print(f"{sweep.name}: {sweep.description}", markup=False)
    out.print(f"trainable   {sweep.trainable}\nseeds       {', '.join(map(str, sweep.seeds))}")
    out.print(f"objectives  {', '.join(f'{o.direction} {o.metric}' for o in sweep.objectives)}")
    out.print(f"reference   {sweep.reference or 'none'}")
    for condition in sweep.conditions:
        changes = ", ".join(f"{path} = {value!r}" for path, value in condition.values.items())
        out.print(f"condition   {condition.name}: {changes or 'the base config'}", markup=False)
    for path, distribution in (sweep.search.space if sweep.search else {}).items():
        out.print(f"search      {path}: {distribution}", markup=False)
    for path, value in flatten(sweep.base).items():
        out.print(f"  {path} = {value}", markup=False)


@app.command(epilog=EPILOG)
def run(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs of a cluster made on this machine; default: all.")
    ] = None,
    accept_code: AcceptCode = False,
) -> None:
    """Run a sweep on Ray: what is done stays done, what was cut off goes on.

    RAY_ADDRESS names a cluster; without it one is made on this machine for as long as the sweep runs.
    """
    from orchestrator.driver import run_on_ray
    from orchestrator.preflight import check_data
    from orchestrator.settings import read_settings

    settings, sweep = read_settings(), _sweep(name, smoke, values, seeds)
    check_data(sweep, settings)
    try:
        outcome = run_on_ray(sweep, settings, out, cpus, accept_code)
    except KeyboardInterrupt:
        _say_how_to_continue()
    _finish(sweep, outcome)


@app.command(epilog=EPILOG)
def train(
    name: SweepName,
    condition: Annotated[str, typer.Option(help="A condition's name, as `ponderay show` lists them.")],
    seed: Annotated[int, typer.Option(min=0)] = 1,
    smoke: Smoke = False,
    values: Values = None,
    accept_code: AcceptCode = False,
) -> None:
    """Run one replicate in this process, without Ray; `run` then finds it done."""
    from orchestrator.driver import run_without_ray
    from orchestrator.preflight import check_data
    from orchestrator.settings import read_settings

    settings, sweep = read_settings(), _sweep(name, smoke, None, None)
    sweep = sweep.only(condition, seed).with_values(_parse(values))
    check_data(sweep, settings)
    try:
        outcome = run_without_ray(sweep, settings, out, accept_code)
    except KeyboardInterrupt:
        _say_how_to_continue()
    for metric, value in sorted(outcome.replicates[0].metrics.items()):
        out.print(f"{metric:32} {value:.6g}")
    _finish(sweep, outcome)


@app.command()
def status(name: SweepName, smoke: Smoke = False, format: OutputFormat = Format.table) -> None:
    """Show every replicate of a sweep: its state, and one line for what failed."""
    from orchestrator.settings import read_settings
    from orchestrator.storage import size_bytes
    from orchestrator.tracking import Tracking

    settings, sweep = read_settings(), _sweep(name, smoke, None, None)
    study = Tracking(settings).read_study(sweep.name)
    rows = [
        {"condition": r.condition, "seed": r.seed, "state": r.state, "error": r.error, "key": r.key}
        for r in study.replicates
    ]
    if format is Format.table:
        rows = [{name: value for name, value in row.items() if name != "key"} for row in rows]
    print_rows(rows, format, title=sweep.name, whole=("condition", "state"))
    if format is Format.table:
        states = [replicate.state for replicate in study.replicates]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        used = size_bytes(settings.runs / "replicates" / sweep.name) / 1e6
        out.print(f"{counts}; {used:.1f} MB of checkpoints and journals")


@app.command()
def pareto(
    name: SweepName,
    smoke: Smoke = False,
    x: Annotated[str | None, typer.Option(help="Cost metric; default: the sweep's second objective.")] = None,
    y: Annotated[str | None, typer.Option(help="Error metric; default: the sweep's first objective.")] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Print the front of error against cost, draw it as HTML and PNG, and store both in MLflow."""
    from orchestrator import pareto as fronts
    from orchestrator import report
    from orchestrator.settings import read_settings
    from orchestrator.tracking import Tracking

    settings, sweep = read_settings(), _sweep(name, smoke, None, None)
    objectives = _objectives(sweep, x, y)
    tracking = Tracking(settings)
    points = fronts.front(tracking.read_study(sweep.name), objectives)
    if not points:
        metrics = " and ".join(objective.metric for objective in objectives)
        raise InputError(f"No complete replicate of {sweep.name} has {metrics}; see `ponderay status {sweep.name}`.")
    files = report.draw_front(sweep.name, points, objectives, settings.figures)
    tracking.store_figures(sweep.name, files)
    if format is Format.json:
        print(report.front_json(sweep.name, points, objectives))
    elif format is Format.csv:
        print(report.to_csv(report.front_rows(points, objectives)), end="")
    else:
        out.print(report.front_table(sweep.name, points, objectives))
        for file in files:
            out.print(f"Figure: {_shown(file)}", soft_wrap=True, markup=False)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535)] = 5000,
    host: Annotated[str, typer.Option(help="Only what you open on purpose leaves this machine.")] = "127.0.0.1",
) -> None:
    """Open MLflow on the runs recorded here; ends with Ctrl-C."""
    from orchestrator.settings import read_settings

    settings = read_settings()
    if settings.tracking_uri.startswith("http"):
        out.print(f"The tracking server is already running: {settings.tracking_uri}", markup=False)
        return
    out.print(f"MLflow: http://{host}:{port}", markup=False)
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    arguments = ["--host", host, "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", settings.tracking_uri, "--artifacts-destination", str(settings.artifacts)]
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", "server", *arguments, *store])


def main() -> None:
    """The entry point: a user's mistake is one line and exit code 2."""
    from orchestrator.refusal import RefusedError

    warnings.showwarning = _show_warning
    try:
        app()
    except InputError as error:
        _fail(str(error), WRONG_INPUT)
    except RefusedError as error:
        _fail(str(error), REFUSED)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Notes about the user's data, each once; what libraries warn of is for developers."""
    if issubclass(category, DataWarning) and str(message) not in _shown_warnings:
        _shown_warnings.add(str(message))
        err.print(f"ponderay: {message}", markup=False, soft_wrap=True)


def _sweep(name: str, smoke: bool, values: list[str] | None, seeds: int | None) -> "Sweep":
    from dataclasses import replace

    from search_spaces.find import find_sweep

    sweep = find_sweep(name, smoke).with_values(_parse(values))
    return replace(sweep, seeds=tuple(range(1, seeds + 1))) if seeds else sweep


def _parse(values: list[str] | None) -> dict[str, Any]:
    parsed = {}
    for item in values or []:
        path, sign, text = item.partition("=")
        if not sign:
            raise InputError(f"--set must be PATH=VALUE, but got {item!r}.")
        try:
            parsed[path] = json.loads(text)
        except json.JSONDecodeError:
            parsed[path] = text
    return parsed


def _objectives(sweep: "Sweep", x: str | None, y: str | None) -> tuple["Objective", ...]:
    from search_spaces.sweep import Objective

    if not x and not y:
        return sweep.objectives[:2]
    family = importlib.import_module(sweep.trainable.rpartition(".")[0] + ".metrics")
    known = {metric.name: metric.direction for metric in family.METRICS}
    chosen = (y or sweep.objectives[0].metric, x or sweep.objectives[1].metric)
    unknown = [name for name in chosen if known.get(name, "none") == "none"]
    if unknown:
        ranked = ", ".join(name for name, direction in known.items() if direction != "none")
        raise InputError(f"{unknown[0]!r} is no metric with a direction; there are {ranked}.")
    return tuple(Objective(name, known[name]) for name in chosen)


def _num_conditions(sweep: "Sweep") -> int:
    return sweep.search.num_trials if sweep.search else len(sweep.conditions)


def _finish(sweep: "Sweep", outcome: "Outcome") -> NoReturn:
    if outcome.input_errors:
        _fail(outcome.input_errors[0], WRONG_INPUT)
    num_complete = sum(replicate.state == "complete" for replicate in outcome.replicates)
    out.print(f"{sweep.name}: {num_complete} complete, {outcome.num_failed} failed", markup=False)
    raise SystemExit(HAS_FAILURES if outcome.num_failed else DONE)


def _say_how_to_continue() -> NoReturn:
    arguments = " ".join(["ponderay", *sys.argv[1:]])
    _fail(f"Stopped. What is done is kept; `{arguments}` goes on from here.", HAS_FAILURES)


def _fail(message: str, code: int) -> NoReturn:
    err.print(f"ponderay: {message}", markup=False, soft_wrap=True)
    raise SystemExit(code)


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
