"""What the tests of the progress view share: a clock, a log, a terminal, and what stays on its screen."""

import io
import re

from rich.console import Console

from orchestrator.scheduler.progress import ProgressView


class Clock:
    """Seconds that pass only when told to."""

    now_s = 1000.0

    def __call__(self):
        return self.now_s


def log_view():
    file, clock = io.StringIO(), Clock()
    return file, clock, ProgressView(Console(file=file, force_terminal=False, width=60), "sweep", clock=clock)


def terminal(width=100, height=50, term="xterm"):
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, _environ={"TERM": term}, color_system=None
    )


def lines_of(file):
    """Lines without stamp and title, once it is sure that they have them."""
    lines = file.getvalue().splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d sweep  ", line) for line in lines)
    return [line.split("  ", 1)[1] for line in lines]


def metrics(step, **values):
    return {"kind": "metrics", "step": step, "metrics": values}


def started():
    """The record with which a worker says that it is at work."""
    return {"kind": "started"}


def rows_on_screen(written):
    """The lines that stay, by a terminal that knows what a live view uses: up, erase a line, return."""
    rows, y = [""], 0
    for part in re.findall(r"\x1b\[\??\d*[A-Za-z]|\n|\r|[^\x1b\n\r]+", written):
        if part == "\n":
            y += 1
            rows += [""] * (y == len(rows))
        elif part == "\x1b[1A":
            y -= 1
        elif part == "\x1b[2K":
            rows[y] = ""
        elif part[0] not in "\x1b\r":
            rows[y] += part
    return [row for row in rows if row]
