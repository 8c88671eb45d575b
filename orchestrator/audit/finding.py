"""What came of one check of an audit."""

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
