"""The command `export`: a study as a table for other programs."""

import json
import math
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from orchestrator.cli.options import Smoke, SweepName, Where, find_recorded, load_shown
from orchestrator.console.csv_text import csv_text
from orchestrator.console.printing import path_from_here, say
from trainables.errors import InputError

ENDINGS: Final = (".parquet", ".csv", ".json")


def export(
    name: SweepName,
    to: Annotated[Path, typer.Option(metavar="FILE", help="Where to write: FILE.parquet, FILE.csv or FILE.json.")],
    smoke: Smoke = False,
    where: Where = None,
) -> None:
    """Write a study as a table: one row a replicate, with its state, config values (`config.PATH`) and metrics.

    Numbers keep all digits. It is what `Study.to_dataframe()` gives in Python; `Study.from_dataframe` reads it again.
    """
    from orchestrator.environment.places import file_at
    from orchestrator.environment.settings import read_settings

    if to.suffix not in ENDINGS:
        raise InputError(f"--to must end in {', '.join(ENDINGS)}, but got {to.name}.")
    file = file_at(to, "--to")
    settings, sweep = read_settings(), find_recorded(name, smoke)
    study, note = load_shown(sweep, settings, where)
    frame = study.to_dataframe()
    if to.suffix == ".parquet":
        content = frame.to_parquet(index=False)
    else:
        rows = [[_plain(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
        columns = list(frame.columns)
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        text = csv_text([columns, *rows]) if to.suffix == ".csv" else json.dumps(records, indent=1) + "\n"
        content = text.encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(content)
    part.replace(file)
    if note:
        say(note)
    say(f"{len(frame):,} replicates, {len(frame.columns)} columns: {path_from_here(file)}")


def _plain(cell: Any) -> Any:
    """The cell without a pandas type; None where it holds no number, which neither file has a word for."""
    if str(cell) == "<NA>":
        return None
    if hasattr(cell, "item"):
        cell = cell.item()
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
