"""Commands of `ponderay` in this process, and their answers in files."""

import io
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from orchestrator.__main__ import main
from tests.golden import fixed_words

Names = Mapping[str, str]


def write_answers(file: Path, *arguments: str, names: Names = fixed_words.BY_NAME) -> None:
    """The command's json and csv beside `file`, with these endings; where it fails, its exit code and message."""
    for form in ("json", "csv"):
        output, errors, code = io.StringIO(), io.StringIO(), 0
        argv = ["ponderay", *arguments, "--format", form]
        with patch.object(sys, "argv", argv), redirect_stdout(output), redirect_stderr(errors):
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
        if output.getvalue():
            write(file.with_name(f"{file.name}.{form}"), fixed_words.of_output(output.getvalue(), form, names))
        if code:
            lines = [line for line in errors.getvalue().splitlines() if not line.endswith(" ...")]  # progress
            failure = fixed_words.of_text("\n".join([f"exit code {code}", *lines, ""]))
            write(file.with_name(f"{file.name}.{form}.failed"), failure)


def write_tables(folder: Path, report: Path, names: Names = fixed_words.BY_NAME) -> None:
    """The tables of a report."""
    for file in sorted(report.glob("*.csv")):
        write(folder / file.name, fixed_words.of_output(file.read_text(), "csv", names))


def write(file: Path, text: str) -> None:
    """Into a file whose folders are made where they are not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")
