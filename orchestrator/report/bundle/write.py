"""A bundle: one archive with all that a report was made of, so that others can make its tables again.

Equal content gives equal bytes: members are sorted and carry no time.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Final

from orchestrator.machine.durable_files import written_durably
from orchestrator.report.answers import Answers
from orchestrator.report.bundle.records import provenance_json, question_json, search_json, study_json
from orchestrator.report.table import Table, to_csv
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.trials import Trials
from orchestrator.tracking.checkout import git_commit
from trainables.errors import InputError

FORMAT: Final = 8
MANIFEST: Final = "MANIFEST.json"
SEARCH: Final = "search.json"
MIB: Final = 1 << 20
LIMITS: Final = {
    "study.json": 256 * MIB,
    "question.json": 64 * MIB,
    "provenance.json": 64 * MIB,
    "report.html": 32 * MIB,
    "README.txt": MIB,
    MANIFEST: 4 * MIB,
}
"""The most bytes of each member that a bundle always has."""

SEARCH_LIMIT: Final = 64 * MIB
"""The most bytes of what a search drew, which bundles of other sweeps do not have."""

FOLDER_LIMIT: Final = 256 * MIB
"""The most bytes of a table or a diff."""

TOTAL_LIMIT: Final = 1024 * MIB
MOST_MEMBERS: Final = 1000
MOST_METRICS: Final = 10_000
"""The most metrics of a study; each is a column of a table."""
NAME: Final = re.compile(r"(tables/[A-Za-z0-9_][\w.\-]{0,159}\.csv|diffs/[A-Za-z0-9_][\w.\-]{0,159}\.diff)", re.ASCII)
"""The names of the other members."""

PACKAGES: Final = ("ponderay", "numpy", "scipy", "moocore", "optuna", "scikit-learn")
"""What the numbers in tables depend on."""

_TIME: Final = (1980, 1, 1, 0, 0, 0)
_README: Final = """\
A bundle of Ponderay: the results of one sweep, and everything that its report was made of.

report.html      the report; it opens from disk in any browser
tables/*.csv     its tables
study.json       the raw results: every replicate (a condition with a seed), every metric with all its digits;
                 metrics of an evaluation are named metric@evaluation; "NaN", "Infinity" and "-Infinity" are numbers;
                 configs; the curves of validation by seed; errors by test item, where they were kept; and what
                 `ponderay audit` found
question.json    what the sweep asks: objectives, reference condition, promised test, seeds, configs; and the published
                 numbers and statements that it is held against
search.json      of a search: what Optuna drew for each condition, and what it was told of it
provenance.json  where the results came from: commits, packages, commands, hosts, devices, data, configs as logged
diffs/*.diff     what was changed and not committed when a driver of the sweep started
MANIFEST.json    size and SHA-256 of every other member, and what wrote them

Check it with

    ponderay verify THIS_FILE.zip

which compares every member with MANIFEST.json, makes every table again from study.json, question.json and search.json
with the code that is installed, and says which cells differ. Numbers count as equal up to 1e-9 of their size. The page,
the diffs and provenance.json are compared with MANIFEST.json only. Nothing in the archive is executed.
"""


@dataclass(frozen=True)
class Member:
    """What the manifest says of a member."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a bundle says of itself.

    Attributes:
        written_by: versions of what made the tables, and the commit.
        members: all but the manifest, by name.
    """

    format: int
    sweep: str
    written_by: Mapping[str, str]
    members: Mapping[str, Member]


def write_bundle(
    file: Path,
    answers: Answers,
    tables: Sequence[Table],
    provenance: StudyProvenance,
    page: str,
    trials: Trials | None = None,
) -> None:
    """Writes the bundle of a report into `file`, whole or not at all.

    Args:
        tables: of `answers`, and of `trials` that of importance.
        page: the report as HTML.
        trials: of a search; those of a search that has none are left out.

    Raises:
        InputError: if something is larger than `verify` would read.
    """
    diffs: dict[str, bytes] = {}
    for name, diff in sorted(provenance.diffs.items()):
        member, number = f"diffs/{safe_name(name)}.diff", 1
        while member in diffs:  # two names may be alike when they are safe
            number += 1
            member = f"diffs/{safe_name(name)}.{number}.diff"
        diffs[member] = to_bytes(diff)
    members = {
        "README.txt": _README.encode(),
        "study.json": study_json(answers.study),
        "question.json": question_json(answers.question),
        **({SEARCH: search_json(trials)} if trials and trials.trials else {}),
        "provenance.json": provenance_json(provenance),
        "report.html": to_bytes(page),
        **{table_member(table.name): to_bytes(to_csv(table)) for table in tables},
        **diffs,
    }
    listed = {name: vars(member_of(content)) for name, content in sorted(members.items())}
    about = {"format": FORMAT, "sweep": answers.question.sweep, "written_by": versions(), "members": listed}
    members[MANIFEST] = (json.dumps(about, indent=1) + "\n").encode()
    _check_sizes(members)
    if (num_metrics := len(answers.study.metrics())) > MOST_METRICS:
        raise InputError(
            f"A bundle may have {MOST_METRICS:,} metrics at most, but this one would have {num_metrics:,}; the report "
            "without --bundle has no such limit."
        )
    with written_durably(file) as opened, zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever system writes: equal content gives equal bytes
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


def versions() -> dict[str, str]:
    """What is installed here of that which the numbers in tables depend on."""
    found = {"python": python_version(), "commit": git_commit()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def member_of(content: bytes) -> Member:
    """What the manifest must say of a member with this content."""
    return Member(hashlib.sha256(content).hexdigest(), len(content))


def table_member(table: str) -> str:
    """The member that holds the table of this name."""
    return f"tables/{safe_name(table)}.csv"


def safe_name(name: str) -> str:
    """`name` as that of a file anywhere: letters, digits, `_`, `.` and `-`, at most 160, not beginning with a point."""
    return re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).lstrip(".-")[:160] or "_"


def size_limit(name: str) -> int:
    """The most bytes that the member `name` may have."""
    return SEARCH_LIMIT if name == SEARCH else LIMITS.get(name, FOLDER_LIMIT)


def to_bytes(text: str) -> bytes:
    """UTF-8; what is no text, such as half a pair of surrogates, is escaped."""
    return text.encode(errors="backslashreplace")


def _check_sizes(members: Mapping[str, bytes]) -> None:
    for name, content in members.items():
        if len(content) > size_limit(name):
            raise InputError(
                f"A bundle's {name} must have at most {size_limit(name):,} bytes, but has {len(content):,}; "
                "the report without --bundle has no such limit."
            )
    if (total := sum(map(len, members.values()))) > TOTAL_LIMIT or len(members) > MOST_MEMBERS:
        raise InputError(
            f"A bundle must have at most {MOST_MEMBERS:,} members and {TOTAL_LIMIT:,} bytes, but this one would have "
            f"{len(members):,} and {total:,}; the report without --bundle has no such limit."
        )
