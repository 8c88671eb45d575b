"""Who holds a lease, and whether that process is alive, as far as one look from outside can tell.

The holder of a sweep's lease stands in a small file beside the study file, so that no store need answer. Where the
store is an SQLite file, that lease is the lock beside it (`FolderLeases`), and the store knows of none.
"""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.environment.settings import Settings
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import make_folder, new_file
from orchestrator.machine.process_lock import Lease as FileLock
from orchestrator.machine.processes import is_gone, process_space, start_time
from orchestrator.tracking.store import sqlite_file, store_kind
from search_spaces.names import path_part
from search_spaces.redaction import redacted_uri
from trainables.config import content_hash

EXPIRES_S: Final = 45.0
RELEASED: Final = "released"
MIRRORED: Final = "mirrored"
"""Note of a driver that has ended: the mark of the store's file, and how many replicates it has."""

SURE_S: Final = 7200.0
"""Clocks of machines differ; one that is wrong by more than this is none to go by."""

held_here: Final[set[str]] = set()
"""Tokens of the leases that this process holds."""


@dataclass(frozen=True)
class Holder:
    """The last holder of a lease.

    Attributes:
        who: process and host.
        is_gone: whether it surely holds the lease no more.
        silent_s: since its last heartbeat, as its clock and this machine's say; None where it does not say its time.
        token: tells its claim of the lease from all others; empty where the claim is damaged.
        is_here: whether it is, or was, among the processes seen from here.
        generation: how many have held the lease, one after another.
    """

    who: str
    is_gone: bool
    silent_s: float | None
    token: str = ""
    is_here: bool = False
    generation: int = 0

    @property
    def is_silent(self) -> bool:
        """Whether it seems to be gone, which a wrong clock may make it, too."""
        return not self.is_gone and self.silent_s is not None and self.silent_s > EXPIRES_S


def new_claim(token: str) -> str:
    """What this process writes to take a lease."""
    who = f"process {os.getpid()} on {socket.gethostname()}"
    return json.dumps({"who": who, "place": place(), "token": token, "time_ms": now_ms()})


def new_beat(number: int) -> str:
    """What the holder notes every few seconds: another text each time, which ends with its time."""
    return f"{number} {now_ms()}"


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
    noted, claimed_ms = beat.partition(" ")[2], claim["time_ms"]
    time_ms = int(noted) if noted.isdecimal() else None
    if not beat and isinstance(claimed_ms, int):  # it has not beaten yet
        time_ms = claimed_ms
    silent_s = None if time_ms is None else (now_ms() - time_ms) / 1000
    token = str(claim["token"] or "")
    if is_here(claim["place"]):
        return Holder(claim["who"], beat == RELEASED or is_dead(claim), None, token, True, last)
    is_old = silent_s is not None and silent_s > SURE_S
    return Holder(claim["who"], beat == RELEASED or is_old, silent_s, token, generation=last)


class HolderFile:
    """The last claim of a lease and what its holder notes; as a `Registry` that keeps one entry.

    Written by whoever has the lease alone, whole or not at all. It is not synced: a loss of power ends the holder, too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """The last claim by its number, and what was noted since; nothing where there is no file, or a damaged one."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return dict(found["claims"]), dict(found["notes"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}, {}

    def entries(self) -> dict[str, str]:
        """The last claim by its number."""
        return self.read()[0]

    def enter(self, name: str, value: str) -> str:
        """Writes a claim in place of the one before, and returns what then stands there."""
        self._write({name: value}, {})
        return self.entries().get(name, "")

    def note(self, name: str, value: str) -> None:
        """Writes a note over the one before."""
        claims, notes = self.read()
        self._write(claims, notes | {name: value})

    def holder(self) -> Holder | None:
        """The last holder; None where nobody ever was."""
        return find_holder(*self.read())

    def _write(self, claims: Mapping[str, str], notes: Mapping[str, str]) -> None:
        make_folder(self.path.parent)
        partial = self.path.with_name(f"{self.path.name}.partial")
        with new_file(partial) as file:
            file.write(json.dumps({"claims": claims, "notes": notes}).encode())
        partial.replace(self.path)


class FolderLeases:
    """Leases of sweeps and prerequisites whose store is an SQLite file: each a lock beside the study file.

    They stand beside the store, so that runs folders that share one exclude one another, and are called after it.

    On a network disk that machines share, the lock holds between them wherever the disk has locks (NFS sends `flock` to
    its server; Lustre without locks is refused). A disk may be mounted so that each machine has locks of its own: there
    a driver that finds no lock still waits for as long as the holder's beat goes on, and of two that begin at the very
    same moment the first one finds at its next beat, or its next line in the study file, that it was deposed.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def registry(self, name: str) -> HolderFile:
        """Who holds the lease, by the name of its registry (`lease sweep NAME`, `lease prerequisite KEY`)."""
        return holder_file(self._settings, name.removeprefix("lease "))

    def lock(self, name: str) -> FileLock:
        """What the holder of the lease has for as long as it lives."""
        return FileLock(holder_file(self._settings, name).path.with_suffix(".lock"))


def holder_file(settings: Settings, name: str) -> HolderFile:
    """Where the holder of the lease `name` stands: `sweep NAME` or `prerequisite KEY`."""
    uri = settings.tracking_uri
    if store_kind(uri) == "sqlite":
        file = sqlite_file(uri)
        file = file.resolve() if file.is_symlink() else file  # all folders that share the store have one lock
    else:  # of each server its own: a number of one says nothing of another
        file = settings.runs / f"server-{content_hash(redacted_uri(uri))[:8]}"
    kind, _, of = name.partition(" ")
    if kind == "sweep":
        return HolderFile(file.parent / "replicates" / path_part(of) / f"{file.stem}.lease")
    return HolderFile(file.parent / "prerequisites" / f"{path_part(of)}.{file.stem}.lease")


def place() -> dict[str, Any]:
    """What tells whether a process lives, to others that see the same processes."""
    return {"space": process_space(), "pid": os.getpid(), "started": start_time(os.getpid())}


def is_here(of: Mapping[str, Any]) -> bool:
    """Whether a holder is, or was, among the processes seen from here."""
    return bool(of["space"]) and of["space"] == process_space()


def is_of_this_boot(of: Mapping[str, Any]) -> bool:
    """Whether a holder ran on this machine since it was started, maybe in another container."""
    return bool(of["space"]) and of["space"].partition(" ")[0] == process_space().partition(" ")[0]


def is_dead(claim: Mapping[str, Any]) -> bool:
    """Whether the holder surely is gone: it was here, and no longer is; or it is this process and let go of it."""
    of = claim["place"]
    if of == place():
        return claim["token"] not in held_here
    return is_here(of) and is_gone(of["pid"], of["started"])
