"""The command `import`: runs that others have made become a study here."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from orchestrator.console.printing import say
from trainables.errors import InputError, shown

MLFLOW = "mlflow:"


def import_runs(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="runs.csv, .parquet or .json with a row a run; or mlflow:EXPERIMENT.")
    ],
    seed: Annotated[str, typer.Option(metavar="COLUMN", help="The whole number that tells runs of a condition apart.")],
    condition: Annotated[
        str, typer.Option(metavar="COLUMN[,COLUMN...]", help="What makes a condition: a name, or config values.")
    ],
    objective: Annotated[
        list[str],
        typer.Option(metavar="METRIC[:maximize]", help="What fronts and comparisons are of; may be repeated."),
    ],
    name: Annotated[str | None, typer.Option(help="Of the study; default: that of the file or experiment.")] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="The condition that others are compared with.")
    ] = None,
    test: Annotated[
        str, typer.Option(help="welch, or paired_permutation where conditions share their seeds.")
    ] = "welch",
) -> None:
    """Keep runs that others have made as a study, of which `pareto`, `compare`, `report` and all else then answer.

    An export of Weights & Biases, Optuna or MLflow is such a file: their words for states are understood, and a
    condition is named as our own are (`lr=0.1,width=8`). `0.001` and `1e-3` are one value. A second import of the same
    name replaces the first.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.results.foreign_study import TESTS
    from orchestrator.results.study import Study
    from orchestrator.tracking.imported import keep_imported
    from search_spaces.known_names import known_names
    from search_spaces.names import path_part
    from search_spaces.sweep import Objective

    if test not in TESTS:
        raise InputError(f"--test must be {' or '.join(TESTS)}, but got {shown(test)}.")
    objectives = [Objective(*_parsed(text)) for text in objective]
    settings, parts = read_settings(), condition.split(",")
    of = parts if len(parts) > 1 else parts[0]
    asked: dict[str, Any] = {"objectives": objectives, "reference": reference, "test": test}
    if source.startswith(MLFLOW):
        from orchestrator.tracking.foreign_runs import read_foreign_study

        experiment = source.removeprefix(MLFLOW)
        found = read_foreign_study(settings, experiment, seed, of, objectives, reference, test)
        sweep = name or experiment
    else:
        file = Path(source)
        sweep = name or file.stem
        found = Study.from_dataframe(_read(file, parts), sweep=sweep, seed=seed, condition=of, **asked)
    names = keep_imported(replace(found, sweep=path_part(sweep)), settings)
    states = Counter(replicate.state for replicate in found.replicates)
    metrics = dict.fromkeys(metric for replicate in found.replicates for metric in replicate.metrics)
    said = ", ".join(f"{number:,} {state}" for state, number in states.items())
    say(
        f"{path_part(sweep)}: {len(found.replicates):,} runs of {len(found.conditions):,} conditions ({said}); "
        f"metrics: {', '.join(metrics)}."
    )
    if others := [f"{shown(before)} is {now}" for before, now in names.items() if before != now]:
        say(f"Signs that no condition's name may have are changed: {known_names(others, most=6)}.")


def _parsed(text: str) -> tuple[str, Literal["minimize", "maximize"]]:
    metric, _, direction = text.partition(":")
    if direction == "maximize":
        return metric, "maximize"
    if direction in ("", "minimize"):
        return metric, "minimize"
    raise InputError(f"--objective must be METRIC, METRIC:minimize or METRIC:maximize, but got {shown(text)}.")


def _read(file: Path, conditions: Sequence[str]) -> Any:
    """The file's table; numbers keep all digits, and what names a condition is never missing, such as `None`."""
    import pandas  # type: ignore[import-untyped]

    readers = {
        ".csv": pandas.read_csv,
        ".parquet": pandas.read_parquet,
        ".json": lambda path: pandas.read_json(path, precise_float=True),
    }
    if file.suffix not in readers:
        raise InputError(
            f"FILE must end in {', '.join(readers)}, or be {MLFLOW}EXPERIMENT, but got {shown(str(file))}."
        )
    if not file.is_file():
        raise InputError(f"There is no file {shown(str(file))}.")
    try:
        frame = readers[file.suffix](file)
        if file.suffix == ".csv":
            texts = pandas.read_csv(file, dtype=str, keep_default_na=False)
            for name in set(conditions).intersection(frame.columns):
                is_word = frame[name].isna() & texts[name].str.strip().isin(["None", "none", "null"])
                frame[name] = frame[name].astype(object).where(~is_word, texts[name])
        return frame
    except (ValueError, OSError) as error:
        raise InputError(f"{file} cannot be read as a table: {error}.") from None
