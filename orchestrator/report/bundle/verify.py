"""Makes the tables of a bundle again from its raw values, and says what differs."""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.records import read_question, read_search, read_study
from orchestrator.report.bundle.write import MOST_METRICS, SEARCH, Manifest, member_of, table_member, versions
from orchestrator.report.importance_table import importance_tables
from orchestrator.report.table import Table, to_csv
from orchestrator.results.audit import Audited
from orchestrator.results.over_items import check_sums
from orchestrator.results.points import points_of
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.results.trials import Trials
from orchestrator.statistics.summary import exact_mean
from trainables.errors import InputError, shortened

TOLERANCE: Final = 1e-9
"""Relative; two processors need not agree on the last digits."""

PROSE: Final = {"claims": ("reason", "note"), "comparisons": ("warnings",)}
"""Columns of sentences, by table: other code may word them differently without another result."""

SINCE: Final = {"claims": 3, "equal_cost": 4, "training": 6, "over_items": 6}
"""The format from which on a bundle has a table, or all that it is made of."""

ONE_FAMILY: Final = 6
"""The format from which on comparisons and statements are one family of Holm's correction."""

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Difference:
    """Something that is not as the bundle says.

    Attributes:
        member: the file in the bundle.
        row: counted from 1, with the text of its first cell; empty where the whole file is meant.
        column: empty where the whole row is meant.
        written: what the bundle says.
        found: what is there, or what the raw values give.
    """

    member: str
    row: str
    column: str
    written: str
    found: str


@dataclass(frozen=True)
class Verification:
    """What came of making a bundle's tables again.

    Attributes:
        num_members: compared with the manifest.
        num_tables: made again; and cells in them.
        num_reworded: cells of sentences that are worded differently; no difference.
        differences: none where everything is as the bundle says.
        unmade: members that are tables which a bundle of its format does not hold all for.
        audit: what the bundle says of an audit; none where there was none.
        other_versions: for what is not installed here in the version that wrote the bundle, that one and ours.
    """

    sweep: str
    num_replicates: int
    num_members: int
    num_tables: int
    num_cells: int
    num_reworded: int
    differences: tuple[Difference, ...]
    unmade: tuple[str, ...]
    audit: tuple[Audited, ...]
    other_versions: Mapping[str, tuple[str, str]]


def verify(file: Path) -> Verification:
    """What differs between the tables in a bundle and those that its raw values give with the installed code.

    The values of a search's trials must follow from its replicates too.

    Bundles of formats 1 and 2 do not hold the claims, or not which numbers are computed; their table of claims is
    compared with the manifest alone. Those of formats up to 3 have no table at equal cost, and those
    of formats up to 5 none of when training ended.

    Raises:
        InputError: if it is no bundle, or its raw values cannot be read.
    """
    manifest, members = read_bundle(file)
    study, question = read_study(members["study.json"]), read_question(members["question.json"])
    check_names(file, manifest, study, question)
    search = read_search(members[SEARCH]) if SEARCH in members else None
    if search:
        check_search(file, search, question)
    found_tables = (
        *tables(answer(study, question, () if manifest.format >= ONE_FAMILY else None)),
        *(search_tables(search) if search else ()),
    )
    made = {table_member(table.name): table for table in found_tables}
    written = {name: content for name, content in members.items() if name.startswith("tables/")}
    unmade = [table_member(f"{question.sweep}.{kind}") for kind, since in SINCE.items() if manifest.format < since]
    for name in unmade:
        made.pop(name, None)
        written.pop(name, None)
    found = [*changed_members(manifest, members), *_differences(file, made, written)]
    found += _search_differences(search, study, question) if search else ()
    prose = {table_member(f"{question.sweep}.{kind}"): columns for kind, columns in PROSE.items()}
    differences = [  # of long texts the beginning, as nobody would read them to the end
        replace(one, row=shortened(one.row), written=shortened(one.written), found=shortened(one.found))
        for one in found
        if one.column not in prose.get(one.member, ())
    ]
    here = versions()
    others = {name: (there, here.get(name, "none")) for name, there in manifest.written_by.items()}
    return Verification(
        sweep=question.sweep,
        num_replicates=len(study.replicates),
        num_members=len(members),
        num_tables=len(made),
        num_cells=sum(len(table.rows) * len(table.columns) for table in made.values()),
        num_reworded=len(found) - len(differences),
        differences=tuple(differences),
        unmade=tuple(name for name in unmade if name in members),
        audit=study.audit,
        other_versions={name: pair for name, pair in others.items() if pair[0] != pair[1]},
    )


def search_tables(search: Trials) -> tuple[Table, ...]:
    """The table of importance, or none where there are too few trials.

    Raises:
        InputError: if a parameter was drawn from what is no distribution, or from another.
    """
    from orchestrator.scheduler.importance import importance

    try:
        return importance_tables(importance(search))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{SEARCH} must hold what Optuna drew, but it cannot be read: {error}.") from None


def _search_differences(search: Trials, study: Study, question: Question) -> Iterator[Difference]:
    """Trials whose values are not the means of their condition's first seeds; more seeds may have come since."""
    means: dict[str, list[list[float]]] = {}
    for point in points_of(study, question.objectives):
        of_first = [[exact_mean(row[:n]) for row in point.values] for n in range(1, len(point.seeds) + 1)]
        means.setdefault(point.condition, []).extend(of_first)
    for i, trial in enumerate(search.trials, 1):
        known = means.get(trial.condition, [])
        pairs = (zip(trial.values, row, strict=True) for row in known)
        if not any(all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in own) for own in pairs):
            there, here = (", ".join(map(repr, row)) for row in (trial.values, known[-1] if known else ()))
            yield Difference(SEARCH, f"{i} ({trial.condition})", "values", there, here or "no replicates")


def check_names(file: Path, manifest: Manifest, study: Study, question: Question) -> None:
    """Checks that all members are of one sweep, and that no name would do things to a terminal.

    Raises:
        InputError: if members name several sweeps, a name is not printable, or a condition has a seed twice.
    """
    if not study.sweep == question.sweep == manifest.sweep:
        raise InputError(
            f"{file} must be about one sweep, but its members name {manifest.sweep!r}, {question.sweep!r} and "
            f"{study.sweep!r}."
        )
    if (num_metrics := len(study.metrics())) > MOST_METRICS:
        raise InputError(f"{file} may have {MOST_METRICS:,} metrics at most, but has {num_metrics:,}.")
    metrics = [objective.metric for objective in question.objectives]
    if not metrics or len(set(metrics)) < len(metrics):
        raise InputError(f"{file} must have objectives, and each once, but has {metrics}.")
    runs = [(replicate.condition, replicate.seed) for replicate in study.replicates]
    if len(set(runs)) < len(runs):
        raise InputError(f"{file} must have each condition under each seed once.")
    audited = (text for one in study.audit for text in (one.condition, one.evaluation, one.sentence, one.finding.why))
    names = (
        *audited,
        *study.conditions,
        *study.metrics(),
        question.sweep,
        question.reference,
        *(objective.metric for objective in question.objectives),
        *(one.metric for named in study.validations.selected.values() for one in named.values()),
    )
    of_items = {text for items in study.items.test_sets for one in items for text in (one.item, one.group)}
    _check_printable(file, (*names, *of_items, *(one.metric for one in study.items.errors)))
    check_sums(study)


def check_search(file: Path, search: Trials, question: Question) -> None:
    """Checks that a search is of the sweep, with names that can be printed.

    Raises:
        InputError: if it is of another sweep or other objectives, or a name is not printable.
    """
    metrics = tuple(objective.metric for objective in question.objectives)
    if search.sweep != question.sweep:
        raise InputError(f"{file} must be about one sweep, but names {question.sweep!r} and {search.sweep!r}.")
    if search.objectives != metrics:
        raise InputError(f"{SEARCH} must have the question's objectives {metrics}, but has {search.objectives}.")
    _check_printable(file, (*search.distributions, *search.notes, *(trial.condition for trial in search.trials)))


def _check_printable(file: Path, names: Iterable[str]) -> None:
    if unprintable := [name for name in names if not name.isprintable()]:
        raise InputError(f"{file} must have names that can be printed, but has {unprintable[0]!r}.")


def changed_members(manifest: Manifest, members: Mapping[str, bytes]) -> Iterator[Difference]:
    """Members that are not as the manifest says."""
    for name, content in sorted(members.items()):
        written, found = manifest.members[name], member_of(content)
        if written != found:
            texts = (f"{member.size:,} bytes, sha256 {member.sha256[:80]}" for member in (written, found))
            yield Difference(name, "", "", *texts)


def _differences(file: Path, made: Mapping[str, Table], written: Mapping[str, bytes]) -> Iterator[Difference]:
    for name in sorted({*written, *made}):
        if name not in made:
            yield Difference(name, "", "", "a table", "no such table")
        elif name not in written:
            yield Difference(name, "", "", "no such table", f"a table of {len(made[name].rows):,} rows")
        else:
            rows = _rows(written[name].decode(errors="replace"))
            most = max(MOST_METRICS, len(made[name].columns))
            if rows and len(rows[0]) > most:
                raise InputError(f"{file} may have {most:,} columns in {name} at most, but has {len(rows[0]):,}.")
            yield from _different_cells(name, made[name], rows)


def _different_cells(name: str, table: Table, written: Rows | None) -> Iterator[Difference]:
    (heading, *found) = _rows(to_csv(table)) or [[]]
    if not written or list(written[0]) != heading:
        yield Difference(name, "", "", ", ".join(written[0]) if written else "no table", ", ".join(heading))
        return
    if len(written) - 1 != len(found):
        yield Difference(name, "", "", f"{len(written) - 1:,} rows", f"{len(found):,} rows")
    for i, (there, here) in enumerate(zip(written[1:], found, strict=False)):
        row = f"{i + 1} ({here[0]})"
        if len(there) != len(here):
            yield Difference(name, row, "", f"{len(there)} cells", f"{len(here)} cells")
            continue
        for column, raw, a, b in zip(heading, table.rows[i], there, here, strict=True):
            # earlier bundles have no apostrophe before texts like formulas, and call what is equal undecided
            is_same = b in (a, f"'{a}") or (a, b) == ("undecided", "equal")
            if not is_same and not (isinstance(raw, float) and _is_close(a, b)):
                yield Difference(name, row, column, a, b)


def _is_close(a: str, b: str) -> bool:
    try:
        return math.isclose(float(a), float(b), rel_tol=TOLERANCE)
    except ValueError:  # an empty cell
        return False


def _rows(text: str) -> Rows | None:
    """The rows of a CSV, the heading first; None where it is none."""
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None
