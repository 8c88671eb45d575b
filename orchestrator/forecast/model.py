"""What is left of a sweep in time, device hours and bytes, from what was measured so far; pure maths.

The model: the duration of a run divided by its number of steps is log-normal, with a mean of its own for each
condition and one spread within conditions; the means of conditions are normal (in logarithms) around a common one.
Spreads are estimated as in the analysis of variance of one random effect and drawn from their scaled inverse
chi-squared distributions (Gelman et al. 2013, Bayesian Data Analysis, section 3.2), so that the interval of a single
next run is Student's. Where too little was measured to estimate a spread, a stated one is assumed.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEVEL: Final = 0.8
"""The chance that an interval is meant to have of holding what comes."""

WITHIN_FACTOR: Final = 1.25
BETWEEN_FACTOR: Final = 2.0
"""Assumed where not measured: 80 % of a condition's runs, or of other conditions, lie within this factor each way."""

MOST_WITHIN, MOST_BETWEEN = 1.0, 1.8
"""Largest standard deviations of logarithms believed in (factors of 3.6 and 10 each way at 80 %): two values alone say
so little about their spread that the sum over many more would have no useful interval."""

NUM_DRAWS: Final = 1000
MOST_SCHEDULED: Final = 200_000
"""Runs placed in time over all draws; takes a second."""

Z80: Final = 1.2815515655446004


@dataclass(frozen=True)
class Timing:
    """What a journal says about time.

    Attributes:
        duration_s: that it ran, over all sessions; time between them does not count.
        whole_s: of a whole run; measured where it is complete, else from the time of its steps; None where none ended.
        tail_share: the part of a complete run after its last step, such as evaluation; in [0, 1].
    """

    duration_s: float
    whole_s: float | None
    tail_share: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """A run that was timed.

    Attributes:
        kind: its trainable; runs of another kind say nothing about it.
        whole_s: of the whole run, in (0, inf).
        size_bytes: what a complete one leaves on disk; 0 where not known.
    """

    kind: str
    condition: str
    num_steps: int
    whole_s: float
    size_bytes: float = 0.0


@dataclass(frozen=True)
class PendingRun:
    """A run that is left.

    Attributes:
        share: of its duration, in [0, 1].
        needs: keys of the runs that must end before it can start.
        held_bytes: what it has on disk already.
    """

    key: str
    kind: str
    condition: str
    num_steps: int
    num_cpus: float
    num_gpus: float
    share: float = 1.0
    needs: tuple[str, ...] = ()
    held_bytes: float = 0.0

    @property
    def num_devices(self) -> float:
        """GPUs that it holds; CPUs where it holds none."""
        return self.num_gpus or self.num_cpus


@dataclass(frozen=True)
class Interval:
    """The median of what may come, and the 80 % interval around it."""

    low: float
    median: float
    high: float

    def times(self, factor: float) -> "Interval":
        """The interval in another unit."""
        return Interval(self.low * factor, self.median * factor, self.high * factor)


@dataclass(frozen=True)
class Forecast:
    """What is left.

    Attributes:
        num_left: runs, prerequisites among them.
        unknown: kinds of which nothing was measured, and which the numbers leave out.
        wall_s, device_s, disk_bytes: None where nothing was measured.
    """

    num_left: int
    unknown: tuple[str, ...]
    wall_s: Interval | None
    device_s: Interval | None
    disk_bytes: Interval | None


def time_journal(records: Sequence[Mapping[str, Any]], num_steps: int) -> Timing:
    """The times in a replicate's journal; a session lasts from a record `started` to the last one before the next."""
    sessions = _sessions(records)
    duration_s = sum(_seconds(session[0], session[-1]) for session in sessions)
    last = records[-1] if records else {}
    if last.get("kind") == "state" and last["state"] == "complete" and duration_s > 0:
        steps = [record for record in sessions[-1] if record["kind"] in ("started", "metrics")]
        return Timing(duration_s, duration_s, _seconds(steps[-1], last) / duration_s)
    return Timing(duration_s, _whole_from_steps(sessions, num_steps))


def _sessions(records: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    sessions: list[list[Mapping[str, Any]]] = []
    for record in records:
        if record["kind"] == "started":
            sessions.append([])
        if sessions:
            sessions[-1].append(record)
    return sessions


def _seconds(first: Mapping[str, Any], last: Mapping[str, Any]) -> float:
    """From one record to another; none where the clock was set back between them."""
    return max(0.0, float(last["time_ms"] - first["time_ms"])) / 1000


def _whole_from_steps(sessions: Sequence[Sequence[Mapping[str, Any]]], num_steps: int) -> float | None:
    """Time to the first report, and the rest at the mean time of a step between reports of one session."""
    reported = [[record for record in session if record["kind"] == "metrics"] for session in sessions]
    spans = [(steps[0], steps[-1]) for steps in reported if len(steps) > 1]
    num_done = sum(last["step"] - first["step"] for first, last in spans)
    heads = [(session[0], steps[0]) for session, steps in zip(sessions, reported, strict=True) if steps]
    if not heads or num_steps == 0:  # 0: how many it takes is not known before
        return None
    head_s, head_step = _seconds(*heads[0]), heads[0][1]["step"]
    if num_done > 0:
        step_s = sum(_seconds(first, last) for first, last in spans) / num_done
        return (head_s + (num_steps - head_step) * step_s) or None
    return (head_s * num_steps / head_step or None) if head_step > 0 else None


def handover_s(journals: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """Mean time from the end of a run to the start of the next one of the same driver; 0 where none was measured.

    Of a driver's runs, those that started before any had ended are the slots; every later start follows an end. Which
    one does not matter, because the mean of the differences is the difference of the means.
    """
    by_driver: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for journal in journals:
        for session in _sessions(journal):
            if session[-1]["kind"] == "state" and session[-1]["state"] == "complete":
                by_driver[session[0].get("attempt", "").partition(".")[0]].append(
                    (session[0]["time_ms"], session[-1]["time_ms"])
                )
    gaps: list[float] = []
    for runs in by_driver.values():
        starts, ends = sorted(start for start, _ in runs), sorted(end for _, end in runs)
        num_slots = sum(start < ends[0] for start in starts)
        gaps += [start - end for start, end in zip(starts[num_slots:], ends, strict=False)]
    return max(0.0, sum(gaps) / len(gaps) / 1000) if gaps else 0.0


def draw(measured: Sequence[tuple[str, float]], wanted: Sequence[str], generator: np.random.Generator) -> Array:
    """Draws, one a row, of a positive quantity of one more run of each condition in `wanted`, a column each.

    Args:
        measured: condition and value; at least one.
        wanted: conditions, measured or not; those of one name share their mean.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for condition, value in measured:
        groups[condition].append(math.log(value))
    counts = np.array([len(values) for values in groups.values()])
    means = np.array([np.mean(values) for values in groups.values()])
    residuals = sum(float(np.sum((np.array(values) - np.mean(values)) ** 2)) for values in groups.values())
    num_free = int(counts.sum()) - len(groups)
    if num_free > 0:
        within = np.minimum(np.sqrt(residuals / generator.chisquare(num_free, NUM_DRAWS)), MOST_WITHIN)
    else:
        within = np.full(NUM_DRAWS, math.log(WITHIN_FACTOR) / Z80)
    if len(groups) > 1:  # the estimated means vary by the noise of their runs besides, which is taken off
        total = np.sum((means - means.mean()) ** 2) / generator.chisquare(len(groups) - 1, NUM_DRAWS)
        between = np.minimum(np.sqrt(np.maximum(total - within**2 * np.mean(1 / counts), 0.0)), MOST_BETWEEN)
    else:  # a second condition differs from it by the assumed factor; such a difference has twice the variance of one
        between = np.full(NUM_DRAWS, math.log(BETWEEN_FACTOR) / Z80 / math.sqrt(2))
    normal = generator.standard_normal
    centres = means + within[:, None] / np.sqrt(counts) * normal((NUM_DRAWS, len(groups)))
    common = centres.mean(axis=1) + between / math.sqrt(len(groups)) * normal(NUM_DRAWS)
    of_condition = dict(zip(groups, centres.T, strict=True))
    for condition in wanted:
        if condition not in of_condition:
            of_condition[condition] = common + between * normal(NUM_DRAWS)
    logarithms = [of_condition[condition] + within * normal(NUM_DRAWS) for condition in wanted]
    drawn: Array = np.exp(np.array(logarithms).reshape(len(wanted), NUM_DRAWS).T)
    return drawn


def assumptions(measured: Sequence[Measurement], left: Sequence[PendingRun]) -> list[str]:
    """What the forecast takes for granted because too little was measured, in words."""
    sentences = []
    for kind in dict.fromkeys(run.kind for run in left):
        known = [m.condition for m in measured if m.kind == kind]
        wanted = {run.condition for run in left if run.kind == kind}
        if known and len(set(known)) == len(known):
            sentences.append(
                f"no condition was timed twice: 80 % of its replicates are assumed within a factor of {WITHIN_FACTOR}"
            )
        if len(set(known)) == 1 and wanted - set(known):
            sentences.append(
                f"one condition was timed: 80 % of the others are assumed within a factor of {BETWEEN_FACTOR:g}"
            )
    return list(dict.fromkeys(sentences))


def forecast(
    measured: Sequence[Measurement],
    left: Sequence[PendingRun],
    num_cpus: float,
    num_gpus: float,
    handover_s: float = 0.0,
    running_bytes: float = 0.0,
) -> Forecast:
    """The forecast for `left`, in the order in which it will be handed out, on so many CPUs and GPUs.

    Args:
        handover_s: from the end of one run to the start of the next.
        running_bytes: what a run holds on disk while it runs, beyond what it leaves.
    """
    kinds = {m.kind for m in measured}
    known = [run for run in left if run.kind in kinds]
    unknown = tuple(dict.fromkeys(run.kind for run in left if run.kind not in kinds))
    if left and not known:
        return Forecast(len(left), unknown, None, None, None)
    generator = np.random.default_rng(0)
    durations_s = _durations(measured, known, generator)
    device_s = durations_s @ np.array([run.num_devices for run in known])
    num_scheduled = max(100, min(NUM_DRAWS, MOST_SCHEDULED // max(1, len(known))))
    wall_s = [makespan_s(known, row, num_cpus, num_gpus) for row in durations_s[:num_scheduled] + handover_s]
    at_once = most_at_once(known, num_cpus, num_gpus)
    disk = _disk(measured, known, generator)
    disk_bytes = None if disk is None else _interval(disk + at_once * running_bytes)
    return Forecast(len(left), unknown, _interval(np.array(wall_s)), _interval(device_s), disk_bytes)


def _durations(measured: Sequence[Measurement], left: Sequence[PendingRun], generator: np.random.Generator) -> Array:
    """Draws, one a row, of what is left of each run, in seconds."""
    durations: Array = np.zeros((NUM_DRAWS, len(left)))
    for kind in dict.fromkeys(run.kind for run in left):
        columns = [i for i, run in enumerate(left) if run.kind == kind]
        steps = np.array([max(1, left[i].num_steps) for i in columns])
        shares = np.array([left[i].share for i in columns])
        rates = [(m.condition, m.whole_s / max(1, m.num_steps)) for m in measured if m.kind == kind]
        durations[:, columns] = draw(rates, [left[i].condition for i in columns], generator) * steps * shares
    return durations


def _disk(measured: Sequence[Measurement], left: Sequence[PendingRun], generator: np.random.Generator) -> Array | None:
    """Draws of the bytes that all runs will have added; None where no size was measured."""
    total: Array = np.zeros(NUM_DRAWS)
    for kind in dict.fromkeys(run.kind for run in left):
        sizes = [(m.condition, m.size_bytes) for m in measured if m.kind == kind and m.size_bytes > 0]
        runs = [run for run in left if run.kind == kind]
        if not sizes:
            return None
        held = np.array([run.held_bytes for run in runs])
        total += np.maximum(draw(sizes, [run.condition for run in runs], generator) - held, 0.0).sum(axis=1)
    return total


def _interval(draws: Array) -> Interval:
    low, median, high = np.quantile(draws, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    return Interval(float(low), float(median), float(high))


def most_at_once(left: Sequence[PendingRun], num_cpus: float, num_gpus: float) -> int:
    """How many runs fit beside each other, the first ones first."""
    fitting = 0
    for run in left:
        num_cpus, num_gpus = num_cpus - run.num_cpus, num_gpus - run.num_gpus
        if min(num_cpus, num_gpus) < -1e-9:
            break
        fitting += 1
    return fitting


def makespan_s(
    left: Sequence[PendingRun], durations_s: Sequence[float] | Array, num_cpus: float, num_gpus: float
) -> float:
    """The time until all is done when whatever is first in order, ready and fits starts at once (list scheduling).

    A need that is not in `left` counts as met; each run must fit by itself.
    """
    keys = {run.key for run in left}
    queues: dict[tuple[float, float, tuple[str, ...]], list[int]] = defaultdict(list)
    for index in reversed(range(len(left))):  # runs that take and need the same: the first one is last in its list
        run = left[index]
        queues[run.num_cpus, run.num_gpus, tuple(n for n in run.needs if n in keys)].append(index)
    open_needs = {needs: len(needs) for _, _, needs in queues}
    needed_by: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for needs in open_needs:
        for key in needs:
            needed_by[key].append(needs)
    ready = [shape for shape in queues if not shape[2]]
    running: list[tuple[float, int]] = []
    now_s = 0.0
    while ready or running:
        fitting = [shape for shape in ready if shape[0] <= num_cpus + 1e-9 and shape[1] <= num_gpus + 1e-9]
        if fitting:
            shape = min(fitting, key=lambda shape: queues[shape][-1])
            index = queues[shape].pop()
            if not queues[shape]:
                ready.remove(shape)
            num_cpus, num_gpus = num_cpus - shape[0], num_gpus - shape[1]
            heapq.heappush(running, (now_s + float(durations_s[index]), index))
            continue
        if not running:
            raise ValueError(f"Each run must fit, but {left[queues[ready[0]][-1]].key} needs more than there is.")
        now_s, index = heapq.heappop(running)
        num_cpus, num_gpus = num_cpus + left[index].num_cpus, num_gpus + left[index].num_gpus
        for needs in needed_by[left[index].key]:
            open_needs[needs] -= 1
            ready += [shape for shape in queues if shape[2] == needs and not open_needs[needs]]
    return now_s
