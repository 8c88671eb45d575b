"""`ponderay data`: what lies in a folder, and how to get what does not."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.console.exit_codes import WRONG_INPUT
from orchestrator.console.printing import Format, OutputFormat, err, out, print_rows
from trainables.errors import InputError

if TYPE_CHECKING:
    from trainables.asr.data.corpus_check import SetReport

app = typer.Typer(help="Look at data, or download them.", no_args_is_help=True)
NUM_SHOWN = 10


@app.command(epilog="Example: ponderay data check corpora/LibriSpeech")
def check(
    path: Annotated[Path, typer.Argument(help="A folder that is or holds LibriSpeech subsets or TIMIT.")],
    textgrids: Annotated[Path | None, typer.Option(help="Aligner files; default: beside the audio.")] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Read every recording and transcript once: counts, hours, phones, unknown words, broken files, fingerprint.

    The exit code is 2 if a file is broken or missing.
    """
    from rich.progress import track

    from orchestrator.environment.places import absolute, folder_fault
    from trainables.asr.data.corpus_check import examine, find_sets, summarise

    if fault := folder_fault(absolute(path)):
        raise InputError(f"PATH must be a folder that is or holds a corpus, but {fault}.")
    reports = []
    for subset in find_sets(path):
        files = track(
            examine(subset, textgrids), subset.name, console=err, transient=True, disable=not sys.stderr.isatty()
        )
        reports.append(summarise(subset, files))
    is_table = format is Format.table
    print_rows([_row(report, is_table) for report in reports], format, str(path), whole=("set", "utterances"))
    for report in reports if is_table else ():
        _print_more(report)
    if any(report.problems for report in reports):
        raise SystemExit(WRONG_INPUT)


def _row(report: "SetReport", is_table: bool) -> dict[str, Any]:
    row = asdict(report)
    if is_table:
        row["set"] = row.pop("name")
        row["hours"] = f"{report.hours:.2f}"
        row["unknown_words"], row["problems"] = len(report.unknown_words), len(report.problems)
        names = ("set", "num_utterances", "num_speakers", "hours", "num_phones", "unknown_words", "problems")
        return {name.removeprefix("num_"): row[name] for name in names}
    return row | {"unknown_words": dict(report.unknown_words), "problems": list(report.problems)}


def _print_more(report: "SetReport") -> None:
    out.print(f"{report.name}: fingerprint of its content {report.fingerprint}", markup=False)
    if report.unknown_words:
        listed = ", ".join(f"{word} ({count})" for word, count in report.unknown_words[:NUM_SHOWN])
        rest = len(report.unknown_words) - NUM_SHOWN
        out.print(
            f"{report.name}: {report.num_with_unknown_words:,} of {report.num_utterances:,} utterances "
            f"({100 * report.num_with_unknown_words / report.num_utterances:.0f} %) have words that the dictionary "
            "lacks; each such word is the label spn, or with data.phones=dictionary the utterance is left out: "
            f"{listed}{f' and {rest:,} more' if rest > 0 else ''}",
            markup=False,
            soft_wrap=True,
        )
    for problem in report.problems[:NUM_SHOWN]:
        err.print(f"{report.name}: {problem}", markup=False, soft_wrap=True)
    if len(report.problems) > NUM_SHOWN:
        more = len(report.problems) - NUM_SHOWN
        err.print(f"{report.name}: {more:,} more problems; --format json lists all", markup=False, soft_wrap=True)


@app.command(epilog="Example: ponderay data get mini-librispeech --to corpora")
def get(
    corpus: Annotated[str, typer.Argument(help="mini-librispeech (0.5 GB) or librispeech (61 GB).")],
    to: Annotated[
        Path | None, typer.Option(help="The folder to write to; default: PONDERAY_DATA, or the folder `data`.")
    ] = None,
    subset: Annotated[list[str] | None, typer.Option(help="Only this subset; may be repeated.")] = None,
    source: Annotated[str | None, typer.Option(help="A mirror of OpenSLR's resources.")] = None,
) -> None:
    """Download and unpack a corpus; an interrupted download continues, and finished files stay."""
    import os

    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from orchestrator.environment.places import folder_at
    from orchestrator.environment.settings import read_settings
    from trainables.asr.data import download

    read_settings()
    folder = folder_at(to or os.environ.get("PONDERAY_DATA") or "data", "--to")
    for archive in download.choose(corpus, subset or []):
        if download.is_there(archive, folder):
            out.print(f"{archive.subset} is there already.", markup=False)
            continue
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(archive.file_name, total=None)
            for progress in download.download(archive, folder, source or download.SOURCE):
                bar.update(task, completed=progress.done_bytes, total=progress.total_bytes or None)
        out.print(f"{download.unpack(archive, folder)}", markup=False, soft_wrap=True)
    out.print(f"Use it with PONDERAY_DATA={folder.absolute()}", markup=False, soft_wrap=True)
