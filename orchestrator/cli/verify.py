"""The command `verify`: whether the tables of a bundle follow from its raw values, or a sweep bears out its claims."""

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from orchestrator.cli.options import Smoke, ask, find_recorded, find_with
from orchestrator.console.exit_codes import FAILED
from orchestrator.console.printing import Format, OutputFormat, err, harmless, out, print_rows, to_csv
from orchestrator.console.spinner import spinner
from orchestrator.results.audit import summary_of
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.report.bundle.verify import Verification
    from orchestrator.rerun import Retrained

MAX_ROWS: Final = 50
MOST_RERUN: Final = 10_000


def verify(
    what: Annotated[
        str,
        typer.Argument(
            metavar="BUNDLE|SWEEP", help="What `ponderay report --bundle FILE` wrote, or a sweep that has run."
        ),
    ],
    smoke: Smoke = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="Of a sweep: hold the published numbers against each other, by their own printed spreads; it need not "
            "have run.",
        ),
    ] = False,
    rerun: Annotated[
        int | None,
        typer.Option(
            "--rerun",
            metavar="K",
            min=1,
            max=MOST_RERUN,
            help="Of a bundle: draw K of its replicates, train them again here, and compare the digits.",
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="SWEEP",
            help="Beside --rerun: the sweep that the bundle is of, where its name does not say it: FILE.py:NAME.",
        ),
    ] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Compute every table of a bundle again from its raw values, or hold a sweep against what was published of it.

    A bundle is a file, or ends in .zip; nothing in it is run. Of a sweep every claim gets a verdict; json and csv have
    the columns of the report's table of claims. With --published they have a, b, metric; mean, std and n of both, as
    printed; difference (a - b) with low and high (95 %); p of Welch's t-test, p_holm, said. The rest is about bundles.

    With --rerun, what is trained again is kept in the runs folder, in reruns/: the same command goes on there, and a
    larger K adds to it. Where the installed code is not that of the bundle, the code of the commit that it names is
    taken from git. On the same processor, with the same packages, every digit must be equal; elsewhere the objectives
    must lie in the prediction interval of their condition's seeds. 22 equal ones exclude at 90 % that a tenth is wrong.

    Exit codes: 0 all equal, 1 something differs, 2 not a bundle. Numbers count as equal up to 1e-9. json is one
    object: bundle, sha256, sweep, is_equal, num_replicates, num_members, num_tables, num_cells, num_reworded, audit
    (rows of condition, evaluation, finding, code_version), unmade (tables that a bundle of its format lacks the values
    for), differences, and versions (written and installed, where they differ); with --rerun also rerun (a row for each:
    condition, seed, result, metric, written, found, low, high, why, p), lacking and said. csv lists the differences:
    member, row, column, written, found; with --rerun these rows instead.
    """
    if not (what.endswith(".zip") or Path(what).is_file()):
        if rerun is not None or of is not None:
            option = "--sweep" if rerun is None else "--rerun"
            raise InputError(f"{option} is of a bundle, but {what} is none; `ponderay report SWEEP --bundle FILE.zip`.")
        _hold_against_claims(what, smoke, format, published)
        return
    if published or smoke:
        option = "--published" if published else "--smoke"
        raise InputError(f"{option} is of a sweep, but {what} is a bundle; leave it out, or name the sweep.")
    from orchestrator.report.bundle.verify import verify as verified

    bundle = Path(what)
    with spinner(f"Making the tables of {bundle} again"):
        verification = verified(bundle)
    if rerun is None:
        if of is not None:
            raise InputError("--sweep says of what a bundle is for --rerun K; give both, or neither.")
        show(bundle, verification, format)
        if verification.differences:
            raise SystemExit(FAILED)
        return
    if format is Format.table:
        show(bundle, verification, format)
    if not _train_again(bundle, verification, of or verification.sweep, rerun, format) or verification.differences:
        raise SystemExit(FAILED)


def _train_again(bundle: Path, verification: "Verification", name: str, num: int, format: Format) -> bool:
    """Trains, prints what came of it, and returns whether the bundle may be believed."""
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.table import finite
    from orchestrator.rerun import compare, plan_rerun, sentences, train_drawn
    from orchestrator.tracking.named_sweep import find_named
    from search_spaces.size import plain_name, size_of

    settings, sweep = read_settings(), find_named(plain_name(name), size_of(verification.sweep) == "smoke")
    rerun = plan_rerun(bundle, sweep, num, settings)
    minutes = sum(one.duration_s for one in rerun.drawn) / 60
    places = ", ".join(dict.fromkeys(one.device for one in rerun.drawn if one.device))
    code = f"the sources of commit {rerun.commit[:12]}" if rerun.commit else "the installed code"
    err.print(
        f"{len(rerun.drawn)} of {len(rerun.order)} replicates are trained again by {code}, in {rerun.folder}; by the "
        f"bundle they took {minutes:,.1f} minutes in all ({places}), without their prerequisites.",
        markup=False,
        soft_wrap=True,
    )
    rows = compare(rerun, train_drawn(rerun, settings, err))
    said = sentences(rerun, rows)
    records = [{name: finite(value) for name, value in vars(row).items()} for row in rows]
    if format is Format.json:
        content = {"rerun": records, "lacking": rerun.lacking, "said": said}
        print(json.dumps(_content(bundle, verification) | content, indent=2))
    elif format is Format.csv:
        print_rows(records, format, title="")
    else:
        print_rows([_of_people(row) for row in rows], format, "Trained again", whole=("condition", "seed", "result"))
        for why, number in Counter(row.why for row in rows if row.why).items():
            _say(f"{number:,} of them: {why}.")
        for sentence in said:
            _say(sentence)
    return not rerun.lacking and not any(row.result == "differs" for row in rows)


def _of_people(row: "Retrained") -> dict[str, Any]:
    written, found, low, high = ("" if n is None else f"{n:.6g}" for n in (row.written, row.found, row.low, row.high))
    predicted = f"{low} to {high}" if low else ""
    texts = {"in the bundle": written, "here": found, "predicted (95 %)": predicted}
    return {"condition": row.condition, "seed": row.seed, "result": row.result, "metric": row.metric, **texts}


def _hold_against_claims(name: str, smoke: bool, format: Format, published: bool) -> None:
    if published:
        _hold_against_each_other(name, smoke, format)
        return
    from orchestrator.cli import report_summary
    from orchestrator.environment.settings import read_settings
    from orchestrator.pareto.front import front
    from orchestrator.published.judge import judge
    from orchestrator.report.answers import compared
    from orchestrator.report.claim_table import claim_table
    from orchestrator.report.table import for_programs
    from orchestrator.scheduler.kept_checkpoint import with_items
    from orchestrator.tracking.curves import with_validations

    settings, sweep = read_settings(), find_recorded(name, smoke)
    with spinner(f"Reading {sweep.name}"):
        study, question = ask(sweep, settings, None, None)
        study = with_items(with_validations(sweep, study, settings), settings)
        points = front(study, question.objectives)
        verdicts = judge(study, question, [comparison.p for comparison in compared(points, question)])
    table = claim_table(sweep.name, verdicts)
    if format is not Format.table:
        print(for_programs(table, format), end="")
    elif verdicts:
        report_summary.show_verdicts(verdicts)
    else:
        _say(table.notes[0])


def _hold_against_each_other(name: str, smoke: bool, format: Format) -> None:
    from orchestrator.published.printed import printed_pairs
    from orchestrator.report.claim_table import printed_table
    from orchestrator.report.table import for_programs
    from search_spaces.claim_file import claims_of

    sweep = find_with(name, smoke, None)
    pairs = printed_pairs(claims_of(sweep))
    table = printed_table(sweep.name, pairs)
    if format is not Format.table:
        print(for_programs(table, format), end="")
        return
    for pair, texts in zip(pairs, zip(*(column.texts for column in table.as_printed()), strict=True), strict=False):
        a, b, metric, ours, theirs, difference, interval, p, p_holm, _ = texts
        _say(f"{a} against {b}, {metric}: {ours}, {theirs}; {difference} ({interval}), p {p}, by Holm {p_holm}")
        if pair.said:
            _say(f"  The source says: {pair.said}")
    _say(table.notes[0])


def show(bundle: Path, verification: "Verification", format: Format) -> None:
    """Prints what came of verifying `bundle`."""
    if format is Format.json:
        print(json.dumps(_content(bundle, verification), indent=2))
    elif format is Format.csv:
        rows = [vars(difference) for difference in verification.differences]
        print(to_csv(rows) or "member,row,column,written,found\n", end="")
    else:
        _show_to_people(bundle, verification)


def _content(bundle: Path, verification: "Verification") -> dict[str, Any]:
    numbers = ("num_replicates", "num_members", "num_tables", "num_cells", "num_reworded")
    versions = verification.other_versions.items()
    return {
        "bundle": str(bundle),
        "sha256": _sha256(bundle),
        "sweep": verification.sweep,
        "is_equal": not verification.differences,
        **{name: getattr(verification, name) for name in numbers},
        "audit": [asdict(one) for one in verification.audit],
        "unmade": list(verification.unmade),
        "differences": [vars(difference) for difference in verification.differences],
        "versions": {name: {"written": written, "installed": here} for name, (written, here) in versions},
    }


def _show_to_people(bundle: Path, v: "Verification") -> None:
    _say(f"{bundle}: {v.sweep}, {v.num_replicates:,} replicates; sha256 {_sha256(bundle)}")
    for name, (written, installed) in v.other_versions.items():
        _say(f"The bundle was written with {name} {written}; here {installed} is installed.")
    if v.audit:
        _say(f"Audit, as the bundle says: {summary_of(v.audit)}.")
        for one in v.audit:
            if one.finding.result == "finding":
                _say(f"Finding: {one.sentence}")
    if not v.differences:
        by_manifest_alone = ", ".join(["page", "diffs", *v.unmade]) + " and provenance"
        _say(
            f"All {v.num_cells:,} cells of {v.num_tables} tables follow from the raw values, and all "
            f"{v.num_members} members are as the manifest says ({by_manifest_alone} by it alone)."
        )
        if v.num_reworded:
            _say(f"{v.num_reworded:,} sentences in tables are worded differently by the code that is installed.")
        return
    table = Table(title="What differs")
    for heading in ("member", "row", "column", "in the bundle", "found"):
        table.add_column(heading, overflow="fold")
    for difference in v.differences[:MAX_ROWS]:
        table.add_row(*(Text(harmless(text)) for text in vars(difference).values()))
    out.print(table)
    if len(v.differences) > MAX_ROWS:
        _say(f"{len(v.differences) - MAX_ROWS:,} more; --format csv lists all.")
    num_tables = len({difference.member for difference in v.differences})
    _say(f"Differences: {len(v.differences):,} in {num_tables} of {v.num_members} members.")
    if "commit" in v.other_versions:
        _say("The code differs; check out the commit named above to see whether the differences remain.")


def _sha256(bundle: Path) -> str:
    return hashlib.sha256(bundle.read_bytes()).hexdigest()


def _say(text: str) -> None:
    out.print(harmless(text), soft_wrap=True, markup=False)
