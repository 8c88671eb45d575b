"""The forecast against hand cases, brute force, Student's interval in closed form, and simulated sweeps."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.forecast import model as forecast
from orchestrator.forecast.model import Measurement, PendingRun


def records(*entries: tuple[str, float] | tuple[str, float, int]) -> list[dict]:
    """A journal of (kind, second) or ("metrics", second, step); "complete" is a final state."""
    made = []
    for kind, second, *step in entries:
        record = {"kind": "state", "state": kind} if kind in ("complete", "failed") else {"kind": kind}
        made.append(record | {"time_ms": int(second * 1000)} | ({"step": step[0]} if step else {}))
    return made


def run(key: str, num_cpus: float = 1, num_gpus: float = 0, condition: str = "a", **fields) -> PendingRun:
    return PendingRun(key, "k", condition, fields.pop("num_steps", 1), num_cpus, num_gpus, **fields)


def test_time_between_sessions_does_not_count():
    first = [("started", 0), ("metrics", 3, 1), ("metrics", 5, 2)]
    second = [("started", 100), ("metrics", 102, 3), ("evaluation", 103, 3), ("complete", 104)]
    timing = forecast.time_journal(records(*first, *second), num_steps=3)
    assert timing.duration_s == timing.whole_s == 9
    assert timing.tail_share == pytest.approx(2 / 9)


def test_an_unfinished_journal_is_extrapolated_from_its_steps():
    """First report after 4 s at step 0, then 2 s a step, of which a restart repeats none: 4 + 10 x 2."""
    journal = [("started", 0), ("metrics", 4, 0), ("metrics", 6, 1), ("started", 50), ("metrics", 57, 2)]
    assert forecast.time_journal(records(*journal), 10).whole_s == pytest.approx(24)
    journal += [("metrics", 65, 4)]
    assert forecast.time_journal(records(*journal), 10).whole_s == pytest.approx(4 + 10 * 10 / 3)


def test_no_time_is_negative_where_the_clock_was_set_back():
    """By an hour, after the first report at 4 s; what follows it cannot be told."""
    journal = [("started", 4000), ("metrics", 4004, 1), ("metrics", 406, 2)]
    assert forecast.time_journal(records(*journal), 10) == forecast.Timing(0.0, 4.0)
    assert forecast.time_journal(records(*journal, ("complete", 407)), 10) == forecast.Timing(0.0, 4.0)


def test_one_report_or_none():
    assert forecast.time_journal(records(("started", 0), ("metrics", 6, 2)), 10).whole_s == 30
    assert forecast.time_journal(records(("started", 0), ("metrics", 6, 0)), 10).whole_s is None
    assert forecast.time_journal([], 10) == forecast.Timing(0.0, None)


def test_handover_is_from_an_end_to_the_next_start_of_the_same_driver():
    """Two slots: 0-10 and 0-12, then 11-20 and 15-30: gaps of 1 and 3 s. Another driver's runs stand for themselves."""
    runs = [(0, 10), (0, 12), (11, 20), (15, 30)]
    journals = [records(("started", start), ("complete", end)) for start, end in runs]
    other = records(("started", 500), ("complete", 501))
    other[0]["attempt"] = "other.1"
    assert forecast.handover_s([*journals, other]) == pytest.approx(2)
    assert forecast.handover_s([other]) == 0


def test_the_makespan_of_a_hand_case_with_needs_and_two_resources():
    """Two CPUs, one GPU: p (4 s) first beside c (3 s, no need); g1, g2 need p and the one GPU: 4 + 2 + 2."""
    left = [
        run("p"),
        run("g1", num_gpus=1, needs=("p", "done long ago")),
        run("g2", num_gpus=1, needs=("p",)),
        run("c"),
    ]
    assert forecast.makespan_s(left, [4, 2, 2, 3], num_cpus=2, num_gpus=1) == 8
    assert forecast.makespan_s(left, [4, 2, 2, 3], num_cpus=1, num_gpus=1) == 11
    with pytest.raises(ValueError, match="g1 needs more than there is"):
        forecast.makespan_s(left, [4, 2, 2, 3], num_cpus=2, num_gpus=0.5)


def test_the_makespan_is_that_of_a_step_by_step_simulation():
    """Brute force: every tenth of a second whatever is first, ready and fits starts."""
    generator = np.random.default_rng(3)
    for _ in range(20):
        cpus, durations = generator.integers(1, 4, 12), generator.integers(1, 40, 12)
        needs = [(str(generator.integers(0, i)),) if i and generator.random() < 0.4 else () for i in range(12)]
        left = [run(str(i), float(cpus[i]), needs=needs[i]) for i in range(12)]
        assert forecast.makespan_s(left, durations / 10, 4, 0) == pytest.approx(by_tenths(left, durations, 4) / 10)


def by_tenths(left: list[PendingRun], durations: np.ndarray, num_cpus: int) -> int:
    ends: dict[str, int] = {}
    for now in itertools.count():
        for one, duration in zip(left, durations, strict=True):
            busy = sum(other.num_cpus for other in left if ends.get(other.key, -1) > now)
            is_ready = all(ends.get(need, math.inf) <= now for need in one.needs)
            if one.key not in ends and is_ready and busy + one.num_cpus <= num_cpus:
                ends[one.key] = now + int(duration)
        if len(ends) == len(left) and max(ends.values()) <= now:
            return now
    raise AssertionError


def test_one_more_run_of_a_condition_has_students_interval(monkeypatch):
    """Closed form: mean ± t s sqrt(1 + 1/n) of the logarithms."""
    monkeypatch.setattr(forecast, "NUM_DRAWS", 40_000)
    logarithms = np.array([2.0, 2.1, 2.3, 1.9])
    drawn = forecast.draw([("a", math.exp(x)) for x in logarithms], ["a"], np.random.default_rng(0))
    low, high = np.log(np.quantile(drawn, [0.1, 0.9]))
    reach = stats.t.ppf(0.9, 3) * logarithms.std(ddof=1) * math.sqrt(1 + 1 / 4)
    assert (low, high) == pytest.approx((logarithms.mean() - reach, logarithms.mean() + reach), abs=0.01)


def test_one_more_condition_has_students_interval_over_conditions(monkeypatch):
    """Without spread within conditions, the means are the sample."""
    monkeypatch.setattr(forecast, "NUM_DRAWS", 40_000)
    means = np.array([2.0, 2.4, 2.5, 1.9, 2.2])
    measured = [(str(i), math.exp(x)) for i, x in enumerate(means) for _ in range(2)]
    drawn = forecast.draw(measured, ["new"], np.random.default_rng(0))
    low, high = np.log(np.quantile(drawn, [0.1, 0.9]))
    reach = stats.t.ppf(0.9, 4) * means.std(ddof=1) * math.sqrt(1 + 1 / 5)
    assert (low, high) == pytest.approx((means.mean() - reach, means.mean() + reach), abs=0.015)


def test_one_measurement_gives_the_stated_factors(monkeypatch):
    """1.25 for a new run around a mean known as well as one run tells: sqrt(2) of it in logarithms; 2 for others."""
    monkeypatch.setattr(forecast, "NUM_DRAWS", 40_000)
    drawn = forecast.draw([("a", 60.0)], ["a", "new"], np.random.default_rng(0))
    within, between = math.log(1.25), math.log(2)
    low, high = np.log(np.quantile(drawn, [0.1, 0.9], axis=0) / 60)
    assert high[0] == pytest.approx(within * math.sqrt(2), rel=0.03) == -low[0]
    assert high[1] == pytest.approx(math.hypot(between, within * math.sqrt(2)), rel=0.03) == -low[1]
    measured = [Measurement("k", "a", 1, 60.0)]
    (first, second) = forecast.assumptions(measured, [run("1", condition="new")])
    assert "factor of 1.25" in first and "factor of 2" in second
    assert forecast.assumptions([*measured, *measured], [run("1")]) == []


@pytest.mark.parametrize(
    ("num_conditions", "num_each", "num_wanted", "within", "between"),
    [(3, 2, 3, 0.1, 0.5), (1, 5, 1, 0.3, 0.0), (4, 3, 8, 0.1, 0.4), (6, 2, 10, 0.3, 0.3)],
    ids=["the same conditions", "one condition", "four more conditions", "mostly noise"],
)
def test_the_interval_of_a_sum_holds_four_of_five_simulated_sweeps(
    num_conditions, num_each, num_wanted, within, between, monkeypatch
):
    """Each wanted condition five times; 300 sweeps have a standard error of 0.023, and the sum is no exact pivot."""
    monkeypatch.setattr(forecast, "NUM_DRAWS", 300)
    generator, num_sweeps, num_held = np.random.default_rng(11), 300, 0
    for _ in range(num_sweeps):
        centres = generator.normal(3, between, num_wanted)

        def duration(i: int, centres=centres) -> float:
            return float(np.exp(centres[i] + within * generator.standard_normal()))

        measured = [(str(i), duration(i)) for i in range(num_conditions) for _ in range(num_each)]
        truth = sum(duration(i) for i in range(num_wanted) for _ in range(5))
        wanted = [str(i) for i in range(num_wanted) for _ in range(5)]
        totals = forecast.draw(measured, wanted, np.random.default_rng(0)).sum(axis=1)
        low, high = np.quantile(totals, [0.1, 0.9])
        num_held += low <= truth <= high
    assert 0.7 <= num_held / num_sweeps <= 0.9


def test_wall_time_device_hours_and_disk_of_runs_that_all_take_the_same():
    """20 s a run of 4 steps, 1 MB each: 5 whole ones and half of another of 2 steps on 2 of 4 CPUs each."""
    measured = [Measurement("k", "a", 4, 20.0, 1e6)] * 3
    left = [run(str(i), num_cpus=2, num_steps=4) for i in range(5)]
    left.append(run("half", num_cpus=2, num_steps=2, share=0.5, held_bytes=4e5))
    left.append(PendingRun("other", "unknown", "b", 1, 1, 0))
    expected = forecast.forecast(measured, left, num_cpus=4, num_gpus=0, handover_s=1.0, running_bytes=1e5)
    assert (expected.num_left, expected.unknown) == (7, ("unknown",))
    for interval, value in (
        (expected.wall_s, 3 * 21.0),
        (expected.device_s, 2 * (5 * 20.0 + 5.0)),
        (expected.disk_bytes, 5e6 + 6e5 + 2e5),
    ):
        assert interval is not None
        assert (interval.low, interval.median, interval.high) == pytest.approx((value, value, value))


def test_devices_are_gpus_where_any_are_held():
    measured = [Measurement("k", "a", 1, 10.0)] * 2
    expected = forecast.forecast(measured, [run("1", num_cpus=8, num_gpus=0.25)], 8, 1)
    assert expected.device_s is not None and expected.device_s.median == pytest.approx(2.5)
    assert expected.disk_bytes is None


def test_nothing_left_and_nothing_measured():
    nothing = forecast.forecast([], [], 1, 0)
    assert nothing.num_left == 0 and nothing.wall_s == forecast.Interval(0.0, 0.0, 0.0)
    unknown = forecast.forecast([], [run("1")], 1, 0)
    assert unknown == forecast.Forecast(1, ("k",), None, None, None)
