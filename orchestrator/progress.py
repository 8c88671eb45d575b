"""What a user sees while a sweep runs: a live view on a terminal, plain lines in a log."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from orchestrator.storage import Record

QUIET_S = 5.0


class ProgressView:
    """One bar for the sweep and one for each run in progress; or a line for each start, end and now and then a step."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._rows: dict[str, TaskID] = {}
        self._last_line_s: dict[str, float] = {}
        self._whole = self._bars.add_task(title, total=None, note="")

    def __enter__(self) -> "ProgressView":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def total(self, num_done: int, num_known: int) -> None:
        """How much of the sweep is done."""
        self._bars.update(self._whole, completed=num_done, total=num_known)

    def begin(self, label: str, num_steps: int) -> None:
        """A run starts or goes on."""
        self._rows[label] = self._bars.add_task(f"  {label}", total=num_steps, note="")
        self._line(f"{label}: started")

    def record(self, label: str, record: Record) -> None:
        """A run reported."""
        if record["kind"] != "metrics" or label not in self._rows:
            return
        note = "  ".join(f"{name} {value:.4g}" for name, value in record["metrics"].items() if "valid" in name)
        self._bars.update(self._rows[label], completed=record["step"], note=note)
        now = time.monotonic()
        if now - self._last_line_s.get(label, -QUIET_S) >= QUIET_S:
            self._last_line_s[label] = now
            self._line(f"{label}: step {record['step']}  {note}")

    def end(self, label: str, state: str, error: str) -> None:
        """A run ended; its row goes, a line stays."""
        if label in self._rows:
            self._bars.remove_task(self._rows.pop(label))
        self._console.print(f"{self._stamp()}{label}: {state}{': ' + error if error else ''}", markup=False)

    def _line(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(f"{self._stamp()}{text}", markup=False, soft_wrap=True)

    def _stamp(self) -> str:
        return f"{time.strftime('%H:%M:%S')} {self._title}  "
