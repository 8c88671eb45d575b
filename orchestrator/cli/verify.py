"""The command `verify`: whether the tables of a bundle follow from its raw values."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestrator.console.exit_codes import FAILED
from orchestrator.console.printing import Format, OutputFormat, out, to_csv
from orchestrator.console.spinner import spinner

if TYPE_CHECKING:
    from orchestrator.report.bundle.verify import Verification

MAX_ROWS: Final = 50


def verify(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `ponderay report --bundle FILE` wrote.")],
    format: OutputFormat = Format.table,
) -> None:
    """Compute every table of a bundle again from its raw values and list what differs; run nothing in it.

    Exit codes: 0 all equal, 1 something differs, 2 not a bundle. Numbers count as equal up to 1e-9. json is one
    object: bundle, sha256, sweep, is_equal, num_replicates, num_members, num_tables, num_cells, differences, and
    versions that are not installed here. csv lists the differences: member, row, column, written, found.
    """
    from orchestrator.report.bundle.verify import verify as verified

    with spinner(f"Making the tables of {bundle} again"):
        found = verified(bundle)
    show(bundle, found, format)
    if found.differences:
        raise SystemExit(FAILED)


def show(bundle: Path, found: "Verification", format: Format) -> None:
    """Prints what came of verifying `bundle`."""
    if format is Format.json:
        print(json.dumps(_content(bundle, found), indent=2))
    elif format is Format.csv:
        rows = [vars(difference) for difference in found.differences]
        print(to_csv(rows) or "member,row,column,written,found\n", end="")
    else:
        _show_to_people(bundle, found)


def _content(bundle: Path, found: "Verification") -> dict[str, Any]:
    return {
        "bundle": str(bundle),
        "sha256": _sha256(bundle),
        "sweep": found.sweep,
        "is_equal": not found.differences,
        "num_replicates": found.num_replicates,
        "num_members": found.num_members,
        "num_tables": found.num_tables,
        "num_cells": found.num_cells,
        "num_reworded": found.num_reworded,
        "differences": [vars(difference) for difference in found.differences],
        "versions": {name: {"written": a, "installed": b} for name, (a, b) in found.other_versions.items()},
    }


def _show_to_people(bundle: Path, found: "Verification") -> None:
    _say(f"{bundle}: {found.sweep}, {found.num_replicates:,} replicates; sha256 {_sha256(bundle)}")
    for name, (written, installed) in found.other_versions.items():
        _say(f"The bundle was written with {name} {written}; here {installed} is installed.")
    if not found.differences:
        _say(
            f"All {found.num_cells:,} cells of {found.num_tables} tables follow from the raw values, and all "
            f"{found.num_members} members are as the manifest says (page, diffs and provenance by it alone)."
        )
        if found.num_reworded:
            _say(f"{found.num_reworded:,} sentences in tables are worded differently by the code that is installed.")
        return
    _show_differences(found)
    num_tables = len({difference.member for difference in found.differences})
    _say(f"Differences: {len(found.differences):,} in {num_tables} of {found.num_members} members.")
    if "commit" in found.other_versions:
        _say("The code differs; check out the commit named above to see whether the differences remain.")


def _show_differences(found: "Verification") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="What differs")
    for heading in ("member", "row", "column", "in the bundle", "found"):
        table.add_column(heading, overflow="fold")
    for one in found.differences[:MAX_ROWS]:
        table.add_row(*(Text(_harmless(text)) for text in (one.member, one.row, one.column, one.written, one.found)))
    out.print(table)
    if len(found.differences) > MAX_ROWS:
        _say(f"{len(found.differences) - MAX_ROWS:,} more; --format csv lists all.")


def _sha256(bundle: Path) -> str:
    return hashlib.sha256(bundle.read_bytes()).hexdigest()


def _say(text: str) -> None:
    out.print(_harmless(text), soft_wrap=True, markup=False)


def _harmless(text: str) -> str:
    """With ? for what a terminal might obey; anybody may have written the bundle."""
    return "".join(character if character.isprintable() else "?" for character in text)
