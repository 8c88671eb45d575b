"""What a user sees of a running sweep as it goes on: what it says, and when."""

import re

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
from tests.waiting import until


def test_a_log_tells_start_retry_note_and_end_with_error_and_duration():
    file, _, view = log_view()
    with view:
        view.conditions({"a": {"waiting": 1, "live": 2}})
        view.begin("k1", "a seed 1", 10, -1)
        view.record("k1", started())
        view.begin("k2", "a seed 2", 10, 4)
        view.record("k2", started())
        view.retry("k1", "ActorDied", 1, 3)
        view.note("tracking store away")
        view.note("tracking store away")
        view.end("k1", "complete", "", 62.0)
        view.end("k2", "failed", "ValueError: bad\nvalue", 3.0)
        view.conditions({"a": {"waiting": 1, "complete": 1, "failed": 1}})
    assert lines_of(file) == [
        "a seed 1: started",
        "a seed 2: continues after step 4 of 10",
        "a seed 1: lost its worker in try 1 of 3: ActorDied",
        "tracking store away",
        "a seed 1: complete after 1:02",
        "a seed 2: failed after 0:03: ValueError: bad value",
        "2/3 done, 1 failed, 1 left, after 0:00",
    ]


def test_step_lines_have_rate_eta_and_validation_metrics_only():
    file, clock, view = log_view()
    with view:
        view.begin("k", "a", 100, 0)
        for step in range(1, 11):
            clock.now_s += 0.5
            view.record("k", metrics(step, valid_loss=1.23456, train_loss=9.0))
        view.tick()
    assert lines_of(file)[1] == "a: step 10/100  2.0 steps/s  ETA 0:45  valid_loss 1.235"


def test_an_evaluation_has_a_line_where_it_took_a_minute():
    file, clock, view = log_view()
    with view:
        view.begin("k", "a seed 1", 1, 0)
        view.record("k", metrics(1))
        for name, took_s in (("test", 59.0), ("dynamic.all", 432.0), ("cache", 60.0)):
            clock.now_s += took_s
            view.record("k", {"kind": "evaluation", "id": f"{name}.0123456789abcdef", "step": 1, "metrics": {}})
    assert lines_of(file)[1:3] == [
        "a seed 1: evaluation dynamic.all done, took 7:12",
        "a seed 1: evaluation cache done, took 1:00",
    ]


def test_a_run_has_a_line_each_5_s_and_all_runs_together_one_a_second_in_turn():
    file, clock, view = log_view()
    with view:
        for i in range(8):
            view.begin(f"k{i}", f"run{i}", 1000, 0)
        for step in range(1, 161):
            clock.now_s += 0.125
            for i in range(8):
                view.record(f"k{i}", metrics(step))
            view.tick()
    steps = [line for line in lines_of(file) if ": step" in line]
    assert len(steps) == 16, "from second 5 to second 20, one a second"
    assert [line.split(":")[0] for line in steps] == [f"run{i % 8}" for i in range(16)]


def test_a_run_alone_has_a_line_each_5_s_and_none_without_a_report():
    file, clock, view = log_view()
    with view:
        view.begin("k", "run", 1000, 0)
        for step in range(1, 89):
            clock.now_s += 0.25
            view.record("k", metrics(step))
            view.tick()
        clock.now_s += 30
        view.tick()
        clock.now_s += 20
        view.tick()
    steps = [line.split("  ")[0] for line in lines_of(file) if ": step" in line]
    assert steps == [f"run: step {step}/1000" for step in (20, 40, 60, 80, 88)]


def test_a_log_has_a_summary_a_minute_with_the_eta_of_the_sweep():
    file, clock, view = log_view()
    with view:
        view.conditions({"a": {"waiting": 2, "live": 1}})
        view.begin("k", "a seed 1", 100, 0)
        for _ in range(4):
            clock.now_s += 25
            view.record("k", metrics(int(clock.now_s - 1000) // 2))
            view.tick()
    summaries = [line for line in lines_of(file) if " live" in line]
    assert summaries == ["0/3 done  0 failed  1 live  2 waiting  ETA 8:53"], "at 75 s: 0.37 units done, 2.63 left"


def test_a_search_counts_what_it_has_still_to_draw():
    """A quarter of a run in 50 s; 1.75 are left of what is drawn, and about 5.5 come."""
    file, clock, view = log_view()
    with view:
        view.conditions({"0000 a": {"waiting": 1, "live": 1}}, 5.5)
        view.begin("k", "0000 a seed 1", 100, 0)
        clock.now_s += 50
        view.record("k", metrics(25))
        clock.now_s += 10
        view.tick()
    (summary,) = [line for line in lines_of(file) if " live" in line]
    assert summary == "0/2 done  0 failed  1 live  1 waiting  about 6 to come  ETA 24:10"


def train_the_second_of_four(view, clock):
    """All its steps in 100 s, and what is shown then."""
    view.conditions({"a": {"waiting": 2, "live": 1, "complete": 1}})
    view.begin("l", "a seed 2", 100, 0)
    for step in (50, 100):
        clock.now_s += 50
        view.record("l", metrics(step))
    view.tick()


def test_tests_that_take_longer_than_training_count_once_one_run_has_ended():
    """Training takes 100 s of 400: after 400 s and 100 more, 1.25 runs are done and 2.75 left, at 400 s a run."""
    file, clock, view = log_view()
    with view:
        view.conditions({"a": {"waiting": 3, "live": 1}})
        view.begin("k", "a seed 1", 100, 0)
        for step in (50, 100):
            clock.now_s += 50
            view.record("k", metrics(step))
        clock.now_s += 300
        view.end("k", "complete", "", 400.0)
        train_the_second_of_four(view, clock)
    (summary,) = [line for line in lines_of(file) if " live" in line]
    assert summary == "1/4 done  0 failed  1 live  2 waiting  ETA 18:20"


def summaries_of_two_live_and_three_waiting(expected_s=None, begun_step=0):
    """After 100 s in which neither reported a step, and after 100 more, at whose end one reports half of its steps."""
    file, clock, view = log_view()
    with view:
        if expected_s is not None:
            view.expect(expected_s)
        view.conditions({"a": {"waiting": 3, "live": 2, "complete": 1}})
        for key in "kl":
            view.begin(key, key, 100, begun_step)
            view.record(key, {"kind": "started"})
        clock.now_s += 100
        view.tick()
        clock.now_s += 100
        view.record("k", metrics(begun_step + 50))
        view.tick()
    return [line.partition("  ETA ")[2] for line in lines_of(file) if " live" in line]


def test_before_a_step_is_reported_the_time_left_goes_by_what_earlier_replicates_took():
    """Two have 300 s of 400 left each and three have 400: 1,800 s of work for two at once. Then by the pace: half of
    one in 200 s, of five in all."""
    assert summaries_of_two_live_and_three_waiting(expected_s=400.0) == ["15:00", "30:00"]


def test_nothing_is_expected_where_nothing_was_seen_before():
    assert summaries_of_two_live_and_three_waiting() == ["?", "30:00"]


def test_what_is_left_of_a_run_that_goes_on_and_of_one_that_takes_longer_than_expected():
    """Half of two runs is 200 s, of which 100 have passed: 1,400 s for two; of 80 s nothing is left, and 240 wait."""
    assert summaries_of_two_live_and_three_waiting(expected_s=400.0, begun_step=50)[0] == "11:40"
    assert summaries_of_two_live_and_three_waiting(expected_s=80.0)[0] == "2:00"
    file, clock, view = log_view()
    with view:
        view.expect(80.0)
        view.conditions({"a": {"live": 1}})
        view.begin("k", "k", 0, 0)
        view.record("k", {"kind": "started"})
        clock.now_s += 100
        view.tick()
    assert lines_of(file)[-2] == "0/1 done  0 failed  1 live  ETA ?"


def test_a_run_that_was_continued_near_its_end_says_nothing_of_the_share_of_tests():
    """One of two steps was left of it: what it took is mostly tests, and no other run's."""
    file, clock, view = log_view()
    with view:
        view.conditions({"a": {"waiting": 3, "live": 1}})
        view.begin("k", "a seed 1", 100, 50)
        clock.now_s += 50
        view.record("k", metrics(100))
        clock.now_s += 50
        view.end("k", "complete", "", 100.0)
        train_the_second_of_four(view, clock)
    (*_, summary) = [line for line in lines_of(file) if " live" in line]
    assert summary == "1/4 done  0 failed  1 live  2 waiting  ETA 4:27", "1.5 units in 200 s, 2 left"


def test_a_run_that_waits_for_a_place_is_not_live():
    """The scheduler hands out one more than fits, so that it is there when a place becomes free."""
    file, clock, view = log_view()
    with view:
        view.conditions({"a": {"live": 2}})
        for key in "kl":
            view.begin(key, key, 100, 0)
        view.record("k", {"kind": "started", "time_ms": 1000 * clock.now_s})
        clock.now_s += 61
        view.tick()
        view.record("l", {"kind": "started", "time_ms": 1000 * clock.now_s})
        clock.now_s += 61
        view.tick()
    lines = [line.partition("  ETA")[0] for line in lines_of(file)]
    assert lines[:3] == ["k: started", "0/2 done  0 failed  1 live  1 waiting", "l: started"]
    summaries = [line for line in lines if " live" in line]
    assert summaries == ["0/2 done  0 failed  1 live  1 waiting", "0/2 done  0 failed  2 live"]


def test_records_and_ends_of_unknown_runs_are_ignored_but_a_failure_is_told():
    file, _, view = log_view()
    with view:
        view.record("k", metrics(1))
        view.retry("k", "lost", 1, 3)
        view.end("k", "complete", "", 1.0)
        view.begin("k2", "b", 10, 0)
        view.record("k2", started())
        view.end("k2", "failed", "no luck", 1.0)
        view.end("k2", "failed", "no luck", 1.0)
        view.record("k2", metrics(1))
        view.end("k3", "failed", "its prerequisite failed", 0.0)
        view.tick()
    assert lines_of(file) == [
        "b: started",
        "b: failed after 0:01: no luck",
        "k3: failed after 0:00: its prerequisite failed",
    ]


def test_a_run_that_is_tried_again_keeps_its_work_but_not_its_pace():
    file, clock, view = log_view()
    with view:
        view.begin("k", "a", 100, 0)
        clock.now_s += 20
        view.record("k", metrics(40))
        view.retry("k", "lost", 1, 3)
        view.record("k", metrics(41))
        view.conditions({"a": {"waiting": 1}})
        clock.now_s += 40  # 0.4 units were done in 20 s, 1 waits
        view.tick()
        view.conditions({"a": {"live": 1}})
        view.begin("k", "a", 100, 40)
        clock.now_s += 5
        view.record("k", metrics(41))
        view.tick()
    assert lines_of(file)[2:5] == [
        "0/1 done  0 failed  0 live  1 waiting  ETA 0:50",
        "a: continues after step 40 of 100",
        "a: step 41/100  5.0 s/step  ETA 4:55",
    ]


def test_the_panel_says_which_try_it_is():
    console = terminal()
    with ProgressView(console, "sweep", clock=Clock()) as view:
        view.begin("k", "a", 10, 0)
        view.retry("k", "lost", 1, 3)
        view.begin("k", "a", 10, 0)
        view.tick()
    assert "  a  0/10  ──────────  ETA ?  try 2 of 3\n" in console.file.getvalue()


def test_failures_do_not_make_a_sweep_look_fast():
    file, clock, view = log_view()
    with view:
        view.conditions({"a": {"waiting": 10}})
        clock.now_s += 30
        for i in range(5):
            view.begin(f"bad{i}", "bad", 100, 0)
            clock.now_s += 1
            view.end(f"bad{i}", "failed", "at once", 1.0)
        view.begin("good", "good", 100, 0)
        clock.now_s += 55
        view.end("good", "complete", "", 55.0)
        view.tick()
    assert lines_of(file)[-2].endswith("ETA 10:00"), "one unit in the 60 s since the first run began, 10 left"


def test_users_words_are_no_markup_and_tear_no_line():
    words = "layers.[bold]3[/] :smile: [/nothing]\x1b[31m\r\nred"
    plain = "layers.[bold]3[/] :smile: [/nothing] red"
    file, _, view = log_view()
    console = terminal(width=200)
    for view_of in (view, ProgressView(console, words, clock=Clock())):
        with view_of:
            view_of.conditions({words: {"failed": 1, "live": 1}})
            view_of.note(words)
            view_of.begin("k", words, 10, 0)
            view_of.begin("k2", "live " + words, 10, 0)
            view_of.record("k2", started())
            view_of.end("k", "failed", words, 1.0)
            view_of.tick()
    assert lines_of(file)[:3] == [plain, f"live {plain}: started", f"{plain}: failed after 0:01: {plain}"]
    written = console.file.getvalue()
    assert f"{plain}: failed after 0:01: {plain}\n" in written and f"  live {plain}  0/10  " in written
    assert f"elapsed 0:00  {plain}\n" in written and "fault" not in written and "\x1b[31m" not in written


def test_a_terminal_keeps_notes_failures_and_a_summary_and_loses_the_panel():
    console = terminal(width=60)
    error = "ValueError: " + "long " * 30 + "end"
    with ProgressView(console, "sweep", clock=Clock()) as view:
        view.begin("k", "a seed 1", 10, 0)
        view.begin("k2", "a seed 2", 10, 0)
        view.conditions({"a": {"live": 1, "failed": 1}})
        view.note("tracking store away")
        view.tick()
        view.end("k2", "failed", error, 1.0)
        view.end("k", "complete", "", 1.0)
        view.conditions({"a": {"complete": 1, "failed": 1}})
        view.tick()
    screen = rows_on_screen(console.file.getvalue())
    assert "  a seed 1  0/10  " in console.file.getvalue()
    assert [line[9:] for line in screen] == [
        "sweep  tracking store away",
        f"sweep  a seed 2: failed after 0:01: {error}",
        "sweep  2/2 done, 1 failed, 0 left, after 0:00",
    ]


def test_a_view_draws_by_itself_a_few_times_a_second(monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.progress.REFRESH_S", 0.01)
    console = terminal()
    with ProgressView(console, "sweep") as view:
        view.begin("k", "a seed 1", 10, 0)
        until(lambda: "  a seed 1  0/10" in console.file.getvalue())


def test_the_panel_of_a_low_terminal_leaves_out_rows_itself():
    console = terminal(height=8)
    with ProgressView(console, "sweep", clock=Clock()) as view:
        view.conditions({f"c{i}": {"live": 1} for i in range(9)})
        for i in range(9):
            view.begin(f"k{i}", f"c{i} seed 1", 10, 0)
        view.tick()
    first_drawing = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", console.file.getvalue().partition("\x1b[1A")[0])
    assert [line.strip() for line in first_drawing.splitlines()] == [
        "0/9 done  0 failed  0 live  9 waiting  ETA ?  elapsed 0:00  sweep",
        *(f"c{i} seed 1  0/10  ──────────  ETA ?" for i in range(5)),
        "... and 4 more",
    ]


def test_a_dumb_terminal_gets_plain_lines():
    console = terminal(term="dumb")
    with ProgressView(console, "sweep", clock=Clock()) as view:
        view.begin("k", "a", 10, 0)
        view.record("k", started())
        view.tick()
    assert lines_of(console.file) == ["a: started"]
