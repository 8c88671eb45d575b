"""What of a sweep fits on a screen: pace and time left by hand, rows within bounds, users' words as they are."""

from collections import Counter

import pytest

from orchestrator.scheduler import progress_panel
from orchestrator.scheduler.progress_panel import (
    MAX_CONDITIONS,
    MAX_RUNS,
    LiveRun,
    Snapshot,
    count,
    cut,
    draw,
    duration_text,
    one_line,
    rate_text,
    sweep_eta_s,
)


def metrics(step, **values):
    return {"kind": "metrics", "step": step, "metrics": values}


def snapshot(states=None, runs=(), front=(), failures=(), notes=(), eta_s=None, now_s=0.0):
    return Snapshot("my sweep", states or {}, runs, front, failures, notes, 3723.0, eta_s, now_s)


def panel_lines(shown, width=100, height=50, encoding="utf-8"):
    return [text.plain for text in draw(shown, width, height, encoding).renderables]


def a_run(label="a seed 1", num_steps=100, begun_step=0, reports=()):
    run = LiveRun(label, num_steps, begun_step, begun_step, (0.0, begun_step))
    for now_s, step in reports:
        run.report(metrics(step), now_s)
    return run


def test_the_rate_leaves_out_start_up_and_what_was_done_before():
    run = a_run(begun_step=40, reports=[(100.0, 41)])
    assert run.steps_per_s() == 1 / 100, "one report: start-up cannot be told apart"
    run = a_run(begun_step=40, reports=[(100.0, 41), (102.0, 42), (104.0, 43)])
    assert run.steps_per_s() == 0.5
    assert run.eta_s(104.0) == 57 / 0.5
    assert run.eta_s(105.0) == 57 / 0.5 - 1
    assert run.eta_s(500.0) == 56 / 0.5, "a late report takes off one step at most"
    assert run.gain() == pytest.approx(0.03)
    run.report({"kind": "started"}, 200.0)
    assert run.steps_per_s() is None and run.eta_s(200.0) is None
    run.report(metrics(44), 204.0)
    assert run.steps_per_s() == 0.25, "one step after step 43"


def test_a_run_that_has_done_all_its_steps_or_does_not_know_their_number_is_no_fault():
    done, unknown = (a_run(num_steps=number, reports=[(1.0, 5), (1.0, 6), (2.0, 7)]) for number in (5, 0))
    assert (done.eta_s(2.0), done.fraction(), done.step_text()) == (0.0, 1.0, "7/5")
    assert (unknown.eta_s(2.0), unknown.fraction(), unknown.step_text()) == (None, 0.0, "7")


def test_the_eta_of_a_sweep_by_hand():
    assert sweep_eta_s(10, [], 0.0, 100.0, 0.0) is None
    assert sweep_eta_s(10, [], 5.0, 100.0, 0.0) == 200.0
    halves = [a_run(reports=[(1.0, 25), (51.0, 50)]) for _ in range(2)]
    assert sweep_eta_s(3, halves, 3.0, 100.0, 51.0) == 100.0, "4 units done, 4 left"
    resumed = a_run(begun_step=80, reports=[(5.0, 85), (10.0, 90)])
    assert sweep_eta_s(0, [resumed], 0.0, 10.0, 10.0) == pytest.approx(10.0), "a tenth done here, a tenth left"
    slow = a_run(reports=[(0.0, 1), (1000.0, 2)])
    assert sweep_eta_s(0, [slow], 99.0, 1000.0, 1000.0) == 98_000.0, "no sooner than its slowest run"
    trained = a_run(reports=[(1.0, 50), (51.0, 100)])
    assert sweep_eta_s(1, [trained], 1.0, 100.0, 51.0, 0.5) == 100.0, "half of it is its tests: 1.5 done, 1.5 left"


def test_the_panel_shows_conditions_runs_front_failures_and_notes():
    run = a_run("b seed 2", reports=[(1.0, 10), (6.0, 20)])
    run.report(metrics(20, valid_loss=0.123456, train_loss=7.0), 6.0)
    states = {
        "a": {"complete": 5},
        "b": {"live": 1, "complete": 1, "failed": 1},
        "c": {"waiting": 5},
        "none": {"waiting": 0},
    }
    lines = panel_lines(
        snapshot(states, [run], ["c1  0.5"], ["x: ValueError", "y: OSError"], ["store away"], 75.0, 6.0)
    )
    assert lines == [
        "7/13 done  1 failed  1 live  5 waiting  ETA 1:15  elapsed 1:02:03  my sweep",
        "conditions",
        "  b  2/3 done  1 live  1 failed",
        "  c  0/5 done",
        "  a  5/5 done",
        "running",
        "  b seed 2  20/100  ━━────────  2.0 steps/s  ETA 0:40  valid_loss 0.1235",
        "front so far",
        "  c1  0.5",
        "last failures",
        "  y: OSError",
        "  x: ValueError",
        "notes",
        "  store away",
    ]


def full_snapshot():
    states = {f"condition {i}": {"waiting": 4, "live": int(i % 40 == 0), "complete": 1} for i in range(2000)}
    runs = [a_run(f"condition {i} with a [long] name seed {i}", 50_000, 0, [(1.0, 7), (9.0, 99)]) for i in range(60)]
    for run in runs:
        run.metrics = {"valid_phone_error_rate@stochastic": 0.123456, "valid_loss": 1.5}
    many = [f"line {i} " + "long " * 40 for i in range(50)]
    return snapshot(states, runs, many, many, many, 1e6)


@pytest.mark.parametrize("width", [1, 10, 40, 79, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 23, 100])
def test_the_panel_never_takes_more_than_the_screen(width, height):
    lines = panel_lines(full_snapshot(), width, height)
    assert 1 <= len(lines) <= height
    assert max(map(len, lines)) <= width
    if height == 100:
        assert len(lines) == 1 + (1 + MAX_CONDITIONS + 1) + (1 + 20 + 1) + (1 + 6 + 1) + (1 + 5) + (1 + 3)


def test_what_the_panel_leaves_out_is_counted_and_live_conditions_come_first():
    lines = panel_lines(full_snapshot(), 100, 100)
    assert "  ... and 1,988 more" in lines and "  ... and 40 more" in lines and "  ... and 44 more" in lines
    assert [line.split("  ")[1] for line in lines[2:14]] == [f"condition {i * 40}" for i in range(12)]


def test_a_narrow_panel_keeps_the_seed_step_and_eta():
    row = panel_lines(snapshot(runs=[a_run("a rather long condition name seed 17", 100)]), 40)[2]
    assert row == "  a rathe…seed 17  0/100  ETA ?"


def test_a_console_of_ascii_gets_ascii():
    run = a_run("\u03bb=0.5 seed 1", reports=[(1.0, 50)])
    lines = panel_lines(snapshot(runs=[run], notes=["\u4e16"]), 100, 50, "ascii")
    assert "?=0.5 seed 1  50/100  =====-----" in lines[2] and lines[-1].strip() == "?"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "?"), (0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (90_000, "1 d 1 h")],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, ""), (12345.0, "12345 steps/s"), (2.04, "2.0 steps/s"), (0.5, "2.0 s/step"), (1 / 3600, "3600 s/step")],
)
def test_rates(rate, text):
    assert rate_text(rate) == text


def test_a_name_that_is_cut_keeps_both_ends_and_counts_wide_characters_twice():
    assert cut("abcdefghij", 10) == "abcdefghij"
    assert cut("abcdefghijk", 10) == "abcde…hijk"
    assert cut("\u4e16" * 6, 10) == "\u4e16\u4e16…\u4e16\u4e16"


def test_one_line_keeps_columns_and_drops_what_tears_a_screen():
    assert one_line("a   0.31  \u00b1 0.02") == "a   0.31  \u00b1 0.02"
    assert one_line("bad\r\n  \x1b[1;31mvalue\x1b[0m\x07\ud800\n") == "bad value"


def test_of_a_full_panel_only_what_is_shown_is_put_into_words(monkeypatch):
    calls, names = Counter(), ("count", "cut", "rate_text")
    for name in names:
        own = getattr(progress_panel, name)
        monkeypatch.setattr(
            progress_panel, name, lambda *given, own=own, name=name: calls.update([name]) or own(*given)
        )
    draw(full_snapshot(), 200, 100)
    num_of_runs = MAX_RUNS * (1 + 2)  # a label and two metrics each
    assert calls == dict(zip(names, (1 + MAX_CONDITIONS, MAX_CONDITIONS + num_of_runs, MAX_RUNS), strict=True))


def test_a_prerequisite_is_no_replicate():
    states = {"prerequisites": {"waiting": 1, "live": 1}, "a": {"waiting": 2, "complete": 1}}
    assert count(states).total == 3
    assert count(states).waiting == 2
