"""A report in files: the page, its tables and the bundle."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import Answers
from orchestrator.report.bundle.write import safe_name, to_bytes, write_bundle
from orchestrator.report.page import render
from orchestrator.report.table import Table, to_csv, to_latex, to_markdown
from orchestrator.results.provenance import provenance_in
from search_spaces.known_names import known_names
from trainables.errors import InputError


def save(answers: Answers, folder: Path, bundle: Path | None) -> tuple[Path, ...]:
    """Writes page and tables of answers alone, and the bundle where one is asked for; returns page and tables.

    Raises:
        InputError: if a place cannot be written to.
    """
    provenance = replace(provenance_in(answers.study), configs=answers.question.configs)
    page, found = render(answers, (), provenance), tables(answers)
    try:
        files = write_files(folder, answers.question.sweep, page, found)
        if bundle:
            bundle.parent.mkdir(parents=True, exist_ok=True)
            write_bundle(bundle, answers, found, provenance, page)
    except OSError as error:
        raise InputError(f"{folder} and {bundle or folder} must be places that can be written to: {error}.") from None
    return files


def check_columns(tables: Sequence[Table], chosen: Sequence[str]) -> None:
    """Raises InputError if no table has one of these columns."""
    known = {name for table in tables for column in table.as_printed() for name in column.names}
    if unknown := [name for name in chosen if name not in known]:
        there = known_names(dict.fromkeys(column.names[1] for table in tables for column in table.printed), unknown[0])
        raise InputError(f"{unknown[0]!r} of --columns must be a column of the tables, which are {there}.")


def write_files(
    folder: Path, sweep: str, page: str, tables: Sequence[Table], latex_columns: Sequence[str] = ()
) -> tuple[Path, ...]:
    """Writes `SWEEP.report.html` and each table as Markdown, LaTeX and CSV into `folder`; returns them, the page first.

    Files of an earlier report are replaced. Nobody sets a table without rows, so there is no LaTeX of one.

    Args:
        latex_columns: as `to_latex` takes them.
    """
    contents = {f"{safe_name(sweep)}.report.html": page}
    for table in tables:
        contents[f"{safe_name(table.name)}.md"] = to_markdown(table)
        if table.rows:
            contents[f"{safe_name(table.name)}.tex"] = to_latex(table, latex_columns)
        contents[f"{safe_name(table.name)}.csv"] = to_csv(table)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(to_bytes(content))
    for table in tables:
        if not table.rows:
            (folder / f"{safe_name(table.name)}.tex").unlink(missing_ok=True)
    return tuple(folder / name for name in contents)
