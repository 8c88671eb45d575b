"""What the records of a journal say of a replicate: its steps and the best of them, metrics, time, place and peaks."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from orchestrator.journal.lines import NEEDED, Record
from trainables.metric import Best

ANEW: Final = "anew"
"""The kind of record behind which a replicate is trained from the start, and nothing counts that stands before."""


@dataclass
class JournalSummary:
    """What the records so far say.

    Attributes:
        metrics: the last value of each.
        histories: what was reported in training, by metric and step.
        duration_s: from the start of each session to its last record; the time between sessions does not count.
        versions: of the code, of each session that produced something.
        last_version: of the last session.
        completed: ids of the evaluations that were done when it was complete last; None where it never was.
        host: of the last session; `hosts` are those of all sessions.
        peer_traceback: of the last session, where it ended because another process of a distributed run was lost.
        final: the newest record that says how it ended; `{"state": "new"}` where there is none.
        step: the last that was reported; `kept_step` is the last with a checkpoint, from which training goes on.
        last_ms: when the newest record was written, in milliseconds since 1970.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    histories: dict[str, dict[int, float]] = field(default_factory=dict)
    evaluations: set[str] = field(default_factory=set)
    versions: list[str] = field(default_factory=list)
    asked_for: set[str] = field(default_factory=set)
    last_version: str = ""
    completed: frozenset[str] | None = None
    final: Record = field(default_factory=lambda: {"state": "new"})
    step: int = -1
    kept_step: int = -1
    peer_traceback: str = ""
    host: str = ""
    hosts: list[str] = field(default_factory=list)
    device: str = ""
    duration_s: float = 0.0
    size_bytes: int = 0
    peak_host_bytes: int = 0
    peak_gpu_bytes: int = 0
    last_ms: int | None = None

    def add(self, record: Record) -> None:
        """Takes in the next record; one about the machine's load says nothing of the replicate."""
        if record["kind"] == "system":
            return
        now_ms = record["time_ms"]
        if record["kind"] == "started":
            self.host, self.device = record["host"], record["device"]
            self.hosts += [self.host] if self.host not in self.hosts else []
            self.last_version = record["code_version"]
            self.asked_for |= set(record.get("evaluations", ()))
        elif self.last_ms is not None:
            self.duration_s += max(0, now_ms - self.last_ms) / 1000
        self.last_ms = now_ms
        if record["kind"] not in NEEDED:
            return
        if record["kind"] in ("started", "peer_lost"):
            self.peer_traceback = record.get("traceback", "")
        if record["kind"] in ("metrics", "evaluation") and self.versions[-1:] != [self.last_version]:
            self.versions.append(self.last_version)
        self.metrics |= record.get("metrics", {})
        if record["kind"] == "metrics":
            self.step = max(self.step, record["step"])
            if record.get("kept", True):
                self.kept_step = max(self.kept_step, record["step"])
            for metric, value in record["metrics"].items():
                self.histories.setdefault(metric, {})[record["step"]] = value
        if record["kind"] == "state":
            self.final = record
            self.completed = frozenset(self.evaluations) if record["state"] == "complete" else self.completed
        if record["kind"] == "evaluation":
            self.evaluations.add(record.get("id", ""))
        self.size_bytes = record.get("size_bytes", self.size_bytes)
        self.peak_host_bytes = max(self.peak_host_bytes, record.get("peak_host_bytes", 0))
        self.peak_gpu_bytes = max(self.peak_gpu_bytes, record.get("peak_gpu_bytes", 0))

    def is_complete(self, evaluations: Set[str]) -> bool:
        """Whether a record of its state says that it is complete with these evaluations.

        Where all of them are done and no such record follows, the best checkpoints were not chosen yet.
        """
        return self.completed is not None and evaluations <= self.completed


def summarise(records: list[Record]) -> JournalSummary:
    """All records of a journal."""
    folded = JournalSummary()
    for record in records:
        folded.add(record)
    return folded


def since_anew(records: Sequence[Record]) -> list[Record]:
    """The records that count: behind the last start anew."""
    anew = max((i for i, record in enumerate(records) if record["kind"] == ANEW), default=-1)
    return list(records[anew + 1 :])


def is_over(records: Sequence[Record], num_steps: int | None) -> bool:
    """Whether the last step was reported; where that is not known, whether `train` returned."""
    if num_steps is None:
        return any(record["kind"] == "trained" for record in records)
    return last_step(records) >= num_steps


def steps(records: Iterable[Record]) -> set[int]:
    """The steps that were reported."""
    return {record["step"] for record in records if record["kind"] == "metrics"}


def last_step(records: Iterable[Record]) -> int:
    """The last one reported in training; -1 where none was."""
    return max(steps(records), default=-1)


def best_steps(records: Iterable[Record], selection: Mapping[str, Best], until: int) -> dict[str, int]:
    """For each name of a selection the best step up to `until` with a checkpoint.

    The earliest of equals; NaN is the worst. A name of which no step has a value is left out.
    """
    rows = [r for r in records if r["kind"] == "metrics" and r["step"] <= until and r.get("kept", True)]
    best = {}
    for name, wanted in selection.items():
        costs = {r["step"]: wanted.cost(r["metrics"][wanted.metric]) for r in rows if wanted.metric in r["metrics"]}
        if costs:
            best[name] = min(costs, key=lambda step: (costs[step], step))
    return best


def last_complete(records: Sequence[Record]) -> Record:
    """The newest record that says that it was complete; empty where none does."""
    complete = (r for r in reversed(records) if r["kind"] == "state" and r["state"] == "complete")
    return next(complete, {})
