"""The progress view never hurts a sweep: signals, threads, a console that is gone, a fault of its own."""

import io
import re
import threading

import pytest
from rich.console import Console

from orchestrator.scheduler.progress import ProgressView
from tests.orchestrator.scheduler.progress_parts import (
    Clock,
    lines_of,
    log_view,
    metrics,
    rows_on_screen,
    started,
    terminal,
)
from tests.waiting import LIMIT_S


def test_a_signal_handler_may_add_a_note_while_its_thread_is_in_the_view():
    file, clock = io.StringIO(), Clock()

    def clock_with_signal():
        if clock.now_s == 2000.0:
            clock.now_s += 1
            view.note("Ctrl-C: finishing writing")
        return clock()

    view = ProgressView(Console(file=file, force_terminal=False), "sweep", clock=clock_with_signal)
    clock.now_s = 2000.0
    begins = threading.Thread(target=view.begin, args=("k", "a", 10, 0), daemon=True)
    begins.start()
    begins.join(LIMIT_S)
    view.record("k", started())
    assert lines_of(file) == ["Ctrl-C: finishing writing", "a: started"]


class GoneFile(io.StringIO):
    """A terminal that has been closed, or a pipe without a reader."""

    num_writes, error = 0, OSError()

    def write(self, text):
        self.num_writes += 1
        raise self.error


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), SystemExit(1)])
def test_a_console_that_has_gone_is_left_alone_and_ends_no_sweep(is_terminal, error):
    """By SystemExit rich tells of a broken pipe."""
    console = Console(file=GoneFile(), force_terminal=is_terminal, _environ={"TERM": "xterm"})
    console.file.error = error
    with ProgressView(console, "sweep", clock=Clock()) as view:
        view.begin("k", "a", 10, 0)
        view.tick()
        view.end("k", "failed", "bad", 1.0)
    assert console.file.num_writes == 1


def test_a_fault_of_the_view_is_told_at_the_end_and_goes_no_further():
    file, _, view = log_view()
    with view:
        view.begin("k", "a", 10, 0)
        view.record("k", {"kind": "metrics"})
    assert lines_of(file)[1] == "the progress display failed: KeyError('step')"


def test_an_interrupt_passes_through_and_leaves_the_view_usable():
    file, _, view = log_view()
    with view:
        view.begin("k", "a", 10, 0)
        view.record("k", started())
        clock_of_view, view._clock = view._clock, lambda: (_ for _ in ()).throw(KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            view.record("k", metrics(1))
        view._clock = clock_of_view
        other = threading.Thread(target=view.note, args=("from another thread",))
        other.start()
        other.join(LIMIT_S)
    assert lines_of(file) == ["a: started", "from another thread"]


def test_threads_may_call_it_together_while_it_draws(monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.progress.REFRESH_S", 0.001)
    console = terminal()

    def call(i):
        for step in range(60):
            view.begin(f"k{i}", f"run {i}", 60, step)
            view.record(f"k{i}", metrics(step, valid_loss=1.0))
            view.conditions({f"c{j}": {"live": 1} for j in range(step)})
            view.note(f"{i} {step}")
            view.end(f"k{i}", "failed" if step % 20 == 0 else "complete", "", 1.0)

    with ProgressView(console, "sweep") as view:
        threads = [threading.Thread(target=call, args=(i,), daemon=True) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
    screen = rows_on_screen(console.file.getvalue())
    assert len([line for line in screen if ": failed after" in line]) == 12 and "59 left" in screen[-1]
    assert len([line for line in screen if re.search(r"  \d \d+$", line)]) == 240, "the notes"


def test_an_event_draws_writes_and_counts_nothing(monkeypatch):
    file, _, view = log_view()
    view.begin("k", "a", 10_000, 0)
    view.record("k", started())
    made, before = [], file.getvalue()
    for name in ("draw", "count", "sweep_eta_s", "summary_text", "metrics_text"):
        monkeypatch.setattr(f"orchestrator.scheduler.progress_panel.{name}", lambda *_, name=name: made.append(name))
    for step in range(10):
        view.record("k", metrics(step, valid_loss=1.0))
        view.conditions({f"c{i}": {"waiting": 5} for i in range(2000)})
    assert made == [] and file.getvalue() == before
