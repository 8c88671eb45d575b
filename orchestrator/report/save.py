"""A report in files, from its answers alone."""

from dataclasses import replace
from pathlib import Path

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import Answers
from orchestrator.report.bundle.write import write_bundle, write_files
from orchestrator.report.page import render
from orchestrator.results.provenance import provenance_in
from trainables.errors import InputError


def save(answers: Answers, folder: Path, bundle: Path | None) -> tuple[Path, ...]:
    """Writes page and tables, and the bundle where one is asked for; returns page and tables.

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
