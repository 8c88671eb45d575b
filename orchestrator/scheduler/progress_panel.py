"""The pace of a sweep's runs and the time left, in the words of a log and in the rows of a terminal's panel."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.text import Text

from orchestrator.journal.lines import Record
from orchestrator.scheduler.task import PREREQUISITES

States = Mapping[str, Mapping[str, int]]

NUM_BAR_CELLS: Final = 10
NUM_METRIC_CELLS: Final = 32

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_BREAK: Final = re.compile(r"\s*[\r\n\t]\s*")


@dataclass
class LiveRun:
    """A run in progress and its pace, from its reports alone.

    Attributes:
        begun_step: where it went on; steps before it were done earlier.
        start: time and step at which its worker started, after a loss the new one.
        first: time and step of the first report since; start-up lies before it.
        last: time and step of the last report since.
        metrics: the last value of each validation metric.
        has_started: whether its worker was heard of; before, it waits: for its worker, or for a place.
        result_s: time of its last report or evaluation; None before.
    """

    label: str
    num_steps: int
    begun_step: int
    step: int
    start: tuple[float, int]
    first: tuple[float, int] | None = None
    last: tuple[float, int] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    tries: str = ""
    has_started: bool = False
    result_s: float | None = None

    def restart(self, now_s: float) -> None:
        """Forgets the pace: its worker starts only now."""
        self.start, self.first, self.last = (now_s, self.step), None, None

    def report(self, record: Record, now_s: float) -> None:
        """Takes in a record of any kind."""
        self.has_started = True
        if record["kind"] in ("metrics", "evaluation"):
            self.result_s = now_s
        if record["kind"] == "started":
            self.restart(now_s)
        if record["kind"] == "metrics":
            self.step = record["step"]
            self.first, self.last = self.first or (now_s, self.step), (now_s, self.step)
        metrics = record.get("metrics", {})
        of_validation = {name: value for name, value in metrics.items() if "valid" in name}
        self.metrics |= of_validation or metrics

    def beginning_text(self) -> str:
        """Whether it begins, or where it goes on."""
        of = f" of {self.num_steps}" if self.num_steps else ""
        return f"continues after step {self.begun_step}{of}" if self.begun_step else "started"

    def step_text(self) -> str:
        """The last step, of how many where that is known."""
        step = str(max(self.step, 0))
        return f"{step}/{self.num_steps}" if self.num_steps else step

    def fraction(self) -> float:
        """How much of it is done, 0 to 1."""
        return _fraction(self.step, self.num_steps)

    def gain(self) -> float:
        """How much of it was done since it began, 0 to 1."""
        return max(0.0, self.fraction() - _fraction(self.begun_step, self.num_steps))

    def steps_per_s(self) -> float | None:
        """The mean from its first report to its last; from its start while there is but one; None before."""
        if self.first is None or self.last is None:
            return None
        since_s, since_step = self.first if self.last[1] > self.first[1] else self.start
        duration_s, num_steps = self.last[0] - since_s, self.last[1] - since_step
        return num_steps / duration_s if duration_s > 0 and num_steps > 0 else None

    def eta_s(self, now_s: float) -> float | None:
        """Seconds until its last step; between reports it counts down, by at most one step."""
        rate = self.steps_per_s()
        if rate is None or self.last is None or not self.num_steps:
            return None
        num_left = max(0, self.num_steps - self.last[1])
        return max(0.0, num_left / rate - min(now_s - self.last[0], 1 / rate))


def count(states: States) -> Counter[str]:
    """The replicates of all conditions by their state, without the prerequisites."""
    total: Counter[str] = Counter()
    for name, of_condition in states.items():
        if name != PREREQUISITES:
            total.update(of_condition)
    return total


def sweep_eta_s(
    num_waiting: float,
    runs: Sequence[LiveRun],
    finished: float,
    elapsed_s: float,
    now_s: float,
    training_share: float = 1.0,
) -> float | None:
    """Seconds until all is done, a replicate being one unit of work; None before any work was done.

    What is left, divided by the rate at which work was done; but no sooner than the slowest run in progress.

    Args:
        finished: units done in runs that have ended.
        elapsed_s: time in which they and what is done of `runs` were done.
        training_share: of a unit, what its steps are; the rest are evaluations.
    """
    done = finished + training_share * sum(run.gain() for run in runs)
    left = num_waiting + sum(1 - training_share * run.fraction() for run in runs)
    if done <= 0 or elapsed_s <= 0:
        return None
    return max([left * elapsed_s / done, *(eta for run in runs if (eta := run.eta_s(now_s)) is not None)])


def expected_eta_s(num_waiting: float, runs: Sequence[LiveRun], duration_s: float, now_s: float) -> float | None:
    """Seconds until all is done if a replicate takes `duration_s`, as many at once as now.

    None if none has started, or all that is left already takes longer: nobody knows how much.
    """
    started = [run for run in runs if run.has_started]
    if not started:
        return None
    whole = [duration_s * (1 - _fraction(run.start[1], run.num_steps)) for run in started]
    left = [max(0.0, took_s - (now_s - run.start[0])) for took_s, run in zip(whole, started, strict=True)]
    num_to_start = num_waiting + len(runs) - len(started)
    return max(max(left), (sum(left) + num_to_start * duration_s) / len(started)) or None


def duration_text(seconds: float | None) -> str:
    """`m:ss`, `h:mm:ss` or `2 d 5 h`; `?` for None."""
    if seconds is None:
        return "?"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def rate_text(steps_per_s: float | None) -> str:
    """Steps a second, or seconds a step where that is less than one; empty for None."""
    if steps_per_s is None:
        return ""
    value, unit = (steps_per_s, "steps/s") if steps_per_s >= 1 else (1 / steps_per_s, "s/step")
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Names and values of 4 significant digits; a long name loses its middle."""
    return "  ".join(f"{cut(one_line(name), NUM_METRIC_CELLS)} {value:.4g}" for name, value in metrics.items())


def one_line(text: str) -> str:
    """`text` without line breaks, control characters and colour codes, which would tear the screen."""
    plain = _BREAK.sub(" ", _ESCAPE.sub("", text).strip("\r\n"))
    return "".join(char if char.isprintable() else " " for char in plain).rstrip()


def cut(text: str, num_cells: int) -> str:
    """`text` in at most `num_cells` columns; its middle goes, since names differ at their ends."""
    if cell_len(text) <= num_cells:
        return text
    head, tail = set_cell_size(text, num_cells // 2).rstrip(), text[-num_cells:]
    while tail and cell_len(head) + 1 + cell_len(tail) > num_cells:
        tail = tail[1:]
    return f"{head}…{tail}"


def summary_text(states: States, runs: Collection[LiveRun], eta_s: float | None, num_to_come: float = 0.0) -> str:
    """How much of the sweep is done, in one line; with about how many replicates a search has still to draw."""
    total, num_live = count(states), sum(run.has_started for run in runs)
    num_waiting = total["waiting"] + len(runs) - num_live
    waiting = f"  {num_waiting:,} waiting" if num_waiting else ""
    to_come = f"  about {math.ceil(num_to_come):,} to come" if num_to_come else ""
    num_done = total["complete"] + total["failed"] + total["pruned"]
    done = f"{num_done:,}/{sum(total.values()):,} done  {total['failed']:,} failed"
    return f"{done}  {num_live:,} live{waiting}{to_come}  ETA {duration_text(eta_s)}"


def draw(heading: str, runs: Sequence[LiveRun], width: int, height: int, now_s: float) -> Group:
    """A panel of at most `height` rows (at least 1): the heading, and below it a row for each run that has room.

    A row has label, step, bar, rate, ETA and metrics; on a narrow screen neither bar nor rate.
    """
    num_rows = len(runs) if len(runs) < height else max(0, height - 2)
    rows = [
        [
            cut(run.label, max(10, (width - 2) * 2 // 5)),
            run.step_text(),
            _bar(run.fraction()) if width >= 80 else "",
            rate_text(run.steps_per_s()) if width >= 60 else "",
            f"ETA {duration_text(run.eta_s(now_s))}",
            "  ".join(filter(None, [run.tries, metrics_text(run.metrics)])),
        ]
        for run in runs[:num_rows]
    ]
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    num_cells = [max(map(cell_len, column)) for column in columns]
    lines = [Text(heading, "bold")]
    for cells in zip(*columns, strict=True):
        padded = (cell + " " * (wide - cell_len(cell)) for cell, wide in zip(cells, num_cells, strict=True))
        lines.append(Text(f"  {'  '.join(padded)}".rstrip()))
    if num_rows < len(runs) and height > 1:
        lines.append(Text(f"  ... and {len(runs) - num_rows:,} more", "dim"))
    for line in lines:
        line.no_wrap = True
        line.truncate(width)
    return Group(*lines)


def _bar(fraction: float) -> str:
    num_full = int(fraction * NUM_BAR_CELLS)
    return "━" * num_full + "─" * (NUM_BAR_CELLS - num_full)


def _fraction(step: int, num_steps: int) -> float:
    return min(1.0, max(0.0, step / num_steps)) if num_steps > 0 else 0.0
