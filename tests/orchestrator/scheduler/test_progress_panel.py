"""What of a sweep fits on a screen: pace and time left by hand, rows within bounds, users' words as they are."""

import pytest

from orchestrator.scheduler.progress_panel import (
    LiveRun,
    count,
    cut,
    draw,
    duration_text,
    one_line,
    rate_text,
    sweep_eta_s,
)
from tests.orchestrator.scheduler.progress_parts import metrics


def panel_lines(runs=(), width=100, height=50, now_s=0.0):
    return [text.plain for text in draw("2/3 done", runs, width, height, now_s).renderables]


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


def test_a_row_of_the_panel_has_step_bar_pace_time_left_and_validation_metrics():
    run, waiting = a_run("b seed 2", reports=[(1.0, 10), (6.0, 20)]), a_run("b seed 10")
    run.report(metrics(20, valid_loss=0.123456, train_loss=7.0), 6.0)
    waiting.tries = "try 2 of 4"
    assert panel_lines([run, waiting], now_s=6.0) == [
        "2/3 done",
        "  b seed 2   20/100  ━━────────  2.0 steps/s  ETA 0:40  valid_loss 0.1235",
        "  b seed 10  0/100   ──────────               ETA ?     try 2 of 4",
    ]


def many_runs():
    runs = [a_run(f"condition {i} with a [long] name seed {i}", 50_000, 0, [(1.0, 7), (9.0, 99)]) for i in range(60)]
    for run in runs:
        run.metrics = {"valid_phone_error_rate@stochastic": 0.123456, "valid_loss": 1.5}
    return runs


@pytest.mark.parametrize("width", [1, 10, 40, 79, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 23, 60, 61])
def test_the_panel_never_takes_more_than_the_screen_and_counts_what_it_leaves_out(width, height):
    lines = panel_lines(many_runs(), width, height)
    assert len(lines) == height and max(map(len, lines)) <= width
    if 1 < height <= 60 and width >= 40:
        assert lines[-1] == f"  ... and {60 - height + 2} more"


def test_a_narrow_panel_keeps_the_seed_step_and_eta():
    row = panel_lines([a_run("a rather long condition name seed 17", 100)], 40)[1]
    assert row == "  a rathe…seed 17  0/100  ETA ?"


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


def test_a_prerequisite_is_no_replicate():
    states = {"prerequisites": {"waiting": 1, "live": 1}, "a": {"waiting": 2, "complete": 1}, "b": {"waiting": 1}}
    assert count(states) == {"waiting": 3, "complete": 1}
