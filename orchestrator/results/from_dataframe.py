"""A study from a table of results: one row a run."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from orchestrator.results.config_columns import PREFIX
from orchestrator.results.foreign_study import STATES, WORDS, Run, parts_of_condition, study_of
from orchestrator.results.study import Replicate, State, Study
from search_spaces.sweep import Objective
from search_spaces.value_lists import is_list
from trainables.errors import InputError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

PLACE: Final = ("condition", "seed", "state", "metrics")
OWN: Final = {field.name: field.type for field in fields(Replicate) if field.name not in PLACE}
"""Fields that have a column in what `Study.to_dataframe` gives, with their types."""

METRIC: Final = "metric "
"""Before the name of a metric that is called as a field."""


def read_dataframe(
    frame: "pandas.DataFrame",
    objectives: Sequence[Objective],
    sweep: str,
    condition: str | Sequence[str],
    seed: str,
    reference: str | None,
    test: str,
    description: str,
) -> Study:
    """The study of a table with one row a run; the arguments are those of `Study.from_dataframe`.

    Raises:
        InputError: if a column is missing or doubled, a column of numbers holds text, or the runs make no study
            (`foreign_study.study_of`).
    """
    if not hasattr(frame, "columns"):
        raise InputError(f"`frame` must be a pandas.DataFrame with one row a run, but got a {type(frame).__name__}.")
    names = parts_of_condition(condition)
    _check_columns(frame, [*names, seed], objectives)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    places = [f"row {label}" for label in (frame.index if frame.index.is_unique else range(len(frame)))]
    own = OWN if OWN.keys() <= columns.keys() else {}  # else a column of such a name is the user's own
    wanted = [objective.metric for objective in objectives]
    state_column = _state_column(columns, {*names, seed})
    metrics: dict[str, list[float]] = {}
    for name in frame.columns:
        metric = str(name)
        if metric in own or metric in (*names, seed, state_column) or (own and metric.startswith(PREFIX)):
            continue
        is_wanted = metric.partition("@")[0] in wanted
        if (numbers := _numbers(columns[metric], metric, places, is_wanted)) is not None:
            plain = " ".join(metric.split())  # headings of spreadsheets have line breaks
            plain = plain.removeprefix(METRIC) if own else plain
            if plain in metrics:
                raise InputError(f"Two columns are {plain!r}, but for spaces; rename one of them.")
            metrics[plain] = numbers
    states = [_state(word) for word in columns.get(state_column, [])]
    for i, place in enumerate(places):
        for name in names:
            if _is_empty(columns[name][i]):
                raise InputError(f"The column {name!r} must name a condition in every row, but {place} is empty.")
    if state_column and (unknown := [i for i, state in enumerate(states) if state is None]):
        i = unknown[0]
        raise InputError(
            f"The column {state_column!r} must hold {', '.join(STATES)}, or what W&B, Optuna or MLflow call these, but "
            f"{places[i]} has {columns[state_column][i]!r}; rename the column if it says something else."
        )
    configs = [name for name in columns if own and name.startswith(PREFIX)]
    runs = [
        Run(
            place=place,
            setting={name: columns[name][i] for name in names},
            seed=columns[seed][i],
            metrics={name: numbers[i] for name, numbers in metrics.items() if not math.isnan(numbers[i])},
            state=states[i] if state_column else None,
            fields={name: _field_value(kind, columns[name][i]) for name, kind in own.items()},
            config={
                name.removeprefix(PREFIX): str(columns[name][i]) for name in configs if not _is_empty(columns[name][i])
            },
        )
        for i, place in enumerate(places)
    ]
    return study_of(runs, sweep, objectives, reference, test, description)


def _state_column(columns: Mapping[str, Sequence[Any]], others: Collection[str]) -> str:
    """The column that says how each run ended, which MLflow calls status; empty where there is none."""
    named = {name.lower(): name for name in columns if name not in others}
    status = named.get("status", "")
    return named.get("state", status if any(map(_state, columns.get(status, []))) else "")


def _state(word: Any) -> State | None:
    return WORDS.get(str(word).rpartition(".")[2].lower())


def _check_columns(frame: "pandas.DataFrame", needed: Sequence[str], objectives: Sequence[Objective]) -> None:
    known = [str(name) for name in frame.columns]
    if doubled := sorted({name for name in known if known.count(name) > 1}):
        raise InputError(f"Each column must have a name of its own, but two are called {doubled[0]!r}.")
    for name in needed:
        if name not in known:
            raise InputError(f"There must be a column {name!r}; the columns are {', '.join(known) or 'none'}.")
    for objective in objectives if is_list(objectives) else [objectives]:
        if not isinstance(objective, Objective):
            raise InputError(f"`objectives` must be Objective(METRIC, DIRECTION) each, but got {objective!r}.")


def _numbers(values: Sequence[Any], name: str, places: Sequence[str], is_wanted: bool) -> list[float] | None:
    """The column as numbers, NaN where a cell is empty; None for a column of text, which is no metric.

    Raises:
        InputError: if it holds numbers and text, or is an objective and holds text.
    """
    numbers = [_number(value) for value in values]
    texts = [i for i, number in enumerate(numbers) if number is None]
    if texts and (is_wanted or any(number is not None and not math.isnan(number) for number in numbers)):
        i = texts[0]
        raise InputError(f"The metric {name!r} must be a number or empty, but {places[i]} has {values[i]!r}.")
    found = [number for number in numbers if number is not None]
    is_metric = not texts and (is_wanted or not all(map(math.isnan, found)))
    return found if is_metric else None


def _number(value: Any) -> float | None:
    """A cell as a number, NaN where it is empty; None for text and for yes and no."""
    if _is_empty(value):
        return math.nan
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # of a whole number or a fraction
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def _is_empty(value: Any) -> bool:
    import pandas

    return bool(pandas.api.types.is_scalar(value) and pandas.isna(value))


def _field_value(kind: Any, value: Any) -> Any:
    """A cell as a value of the type `kind` of its field; an empty one is its zero: files of text keep no empty text."""
    if kind == frozenset[str]:
        names = value.split() if isinstance(value, str) else value  # a file of text has them so
        return frozenset(names) if isinstance(names, frozenset | set | list | tuple) else frozenset()
    return kind() if _is_empty(value) else kind(value)
