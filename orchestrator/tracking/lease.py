"""Leases kept in the tracking store: at most one driver runs a sweep, or makes a prerequisite, on whatever machine.

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
from typing import Final

from orchestrator.machine.waiting import wait_until
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.damage import is_moved
from orchestrator.tracking.lease_holder import (
    EXPIRES_S,
    RELEASED,
    held_here,
    is_dead,
    is_here,
    new_beat,
    new_claim,
    read_claim,
)
from search_spaces.redaction import redacted_text

BEAT_S: Final = 5.0
TAKEN: Final = "Another driver has taken it"
POLL_S: Final = 1.0
"""How long an answer of the store is good for, when the same lease is asked for again and again."""


class StoreLease:
    """The lease called `name`.

    Attributes:
        token: tells this claim of the lease from all others.
        previous: the token of the claim before it; empty where it is the first.
    """

    def __init__(self, tracking: Tracking, name: str, expires_s: float = EXPIRES_S, poll_s: float = POLL_S) -> None:
        self._tracking, self.name = tracking, name
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
        registry = self._tracking.registry(f"lease {self.name}")
        claims, notes = registry.read()
        last = max((int(number) for number in claims), default=0)
        if last and not self._is_free(last, claims, notes):
            return False
        claim = new_claim(self.token)
        if registry.enter(str(last + 1), claim) != claim:
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
            began_s, registry = _clock_s(), self._tracking.registry(f"lease {self.name}")
            if max(int(number) for number in registry.entries()) > self._mine:
                self._lose()
                return False
            self._beats += 1
            try:
                registry.note(f"beat.{self._mine}", new_beat(self._beats))
            except Exception as error:
                if is_moved(error):  # another can take it in the file that comes in its place
                    self._lose()
                raise
            self._beaten_s = began_s
            return True

    def _lose(self) -> None:
        self._is_lost = True  # first: at no moment is it neither held nor lost
        self._mine = None
        held_here.discard(self.token)

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
                self._tracking.registry(f"lease {self.name}").note(f"beat.{mine}", RELEASED)

    def _is_free(self, last: int, claims: dict[str, str], notes: dict[str, str]) -> bool:
        holder = read_claim(claims[str(last)])
        self._holder = holder["who"]
        beat = notes.get(f"beat.{last}")
        if beat == RELEASED or is_dead(holder):
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

    def __init__(self, tracking: Tracking, lost: Callable[[str], None], heartbeat_s: float = BEAT_S) -> None:
        self._tracking, self._lost, self._beat_s = tracking, lost, heartbeat_s
        self._leases: list[StoreLease] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
        self._thread.start()

    def lease(self, name: str) -> StoreLease:
        """The lease called `name`, not yet taken; it is kept alive whenever it is held."""
        lease = StoreLease(self._tracking, name)
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

    def beat_now(self) -> bool:
        """Whether the store takes a write now: a heartbeat of each lease."""
        try:
            return all(lease.heartbeat() for lease in self._held())
        except Exception:
            return False

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
