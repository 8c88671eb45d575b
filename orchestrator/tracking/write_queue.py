"""Writes to the tracking store from a thread of its own, in order, and tries again for as long as the store is away.

What waits here is only *what* has to be brought up to date; the facts themselves lie in the replicates' journals, on
disk. So nothing is lost when the driver dies meanwhile: the next one reads the journals.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import Final

from orchestrator.tracking.availability import DISK, is_answer, is_of_store, is_unavailable, what_is_away
from orchestrator.tracking.damage import is_damage
from orchestrator.tracking.store import telling_line
from search_spaces.redaction import redacted_text
from trainables.errors import InputError

WAITS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
LEAST_TRIES: Final = 3
"""So often a write fails before it is asked whether the store takes others."""

GATHER_S: Final = 1.0
"""Once all is written, this time passes before the next writes: changes of one thing within it are written at once."""

Job = Callable[[], None]


class WriteQueue:
    """Jobs by name, each done once after the last change to it.

    Args:
        tell: told when the store goes away, and when it is back.
        may_write: asked before each job, and after one that is refused; where it says no, all that wait are dropped. It
            may raise what `availability.is_unavailable` knows.
        takes_others: whether the store takes another write now; asked where it has failed at one again and again, for
            then that one is refused, and the store is not away.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        may_write: Callable[[], bool] = lambda: True,
        takes_others: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tell, self._may_write, self._takes_others = tell, may_write, takes_others
        self._jobs: dict[Hashable, Job] = {}
        self._num_in_hand = 0
        self._gathered_s = -math.inf
        self._changed = threading.Condition()
        self._is_awaited = self._is_closed = False
        self._error: Exception | None = None
        self._away = ""
        self._away_since_s = 0.0
        self._thread = threading.Thread(target=self._run, name="tracking", daemon=True)
        self._thread.start()

    def put(self, name: Hashable, job: Job, keeps_place: bool = False) -> None:
        """Has `job` done after all that waits already, and instead of one of the same name.

        Args:
            keeps_place: it is done where the other one waits, because what was put after that relies on it.

        Raises:
            InputError: if the store has refused what was written before, which trying again would not mend.
            Exception: what a job has raised that is no error of a store.
        """
        with self._changed:
            self._raise_error()
            if not keeps_place:
                self._jobs.pop(name, None)
            self._jobs[name] = job
            self._changed.notify_all()

    def drain(self, timeout_s: float) -> int:
        """Waits until all is written, `timeout_s` at most; returns how much is not."""
        with self._changed:
            self._is_awaited = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._error is not None or not (self._jobs or self._num_in_hand), timeout_s)
            self._is_awaited = False
            self._raise_error()
            return len(self._jobs) + self._num_in_hand

    def close(self) -> None:
        """Ends the thread after the job at hand; `drain` first."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout=5.0)

    def _raise_error(self) -> None:
        if self._error and not is_of_store(self._error):  # such as an InputError of the bucket, where the journals are
            raise self._error
        if self._error and is_damage(self._error):
            raise InputError(
                f"The tracking store is damaged ({_line(self._error)}). The journals keep all results; `ponderay "
                "repair` says how they come back."
            ) from self._error
        if self._error:
            raise InputError(
                f"The tracking store refuses a write: {_line(self._error)}. The journals keep all results; "
                "repair the store (was something deleted there?) and run the sweep again."
            ) from self._error

    def _run(self) -> None:
        while job := self._take():
            self._insist(*job)
            with self._changed:
                self._num_in_hand = 0
                self._changed.notify_all()

    def _take(self) -> tuple[Hashable, Job] | None:
        """What is to be done next; None once the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._is_closed)
            left_s = self._gathered_s + GATHER_S - time.monotonic()
            self._changed.wait_for(lambda: self._is_awaited or self._is_closed, max(0.0, left_s))
            if self._is_closed:
                return None
            name = next(iter(self._jobs))
            self._num_in_hand = 1
            job = self._jobs.pop(name)
            if not self._jobs:
                self._gathered_s = time.monotonic()
            return name, job

    def _insist(self, name: Hashable, job: Job) -> None:
        """Does one job, again and again while the store is away, until it is refused twice or the queue is to close.

        The second try is for what another process entered in between, which is read again.
        """
        tries = refusals = 0
        while not self._is_closed:
            try:
                self._do_or_drop(job)
            except Exception as error:
                is_refused = tries >= LEAST_TRIES and is_answer(error) and self._takes_others()
                if is_refused or not is_unavailable(error):
                    refusals += 1
                    if refusals == 2:
                        self._error = error
                        return
                    if not is_refused:
                        continue
                self._say_away(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, WAITS_S[min(tries, len(WAITS_S) - 1)])
                tries += 1
            else:
                if self._away:
                    away_s = time.monotonic() - self._away_since_s
                    self._tell(
                        f"{self._away} is available again after {away_s:.0f} s; waiting results are being written."
                    )
                    self._away = ""
                return
        with self._changed:
            self._jobs = {name: job} | self._jobs

    def _do_or_drop(self, job: Job) -> None:
        """Drops all that waits where another may write by now: before a job, or when one is refused."""
        try:
            if self._may_write():
                job()
                return
        except Exception as error:
            if is_unavailable(error) or self._may_write():
                raise
        with self._changed:
            self._jobs.clear()

    def _say_away(self, error: Exception) -> None:
        if not self._away:
            self._away, self._away_since_s = what_is_away(error), time.monotonic()
            so = "writing is tried again" if self._away == DISK else "meanwhile the journals keep all results"
            self._tell(f"{self._away} is unavailable; {so} ({_line(error)}).")


def _line(error: Exception) -> str:
    return telling_line(redacted_text(str(error)))[:200]
