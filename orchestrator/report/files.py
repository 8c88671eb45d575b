"""The files of a report: a page, and each table for people, for papers and for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orchestrator.report.bundle import safe_name, to_bytes
from orchestrator.report.table import Table, to_csv, to_latex, to_markdown

WRITERS: Final = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


def write_files(folder: Path, sweep: str, page: str, tables: Sequence[Table]) -> tuple[Path, ...]:
    """Writes `SWEEP.report.html` and each table as Markdown, LaTeX and CSV into `folder`; returns them, the page first.

    Files of an earlier report are replaced.
    """
    contents = {f"{safe_name(sweep)}.report.html": page}
    for table in tables:
        contents |= {f"{safe_name(table.name)}.{ending}": write(table) for ending, write in WRITERS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(to_bytes(content))
    return tuple(folder / name for name in contents)
