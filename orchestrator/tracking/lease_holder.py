"""Who holds a lease, and whether that process is alive, as far as one look from outside can tell."""

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.machine.processes import is_gone, process_space, start_time

EXPIRES_S: Final = 45.0
RELEASED: Final = "released"
SURE_S: Final = 7200.0
"""Clocks of machines differ; one that is wrong by more than this is none to go by."""

held_here: Final[set[str]] = set()
"""Tokens of the leases that this process holds."""


@dataclass(frozen=True)
class Holder:
    """Of a lease, the last one.

    Attributes:
        who: process and host.
        is_gone: whether it surely holds the lease no more.
        silent_s: since its last heartbeat, as its clock and this machine's say; None where it does not say its time.
        token: tells its claim of the lease from all others; empty where the claim is damaged.
    """

    who: str
    is_gone: bool
    silent_s: float | None
    token: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether it seems to be gone, which a wrong clock may make it, too."""
        return not self.is_gone and self.silent_s is not None and self.silent_s > EXPIRES_S


def new_claim(token: str) -> str:
    """What this process writes to take a lease."""
    return json.dumps({"who": _who(), "place": place(), "token": token, "time_ms": _now_ms()})


def new_beat(number: int) -> str:
    """What the holder notes every few seconds: another text each time, which ends with its time."""
    return f"{number} {_now_ms()}"


def read_claim(text: str) -> dict[str, Any]:
    """Who wrote a claim; of a damaged one only that somebody did."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    known = found if isinstance(found, dict) else {}
    of = known.get("place")
    where = of if isinstance(of, dict) else {}
    return {
        "who": str(known.get("who", "an unknown process")),
        "token": known.get("token"),
        "time_ms": known.get("time_ms"),
        "place": {"space": where.get("space", ""), "pid": where.get("pid", 0), "started": where.get("started", "")},
    }


def find_holder(claims: Mapping[str, str], notes: Mapping[str, str]) -> Holder | None:
    """The last holder of a lease with these entries and notes; None where nobody ever took it."""
    last = max((int(number) for number in claims if number.isdecimal()), default=0)
    if not last:
        return None
    claim, beat = read_claim(claims[str(last)]), notes.get(f"beat.{last}", "")
    time_ms = _time_ms(beat, claim["time_ms"])
    silent_s = None if time_ms is None else (_now_ms() - time_ms) / 1000
    token = str(claim["token"] or "")
    if is_here(claim["place"]):
        return Holder(claim["who"], beat == RELEASED or is_dead(claim), None, token)
    is_old = silent_s is not None and silent_s > SURE_S
    return Holder(claim["who"], beat == RELEASED or is_old, silent_s, token)


def place() -> dict[str, Any]:
    """What tells whether a process lives, to others that see the same processes."""
    return {"space": process_space(), "pid": os.getpid(), "started": start_time(os.getpid())}


def is_here(of: Mapping[str, Any]) -> bool:
    """Whether a holder is, or was, among the processes seen from here."""
    return bool(of["space"]) and of["space"] == process_space()


def is_dead(claim: Mapping[str, Any]) -> bool:
    """Whether the holder surely is gone: it was here, and no longer is; or it is this process and let go of it."""
    of = claim["place"]
    if of == place():
        return claim["token"] not in held_here
    return is_here(of) and is_gone(of["pid"], of["started"])


def _time_ms(beat: str, claimed_ms: object) -> int | None:
    _, _, noted = beat.partition(" ")
    if noted.isdecimal():
        return int(noted)
    return claimed_ms if isinstance(claimed_ms, int) and not beat else None


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
