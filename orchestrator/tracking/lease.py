"""Leases: at most one driver runs a sweep, or makes a prerequisite, on whatever machine.

They are kept in the tracking store where that is a server, and then the holder of a sweep stands beside the study file
too; else in the runs folder (`lease_holder.FolderLeases`), where a lock says that a holder lives.

A lease has generations. Taking it means to claim the next generation, which the store lets one process do. Its holder
notes a heartbeat every few seconds; a lease whose heartbeat stands still for a while, by the clock of whoever looks on,
has expired, so that clocks need not agree. A released or expired generation stays where it is: numbers only grow.
"""

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.environment.settings import Settings
from orchestrator.machine.waiting import wait_until
from orchestrator.tracking.lease_holder import (
    EXPIRES_S,
    RELEASED,
    FolderLeases,
    HolderFile,
    held_here,
    holder_file,
    is_dead,
    is_here,
    is_of_this_boot,
    new_beat,
    new_claim,
    read_claim,
)
from search_spaces.redaction import redacted_text

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking

BEAT_S: Final = 5.0
TAKEN: Final = "Another driver has taken it"
POLL_S: Final = 1.0
"""How long an answer of the store is good for, when the same lease is asked for again and again."""


class LeaseRecord(Protocol):
    """Who has held a lease, by number, and the beats of the last one: a `Registry`, or a `HolderFile`."""

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """Claims by number, and notes by name."""
        ...

    def enter(self, name: str, value: str) -> str:
        """The claim that stands under a number: `value`, or another process's."""
        ...

    def note(self, name: str, value: str) -> None:
        """Writes a note over the one before."""
        ...


class Leases(Protocol):
    """Where leases are kept: `Tracking`, `ServerLeases` or `FolderLeases`."""

    def registry(self, name: str) -> LeaseRecord:
        """The record of a lease."""
        ...


@dataclass(frozen=True)
class ServerLeases:
    """Leases of a tracking server; the holder of a sweep's stands beside the study file, too."""

    tracking: "Tracking"
    settings: Settings

    def registry(self, name: str) -> LeaseRecord:
        """The record of a lease."""
        kept = self.tracking.registry(name)
        is_sweep = name.startswith("lease sweep ")
        return RecordWithCopy(kept, holder_file(self.settings, name.removeprefix("lease "))) if is_sweep else kept


@dataclass(frozen=True)
class RecordWithCopy:
    """The record of a lease on a server, of which this machine keeps what its own drivers did.

    A server that was restored from a backup lacks the last holders: where this machine knows of a later one, numbers go
    on behind that.
    """

    kept: LeaseRecord
    copy: HolderFile

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """The server's claims and notes, with what this machine has of later ones."""
        (claims, notes), (own, beats) = self.kept.read(), self.copy.read()
        return own | claims, beats | notes

    def enter(self, name: str, value: str) -> str:
        """The claim that stands under a number on the server."""
        entered = self.kept.enter(name, value)
        if entered == value:
            with contextlib.suppress(OSError):
                self.copy.enter(name, value)
        return entered

    def note(self, name: str, value: str) -> None:
        """Writes a note over the one before; the server's counts."""
        self.kept.note(name, value)
        with contextlib.suppress(OSError):
            self.copy.note(name, value)


class StoreLease:
    """The lease called `name`.

    Attributes:
        token: tells this claim of the lease from all others.
        previous: the token of the claim before it; empty where it is the first.
    """

    def __init__(self, leases: Leases, name: str, expires_s: float = EXPIRES_S, poll_s: float = POLL_S) -> None:
        self._leases, self.name = leases, name
        self._lock = leases.lock(f"lease {name}") if isinstance(leases, FolderLeases) else None
        self._expires_s, self._poll_s = expires_s, poll_s
        self._mine: int | None = None
        self.token, self.previous = uuid.uuid4().hex, ""
        self._seen: tuple[object, float] = (None, 0.0)
        self._asked_s = -poll_s
        self._answered_s = 0.0
        self._beats = 0
        self._beaten_s = -math.inf
        self._is_lost = False
        self._holder = ""
        self._is_alive = False
        self._noting = threading.Lock()

    def acquire(self) -> bool:
        """Takes the lease without waiting; False where another process holds it.

        An expired one is noticed by asking again.
        """
        if self._mine is not None:
            return True
        if time.monotonic() - self._asked_s < self._poll_s:
            return False
        self._asked_s, began_s = time.monotonic(), _clock_s()
        if self._lock and not self._lock.acquire():
            self._holder, self._is_alive = self._lock.holder(), True
            return False
        registry = self._leases.registry(f"lease {self.name}")
        claims, notes = registry.read()
        last = max((int(number) for number in claims), default=0)
        claim = new_claim(self.token)
        if (last and not self._is_free(last, claims, notes)) or registry.enter(str(last + 1), claim) != claim:
            self._unlock()
            return False
        self._mine, self._beaten_s = last + 1, began_s
        self.previous = str(read_claim(claims[str(last)])["token"] or "") if last else ""
        held_here.add(self.token)
        return True

    def acquire_or_wait(self) -> bool:
        """Takes the lease, waiting until it is seen whether its holder is alive; False where it is."""
        wait_until(lambda: self.acquire() or self._is_alive, self._expires_s + 2 * self._poll_s, self._poll_s / 4)
        return self.is_held()

    def holder(self) -> str:
        """Who held the lease when it was last asked for; empty where nobody is known to."""
        return self._holder

    def is_held(self) -> bool:
        """Whether this process holds it, as far as it knows."""
        return self._mine is not None

    def is_lost(self) -> bool:
        """Whether a heartbeat has found that another process took it."""
        return self._is_lost

    def is_sure(self) -> bool:
        """Whether the last heartbeat is too young for others to take it."""
        return _clock_s() - self._beaten_s < self._expires_s / 2

    def heartbeat(self) -> bool:
        """Tells the others that this process is alive; False where one of them has taken the lease meanwhile."""
        with self._noting:
            if self._mine is None:
                return True
            began_s, registry = _clock_s(), self._leases.registry(f"lease {self.name}")
            claims, _ = registry.read()
            last = max((int(number) for number in claims), default=0)
            if not last:  # its file was deleted, which takes the lease from nobody
                registry.enter(str(self._mine), new_claim(self.token))
            elif last > self._mine or read_claim(claims[str(last)])["token"] != self.token:
                self._is_lost = True  # first: at no moment is it neither held nor lost
                self._mine = None
                held_here.discard(self.token)
                self._unlock()
                return False
            self._beats += 1
            registry.note(f"beat.{self._mine}", new_beat(self._beats))
            self._beaten_s = began_s
            return True

    def note(self, name: str, value: str) -> None:
        """Notes something beside the beats, for as long as the lease is held."""
        with self._noting:
            if self._mine is not None:
                self._leases.registry(f"lease {self.name}").note(name, value)

    def _unlock(self) -> None:
        if self._lock:
            self._lock.release()

    def release(self) -> None:
        """Gives the lease back; nothing happens where it is not held.

        Where the store is away it expires; this process itself may take it again at once. A heartbeat of another
        thread is over before, so that it neither comes after this last note nor writes it at the same moment, which
        no database takes.
        """
        held_here.discard(self.token)
        with self._noting:
            if self._mine is not None:
                mine, self._mine = self._mine, None
                try:
                    self._leases.registry(f"lease {self.name}").note(f"beat.{mine}", RELEASED)
                finally:
                    self._unlock()

    def _is_free(self, last: int, claims: dict[str, str], notes: dict[str, str]) -> bool:
        holder = read_claim(claims[str(last)])
        self._holder = holder["who"]
        beat = notes.get(f"beat.{last}")
        if beat == RELEASED or is_dead(holder) or (self._lock and is_of_this_boot(holder["place"])):
            return True
        now = time.monotonic()
        if self._seen[0] != (last, beat):
            self._is_alive = self._seen[0] is not None or is_here(holder["place"])
            self._seen = ((last, beat), now)
        elif now - self._answered_s > self._expires_s / 2:  # the store was away, for its holder too
            self._seen = ((last, beat), now)
        self._answered_s = now
        return now - self._seen[1] >= self._expires_s


def _clock_s() -> float:
    """Runs while the machine sleeps, as others' clocks do, and cannot be set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))  # macOS counts sleep in the second


class LeaseKeeper:
    """Keeps leases alive from a thread of its own, and says once, by `lost`, which one cannot be kept, and why."""

    def __init__(self, kept: Leases, lost: Callable[[str], None], heartbeat_s: float = BEAT_S) -> None:
        self._kept, self._lost, self._beat_s = kept, lost, heartbeat_s
        self._leases: list[StoreLease] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
        self._thread.start()

    def lease(self, name: str) -> StoreLease:
        """The lease called `name`, not yet taken; it is kept alive whenever it is held."""
        lease = StoreLease(self._kept, name)
        with self._lock:
            self._leases.append(lease)
        return lease

    def holds_all(self) -> bool:
        """Whether no lease was lost or given back, where the last heartbeat is old by a new one.

        Raises:
            Exception: what the store raises that cannot be reached.
        """
        for lease in self._held():
            if not lease.is_sure() and not lease.heartbeat():
                self._say_lost(lease, TAKEN)
        return not self._closed.is_set() and not any(lease.is_lost() for lease in self._leases)

    def close(self) -> None:
        """Releases every lease; one that cannot be released, because the store is away, expires."""
        self._closed.set()
        try:
            self._thread.join()
        finally:
            for lease in self._leases:
                with contextlib.suppress(Exception):
                    lease.release()

    def _run(self) -> None:
        while not self._closed.wait(self._beat_s):
            for lease in self._held():
                self._beat(lease)

    def _held(self) -> list[StoreLease]:
        with self._lock:
            return [lease for lease in self._leases if lease.is_held()]

    def _beat(self, lease: StoreLease) -> None:
        """While the store is away no heartbeat is heard, but neither can anybody take the lease."""
        why = TAKEN
        try:
            is_kept = lease.heartbeat()
        except Exception as error:
            from orchestrator.tracking.availability import is_unavailable  # loads MLflow, which few leases need

            is_kept = is_unavailable(error) and not lease.is_lost()
            why = redacted_text(str(error).partition("\n")[0])
        if not is_kept:
            self._say_lost(lease, why)

    def _say_lost(self, lease: StoreLease, why: str) -> None:
        with self._lock:
            is_known = self._closed.is_set()
            self._closed.set()
        if not is_known:
            self._lost(f"The lease of {lease.name} cannot be kept: {why}.")
