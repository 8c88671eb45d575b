"""What is looked at before a run, and the refusal where it failed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator.console.errors import RefusedError


@dataclass(frozen=True)
class Check:
    """The result of looking at one thing.

    Attributes:
        found: what was seen.
        remedy: what to do; empty where the state is ok.
    """

    name: str
    state: Literal["ok", "warning", "failed"]
    found: str
    remedy: str = ""

    def line(self) -> str:
        """Name, sight and remedy for people, without the state."""
        return f"{self.name}: {self.found.rstrip('.')}. {self.remedy}".rstrip()


def refuse_failed(checks: Iterable[Check]) -> None:
    """Lets nothing pass that has failed.

    Raises:
        RefusedError: naming the first failed check, what it found and the remedy.
    """
    failed = [check for check in checks if check.state == "failed"]
    if failed:
        more = f" ({len(failed) - 1} more failed; `ponderay doctor` lists them.)" if len(failed) > 1 else ""
        raise RefusedError(failed[0].line() + more)
