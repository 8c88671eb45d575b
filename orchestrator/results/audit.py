"""What an audit of a sweep found."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One check, and what it found.

    Attributes:
        check: its name.
        result: "finding" where something moved that must not.
        changed: what was done; empty where nothing was found.
        moved: what moved by that.
        by: how much.
        why: why it was not checked.
    """

    check: str
    result: Literal["ok", "finding", "not checked"] = "ok"
    changed: str = ""
    moved: str = ""
    by: float | None = None
    why: str = ""


def unchecked(check: str, why: str) -> Finding:
    """A check that cannot be made."""
    return Finding(check, "not checked", why=why)


@dataclass(frozen=True)
class Audited:
    """What came of one check of a condition.

    Attributes:
        condition: "base" of a search.
        evaluation: empty where the check is of training or of the data.
        code_version: of the trainable that was tested.
    """

    condition: str
    evaluation: str
    finding: Finding
    code_version: str = ""

    @property
    def sentence(self) -> str:
        """A finding, as people read it."""
        found = self.finding
        where = f"{self.condition}{f', {self.evaluation}' if self.evaluation else ''}: {found.check}"
        by = f", by {found.by:.3g}" if found.by is not None else ""
        return f"{where}. Changed: {found.changed}. Moved: {found.moved}{by}."


def summary_of(audit: Sequence[Audited]) -> str:
    """`83 ok, 0 finding, 5 not checked`."""
    counts = Counter(str(one.finding.result) for one in audit)
    return ", ".join(f"{counts[result]} {result}" for result in ("ok", "finding", "not checked"))
