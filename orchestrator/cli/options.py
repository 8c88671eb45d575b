"""Arguments of several commands (a sweep, its size, `--set PATH=VALUE`, seeds), and the sweep that they mean."""

import copy
import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestrator.console.spinner import spinner
from search_spaces.bounds import MOST_SEEDS
from trainables.errors import DataWarning, InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from orchestrator.environment.settings import Settings
    from orchestrator.report.bundle.join import Part
    from orchestrator.results.question import Question
    from orchestrator.results.study import Study
    from search_spaces.sweep import Sweep

MOST_CHARACTERS: Final = 20_000
"""The longest value of `--set`."""

MOST_DIGITS: Final = 19


def _complete_sweep(incomplete: str) -> list[str]:
    """The sweeps that begin so: those that are shipped, and those of the runs folder."""
    from orchestrator.environment.settings import read_settings
    from search_spaces.find import sweep_functions

    recorded = (folder.name for folder in (read_settings().runs / "replicates").glob("*") if folder.is_dir())
    return [name for name in dict.fromkeys((*recorded, *sweep_functions())) if name.startswith(incomplete)]


SweepName = Annotated[
    str,
    typer.Argument(
        metavar="SWEEP",
        help="A name from `ponderay sweeps`, such as asr.demo, one of your own, such as digits.py:sweep, or a study's.",
        autocompletion=_complete_sweep,
    ),
]
OneSweepName = Annotated[
    str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name; default: all.", autocompletion=_complete_sweep)
]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="Take the small size, which is a separate sweep named SWEEP.smoke.")
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Overrides a config field; may be repeated. Values are JSON or text.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|A:B",
        help="Seeds of each condition: 1 to N; or A for all, and up to B where the question needs more.",
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--condition",
        metavar="NAME",
        help="Only this condition, as `ponderay show` lists them; may be repeated. Default: all.",
    ),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm",
        help="Run what is on the study's front again, or each --condition, under fresh seeds, as a study of its own, "
        "SWEEP.confirm. --seeds N says how many; default: as many as before, at least 5.",
    ),
]
Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        metavar="PATH=VALUE,VALUE...",
        help="Every combination of these values instead of the sweep's conditions; may be repeated. With --condition, "
        "each of those with every combination.",
    ),
]
AcceptCode = Annotated[
    bool,
    typer.Option(
        "--accept-code", help="Continue although earlier results come from another version of the trainable's code."
    ),
]
Anew = Annotated[
    bool,
    typer.Option("--anew", help="Train again here what another machine has begun, and whose checkpoints are not here."),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Train anew what other code or other settings have trained; the old replicates are moved to an archive.",
    ),
]
Retry = Annotated[
    list[str] | None,
    typer.Option(
        "--retry",
        metavar="CONDITION",
        help="Try the failed replicates of a condition again, whatever they failed by; may be repeated.",
    ),
]

Resources = Annotated[
    list[str] | None,
    typer.Option(
        "--resource",
        metavar="NAME=VALUE",
        help="Resources of one replicate; may be repeated: num_workers (N, or A:B elastic), cpus_per_worker, "
        "gpus_per_worker (0.25: four share a card), report_timeout_s.",
    ),
]


def _hours(given: str | float) -> float:
    """No bound of a number keeps nan out."""
    try:
        hours = float(given)
    except ValueError:
        hours = math.nan
    if not hours >= 0:
        raise typer.BadParameter(f"It must be a number of hours from 0, but got {shown(given)}.")
    return hours


MaxDeviceHours = Annotated[
    float,
    typer.Option(
        parser=_hours,
        metavar="HOURS",
        help="Stop safely when the replicates have used GPUs, or CPUs, for this many hours.",
    ),
]


Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="PATH=VALUE",
        help="Shows only conditions whose recorded config has this value, or another with PATH!=VALUE; may be "
        "repeated, and all must hold. PATH may be the end of a config path.",
    ),
]
ReferenceName = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="CONDITION",
        help="The condition that others are compared with; default: the sweep's, or the only one that is this with "
        "other settings.",
    ),
]


def find(
    name: str,
    smoke: bool,
    values: list[str] | None,
    seeds: str | None,
    resources: list[str] | None = None,
    conditions: list[str] | None = None,
    grid: list[str] | None = None,
    confirm: bool = False,
) -> "Sweep":
    """The sweep that the options mean, to be run; to confirm a choice, the one that it is of.

    Raises:
        InputError: if there is none of that name, or a value, number of seeds, resource or condition is wrong.
    """
    from search_spaces.computed import refuse_computed
    from search_spaces.grids import with_grid

    if confirm:
        if grid:
            raise InputError("--confirm runs what is recorded, and --grid what is not; give one of them.")
        if seeds and not _is_number_of_seeds(seeds):
            raise InputError(f"--seeds beside --confirm must be N, from 1 to {MOST_SEEDS:,}, but got {shown(seeds)}.")
        seeds = conditions = None
    if grid:
        sweep = with_grid(find_with(name, smoke, None), _parse_grid(grid), conditions or ())
        sweep, conditions = sweep.with_values(parse(values)), None
    else:
        sweep = find_with(name, smoke, values)
    sweep = sweep.with_resources(_parse_resources(resources))
    sweep = _with_seeds(sweep, seeds) if seeds else sweep
    sweep = sweep.of_conditions(conditions) if conditions else sweep
    refuse_computed(sweep, parse(values))
    return sweep


def find_with(name: str, smoke: bool, values: list[str] | None) -> "Sweep":
    """The sweep with these settings, whatever was computed from them.

    Raises:
        InputError: if there is none of that name, or a value is wrong.
    """
    from orchestrator.tracking.named_sweep import find_named

    return find_named(name, smoke).with_values(parse(values))


def find_recorded(name: str, smoke: bool, values: list[str] | None = None) -> "Sweep":
    """The sweep that has run: with these settings or, where its code is not installed, as its study recorded it.

    Raises:
        InputError: if there is neither.
    """
    from search_spaces import find

    try:
        return find.find_sweep(name, smoke).with_values(parse(values))
    except InputError:
        from orchestrator.environment.settings import read_settings
        from orchestrator.tracking.load import load_sweep
        from search_spaces.size import sized_name

        # Before its code by the place that the study says: what is recorded answers without the import of a model.
        recorded = None if values else load_sweep(sized_name(name, "smoke") if smoke else name, read_settings())
        return recorded or find_with(name, smoke, values)


def load_shown(sweep: "Sweep", settings: "Settings", where: list[str] | None) -> "tuple[Study, str]":
    """All that is recorded under the sweep's name, or the conditions that `where` means; and a sentence about these.

    Raises:
        InputError: if the sweep has not run, or a filter has no such path or leaves nothing.
    """
    from orchestrator.tracking.load import load_study

    return _filtered(load_study(sweep.name, settings), where)


def _filtered(
    study: "Study", where: list[str] | None, also: "Callable[[Study, Study], Collection[str]] | None" = None
) -> "tuple[Study, str]":
    from orchestrator.results.where import matching

    if not where:
        return study, ""
    chosen = set(matching(where, {name: study.configs.get(name, {}) for name in study.conditions}))
    never_hidden = also(study, study.of_conditions(chosen)) if also else ()
    beside = [name for name in dict.fromkeys(never_hidden) if name not in chosen]
    note = f"Shown: {len(chosen):,} of {len(study.conditions):,} conditions, where {' and '.join(where)}"
    return study.of_conditions(chosen.union(beside)), f"{note}{''.join(f', and {name}' for name in beside)}."


def ask(
    sweep: "Sweep",
    settings: "Settings",
    where: list[str] | None,
    reference: str | None,
    parts: "Sequence[Part]" = (),
    also: "Callable[[Study, Study], Collection[str]] | None" = None,
) -> "tuple[Study, Question]":
    """The part of the sweep's study that `where` means, with what ran elsewhere, and what the sweep asks of it.

    With parts, nothing of it needs to have run here.

    Args:
        also: conditions that `where` does not hide, of the whole study and what it shows.

    Raises:
        InputError: as `load_shown`, if `reference` is no condition that is shown, or for filters of parts.
    """
    from orchestrator.results.constraints import constraint_note
    from orchestrator.results.reference import recorded_question
    from orchestrator.results.study import Study
    from orchestrator.results.tied import tied_metrics
    from orchestrator.tracking.load import load_constraints, load_if_run, load_study

    if parts and where:
        raise InputError("--where filters what this store holds; leave it out, or leave --with out.")

    if not parts:
        whole = load_study(sweep.name, settings)
        own, note = _filtered(whole, where, also)
        tied = tied_metrics(whole) if where else ()
        over = constraint_note(own, load_constraints(sweep, settings))
        note = " ".join(filter(None, (note, over)))
        return own, replace(recorded_question(sweep, own, reference), shown_note=note, tied=tied)
    from orchestrator.audit.record import with_audit
    from orchestrator.report.bundle.join import join_questions, join_studies

    own = with_audit(load_if_run(sweep.name, settings) or Study(sweep.name, ()))
    study, note = join_studies(own, parts, [condition.name for condition in sweep.conditions])
    return study, replace(join_questions(recorded_question(sweep, study, reference), own, parts), shown_note=note)


def _parse_resources(resources: list[str] | None) -> dict[str, Any]:
    """Resources by name; `A:B` is the pair of an elastic number."""
    parsed: dict[str, Any] = {}
    for name, value in parse(resources, "--resource NAME=VALUE").items():
        least, colon, most = str(value).partition(":")
        is_pair = bool(colon) and least.isdigit() and most.isdigit()
        parsed[name] = (int(least), int(most)) if is_pair else value
    return parsed


def _with_seeds(sweep: "Sweep", seeds: str) -> "Sweep":
    """The sweep with seeds 1 to N, or with A to B by need."""
    from search_spaces.sweep import Sequential

    least, colon, most = seeds.partition(":")
    if not all(map(_is_number_of_seeds, [least, most] if colon else [least])):
        rule = f"N, or A:B for A to B seeds by need, with numbers from 1 to {MOST_SEEDS:,}"
        raise InputError(f"--seeds must be {rule}, but got {shown(seeds)}.")
    if not colon:
        return replace(sweep, seeds=tuple(range(1, int(least) + 1)), sequential=None)
    sequential = sweep.sequential or Sequential(question="reference" if sweep.reference else "front")
    return replace(sweep, seeds=tuple(range(1, int(most) + 1)), sequential=replace(sequential, minimum=int(least)))


def _is_number_of_seeds(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SEEDS)) and 1 <= int(text) <= MOST_SEEDS


def parse(values: list[str] | None, option: str = "--set PATH=VALUE") -> dict[str, Any]:
    """Config values by path, from `PATH=VALUE` each; a value is JSON or, where it is none, text."""
    parsed = {}
    for item in values or []:
        path, sign, text = item.partition("=")
        if not sign:
            raise InputError(f"{option.replace(' ', ' must be ')}, but got {shown(item)}.")
        parsed[path] = _json_or_text(text, option)
    return parsed


def _parse_grid(grid: list[str]) -> dict[str, list[Any]]:
    """Lists of values by config path; a value that has a comma itself, such as [4,4], is JSON."""
    parsed: dict[str, list[Any]] = {}
    for item in grid:
        path, sign, text = item.partition("=")
        if not sign or path in parsed:
            raise InputError(f"--grid must be PATH=VALUE,VALUE..., once for each path, but got {shown(item)}.")
        values = _json_or_text(f"[{text}]", "--grid")
        is_json = isinstance(values, list)
        parsed[path] = values if is_json else [_json_or_text(part, "--grid") for part in text.split(",")]
    return parsed


def _json_or_text(text: str, option: str) -> Any:
    """A value as `--set` takes it.

    Raises:
        InputError: if it is too long, nested too deeply, or a whole number that no computer counts to.
    """
    if len(text) > MOST_CHARACTERS:
        rule = f"at most {MOST_CHARACTERS:,} characters; put longer values into a file that a sweep reads"
        raise InputError(f"The VALUE of {option} must have {rule}, but has {len(text):,}.")
    try:
        return copy.deepcopy(json.loads(text, parse_int=_whole))  # the copy has a limit of depth in every Python
    except RecursionError:
        raise InputError(f"The VALUE of {option} must not be nested so deeply: {shown(text)}.") from None
    except json.JSONDecodeError:
        return text


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        rule = f"at most {MOST_DIGITS} digits; text of digits is written in quotes"
        raise InputError(f"A whole number must have {rule}, but got {shown(digits)}.")
    return int(digits)


@contextmanager
def storing(what: str, settings: "Settings") -> Iterator[None]:
    """Says what a command puts into MLflow behind its answer, which stands: only a file that fails is an error."""
    try:
        with spinner(f"Storing {what[:1].lower()}{what[1:]} in MLflow"):
            yield
    except InputError as error:
        if settings.tracking_uri.startswith("sqlite:"):
            raise
        warnings.warn(f"{what} are not stored in MLflow. {error}", DataWarning, stacklevel=2)
