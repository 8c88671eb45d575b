"""What a user sees while a sweep runs: a live view on a terminal, plain lines in a log."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from orchestrator.journal.lines import Record
from orchestrator.scheduler import progress_panel as panel
from orchestrator.scheduler.progress_panel import LiveRun

REFRESH_S: Final = 0.25
RUN_QUIET_S: Final = 5.0
STEP_QUIET_S: Final = 1.0
SUMMARY_S: Final = 60.0


class ProgressView:
    """A panel that is drawn again and again, below lines for what goes wrong; or lines alone, for every event.

    Any thread may call it. Nothing that goes wrong in showing a sweep reaches its caller.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._title, self._clock = console, panel.one_line(title), clock
        self._live: Live | None = None
        if console.is_interactive:
            self._live = Live(Text(""), console=console, auto_refresh=False, transient=True)
        self._lock = threading.RLock()  # a signal handler may add a note while its thread is in here
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick_until_done, name="progress", daemon=True)
        self._fault: BaseException | None = None
        self._states: panel.States = {}
        self._num_to_come = 0.0
        self._expected_s: float | None = None
        self._runs: dict[str, LiveRun] = {}
        self._lost: dict[str, LiveRun] = {}
        self._ended: set[str] = set()
        self._note = ""
        self._opened_s = self._last_summary_s = clock()
        self._first_run_s: float | None = None
        self._changed_s = self._opened_s
        self._finished = 0.0
        self._whole_s = self._training_s = 0.0  # of the complete runs
        self._unprinted: dict[str, None] = {}
        self._line_s: dict[str, float] = {}
        self._last_step_line_s = self._opened_s - STEP_QUIET_S

    def __enter__(self) -> "ProgressView":
        with self._guarded():
            if self._live:
                self._live.start()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Takes the panel away; a summary stays."""
        self._done.set()
        self._ticker.join(timeout=1.0)
        with self._guarded():
            if self._live:
                self._live.stop()
        with self._guarded():
            if self._states:
                total = panel.count(self._states)
                num_all, left, failed = sum(total.values()), total["waiting"] + total["live"], total["failed"]
                took = panel.duration_text(self._clock() - self._opened_s)
                self._print(f"{num_all - left:,}/{num_all:,} done, {failed:,} failed, {left:,} left, after {took}")
            if self._fault:
                self._print(f"the progress display failed: {panel.one_line(repr(self._fault))}")

    def conditions(self, states: Mapping[str, Mapping[str, int]], num_to_come: float = 0.0) -> None:
        """How many replicates of each condition are waiting, live, complete, failed and pruned.

        Args:
            num_to_come: about how many more a search will want of conditions that it has yet to draw or decide on.
        """
        with self._guarded():
            self._states, self._num_to_come = dict(states), num_to_come

    def expect(self, duration_s: float) -> None:
        """Takes the mean duration of earlier replicates, by which the time left goes until there is a pace."""
        with self._guarded():
            self._expected_s = duration_s

    def begin(self, key: str, label: str, num_steps: int, step: int) -> None:
        """A run is handed out: from the start, or to go on after `step`, above 0. It may wait for a place."""
        with self._guarded():
            now_s, begun_step, label = self._clock(), max(step, 0), panel.one_line(label)
            lost = self._lost.pop(key, None)
            tries = lost.tries if lost else ""
            self._runs[key] = LiveRun(label, num_steps, begun_step, begun_step, (now_s, begun_step), tries=tries)
            self._ended.discard(key)
            self._first_run_s = now_s if self._first_run_s is None else self._first_run_s
            self._line_s[key] = self._changed_s = now_s

    def record(self, key: str, record: Record) -> None:
        """A run reported."""
        with self._guarded():
            if key not in self._runs:
                return
            run, now_s = self._runs[key], self._clock()
            # Several records may arrive together: each counts from when it was written.
            age_s = time.time() - record["time_ms"] / 1000 if "time_ms" in record else 0.0
            at_s = now_s - max(0.0, age_s)
            took_s = at_s - (at_s if run.result_s is None else run.result_s)
            if not run.has_started:
                self._event(f"{run.label}: {run.beginning_text()}")
            run.report(record, at_s)
            if record["kind"] == "evaluation" and took_s >= SUMMARY_S:  # or nothing would be said for so long
                name = record["id"].rpartition(".")[0]
                self._event(f"{run.label}: evaluation {name} done, took {panel.duration_text(took_s)}")
            if record["kind"] == "metrics":
                self._changed_s = now_s
                self._unprinted[key] = None

    def end(self, key: str, state: str, error: str, duration_s: float) -> None:
        """A run ended; one that is not complete has a line on a terminal too."""
        with self._guarded():
            if key in self._ended:
                return
            self._ended.add(key)
            run = self._take(key, state == "complete") or self._lost.pop(key, None)
            label, why = run.label if run else key, f": {panel.one_line(error)}" if error else ""
            text = f"{label}: {state} after {panel.duration_text(duration_s)}{why}"
            if state != "complete":
                self._print(text)
            elif run:
                self._event(text)

    def retry(self, key: str, error: str, tries: int, max_tries: int) -> None:
        """A run lost its worker in one of its tries, counted from 1; it waits until it begins again."""
        with self._guarded():
            if run := self._take(key):
                run.tries = f"try {tries + 1} of {max_tries}"
                self._lost[key] = run
                self._note_once(f"{run.label}: lost its worker in try {tries} of {max_tries}: {panel.one_line(error)}")

    def put_back(self, key: str) -> None:
        """A run lost its worker with all others; it waits until it begins again, and no try is counted."""
        with self._guarded():
            if run := self._take(key):
                self._lost[key] = run

    def note(self, text: str) -> None:
        """Something to know; the same again says nothing new."""
        with self._guarded():
            self._note_once(panel.one_line(text))

    def tick(self) -> None:
        """Shows what is due: the panel, or a step and a summary line. The view's own thread calls it."""
        drawn = None
        with self._guarded():
            if self._live:
                size, now_s, runs = self._console.size, self._clock(), list(self._runs.values())
                elapsed = panel.duration_text(now_s - self._opened_s)
                heading = f"{self._summary()}  elapsed {elapsed}  {self._title}"
                drawn = panel.draw(heading, runs, size.width, size.height - 1, now_s)
            else:
                self._print_due()
        with self._watched():  # not under the lock: a terminal that stands still must not hold the sweep up
            if self._live and drawn:
                self._live.update(drawn, refresh=True)

    def _take(self, key: str, is_complete: bool = False) -> LiveRun | None:
        """The run of `key`, no longer in progress, or None; what it did counts as work done."""
        run = self._runs.pop(key, None)
        if run:
            now_s = self._clock()
            if is_complete and run.last and run.start[1] == 0:  # of one that was continued the share is another
                self._whole_s += now_s - run.start[0]
                self._training_s += run.last[0] - run.start[0]
            share = self._training_share()
            self._finished += share * run.gain() + (1 - share * run.fraction() if is_complete else 0)
            self._changed_s = now_s
        self._unprinted.pop(key, None)
        self._line_s.pop(key, None)
        return run

    def _tick_until_done(self) -> None:
        while not self._done.wait(REFRESH_S):
            self.tick()

    def _print_due(self) -> None:
        """At most one step line a second, of the run that has waited longest; a summary each minute."""
        now_s = self._clock()
        if now_s - self._last_step_line_s >= STEP_QUIET_S and self._unprinted:
            key = min(self._unprinted, key=self._line_s.__getitem__)
            if now_s - self._line_s[key] >= RUN_QUIET_S:
                del self._unprinted[key]
                self._line_s[key] = self._last_step_line_s = now_s
                run = self._runs[key]
                pace = [panel.rate_text(run.steps_per_s()), f"ETA {panel.duration_text(run.eta_s(now_s))}"]
                parts = [f"{run.label}: step {run.step_text()}", *pace, panel.metrics_text(run.metrics)]
                self._print("  ".join(filter(None, parts)))
        if now_s - self._last_summary_s >= SUMMARY_S:
            self._last_summary_s = now_s
            self._print(self._summary())

    def _summary(self) -> str:
        eta_s, runs = None, list(self._runs.values())
        if self._first_run_s is not None:
            # By the pace up to the last report, lest it swing between reports; before the first, by what was expected.
            num_waiting = panel.count(self._states)["waiting"] + self._num_to_come
            elapsed_s, now_s = self._changed_s - self._first_run_s, self._clock()
            eta_s = panel.sweep_eta_s(num_waiting, runs, self._finished, elapsed_s, now_s, self._training_share())
            if eta_s is None and self._expected_s is not None:
                eta_s = panel.expected_eta_s(num_waiting, runs, self._expected_s, now_s)
        return panel.summary_text(self._states, runs, eta_s, self._num_to_come)

    def _training_share(self) -> float:
        """The share of its steps in the time of a run; 1 while no complete run shows what evaluations take."""
        return self._training_s / self._whole_s if self._whole_s else 1.0

    def _note_once(self, text: str) -> None:
        if text != self._note:
            self._note = text
            self._print(text)

    def _event(self, text: str) -> None:
        """A line in a log; the panel shows it by itself."""
        if not self._live:
            self._print(text)

    def _print(self, text: str) -> None:
        """A line that stays. As Text it is no markup, whatever brackets it has."""
        self._console.print(Text(f"{time.strftime('%H:%M:%S')} {self._title}  {text}"), soft_wrap=True)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock, self._watched():
            yield

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Keeps the first fault for the end; where the console is gone, nothing more is written to it."""
        try:
            yield
        except (Exception, SystemExit) as fault:  # rich leaves by SystemExit where a pipe's reader has gone
            self._fault = self._fault or fault
            if isinstance(fault, OSError | SystemExit):
                self._console.quiet = True
