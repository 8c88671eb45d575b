"""Studies of runs that Ponderay did not make: a run is one condition under one seed, with numbers."""

import contextlib
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from orchestrator.results.lookup import check_objectives
from orchestrator.results.points import columns_of
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, State, Study
from search_spaces.known_names import known_names
from search_spaces.settings import condition_name
from search_spaces.sweep import Objective
from search_spaces.value_lists import is_list
from trainables.config import content_hash
from trainables.errors import InputError, shown

TESTS: Final = ("welch", "paired_permutation")
STATES: Final = get_args(State)
WORDS: Final[Mapping[str, State]] = {
    **dict.fromkeys(("complete", "completed", "finished", "success", "succeeded"), "complete"),
    **dict.fromkeys(("failed", "fail", "crashed", "error"), "failed"),
    **dict.fromkeys(("stopped", "killed", "preempted", "preempting", "cancelled"), "stopped"),
    "pruned": "pruned",
    **dict.fromkeys(("running", "pending", "scheduled", "waiting", "queued"), "running"),
}
"""How a run has ended, in the words of Weights & Biases, Optuna and MLflow."""

NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Run:
    """A run, as somebody has recorded it.

    Attributes:
        place: where it stands, for messages: `row 3`.
        state: None where nobody said it: a run with a finite value of each objective is complete, another has failed.
        fields: what else is known of the replicate, by the name of its field.
        config: values as text by config path, where more is known than the setting.
    """

    place: str
    setting: Mapping[str, Any]
    seed: Any
    metrics: Mapping[str, float]
    state: State | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)


def study_of(
    runs: Sequence[Run],
    sweep: str,
    objectives: Sequence[Objective],
    reference: str | None,
    test: str,
    description: str,
) -> Study:
    """The study of `runs`, in their order; with objectives it knows its question.

    A setting of one text names the condition, a number or a setting of several is `name=value,name=value`. Numbers of
    one value, `0.001` and `1e-3`, are one setting, in the writing that comes first.

    Raises:
        InputError: if there is no run, a condition has a seed twice, a seed is no whole number, a name is missing or
            cannot be printed, or the reference or the test is none.
    """
    if not runs:
        raise InputError(f"{sweep} must have at least one run, but has none.")
    if not is_list(objectives):
        raise InputError(f"`objectives` must be a list of Objective(METRIC, DIRECTION), but got {objectives!r}.")
    _check_name("sweep", sweep, "the study")
    found: dict[tuple[str, int], str] = {}
    replicates: list[Replicate] = []
    configs: dict[str, dict[str, str]] = {}
    columns = columns_of([one.metric for one in objectives], {name for run in runs for name in run.metrics})
    written: dict[tuple[str, object], Any] = {}
    for given in runs:
        parts = {name: written.setdefault((name, comparable(x)), x) for name, x in given.setting.items()}
        run = replace(given, setting=parts)
        replicate = _replicate(run, columns)
        setting = {name: str(value) for name, value in run.setting.items()}
        if configs.setdefault(replicate.condition, setting) != setting:  # `<10` and `>10` have one name for people
            replicate = replace(replicate, condition=f"{replicate.condition} {content_hash(setting)[:4]}")
            configs[replicate.condition] = setting
        name = (replicate.condition, replicate.seed)
        if name in found:
            raise InputError(
                f"{sweep}: each condition must have a seed once, but {found[name]} and {run.place} are both "
                f"{name[0]!r} with seed {name[1]}; remove one, or let `condition` name what differs too."
            )
        found[name] = run.place
        replicates.append(replicate)
    whole = {
        one.condition: dict(run.config) for run, one in zip(runs, replicates, strict=True) if run.config
    } or configs
    study = Study(sweep, tuple(replicates), configs=whole)
    if not objectives:
        return study
    _check(study, objectives, reference, test)
    seeds = tuple(sorted({replicate.seed for replicate in replicates}))
    shown = whole if all(len(config) > 1 for config in whole.values()) else {}
    kind: Literal["welch", "paired_permutation"] = "paired_permutation" if test == "paired_permutation" else "welch"
    question = Question(sweep, description, tuple(objectives), reference or "", kind, seeds, shown)
    return replace(study, question=question)


def parts_of_condition(condition: str | Sequence[str]) -> list[str]:
    """The names of what makes a condition, in the order in which they stand in its name.

    Raises:
        InputError: if they have no order, as a set.
    """
    if isinstance(condition, str):
        return [condition]
    if not is_list(condition):
        raise InputError(f"`condition` must be a name or a list of names, but got {shown(condition)}.")
    return list(condition)


def comparable(value: Any) -> object:
    """A key that is equal for equal values: the size of a number however it is written, else the text.

    Yes and no are no numbers, and neither is a code that begins with a needless 0.
    """
    text = str(value)
    return Decimal(text) if NUMBER.fullmatch(text.strip()) else text


def _replicate(run: Run, columns: Mapping[str, Sequence[str]]) -> Replicate:
    setting = run.setting
    parts = {  # a number that is written as text counts as the number
        part: float(value.strip()) if isinstance(value, str) and NUMBER.fullmatch(value.strip()) else value
        for part, value in setting.items()
    }
    ((part, only), *more) = parts.items()
    # A number needs what it is a number of, unless its column only says that it is a name.
    is_name = not more and (isinstance(only, str) or part == "condition")
    name = str(setting[part]).strip() if is_name else condition_name(parts)
    _check_name("condition", name, run.place)
    fields = {"key": "", **run.fields}
    state = run.state
    if state is None:
        # The first column of each evaluation without a finite value: one evaluation that has all of them is enough.
        gaps = [
            next((column for column in needed if not math.isfinite(run.metrics.get(column, math.nan))), "")
            for needed in columns.values()
        ]
        missing = gaps[0] if all(gaps) else ""
        state = "failed" if missing else "complete"
        fields.setdefault("error", f"{missing} has no finite value" if missing else "")
    return Replicate(condition=name, seed=_whole(run.seed, run.place), state=state, metrics=run.metrics, **fields)


def _whole(seed: Any, place: str) -> int:
    """The seed as a whole number; text and 3.0 will do."""
    number: int | float = math.nan
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(seed)
    with contextlib.suppress(TypeError, ValueError):  # a float would lose digits of a large one
        number = int(seed) if isinstance(seed, str) else operator.index(seed)
    if isinstance(seed, bool) or not number == number // 1:
        raise InputError(f"A seed must be a whole number, but {place} has {seed!r}.")
    return int(number)


def _check_name(kind: str, name: str, place: str) -> None:
    if not name or not name.isprintable():
        raise InputError(f"The name of a {kind} must be text in one line, but {place} has {name!r}.")


def _check(study: Study, objectives: Sequence[Objective], reference: str | None, test: str) -> None:
    """Raises InputError where the question cannot be asked of the study."""
    check_objectives(study, objectives)
    if not study.metrics():
        raise InputError(f"The objective {objectives[0].metric!r} must be a metric; there are none.")
    if reference is not None and reference not in study.conditions:
        known = known_names(study.conditions, reference)
        raise InputError(f"The reference {reference!r} must be a condition; there are {known}.")
    if test not in TESTS:
        raise InputError(f"`test` must be {' or '.join(TESTS)}, but got {test!r}.")
