"""What the records of a journal say of its steps: which were reported, and which of them are the best."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from orchestrator.journal.lines import Record
from trainables.metric import Best

ANEW: Final = "anew"
"""The kind of record behind which a replicate is trained from the start, and nothing counts that stands before."""


def since_anew(records: Sequence[Record]) -> list[Record]:
    """Those that count."""
    anew = max((i for i, record in enumerate(records) if record["kind"] == ANEW), default=-1)
    return list(records[anew + 1 :])


def is_over(records: Sequence[Record], num_steps: int | None) -> bool:
    """Whether the last step was reported; where that is not known, whether `train` returned."""
    if num_steps is None:
        return any(record["kind"] == "trained" for record in records)
    return last_step(records) >= num_steps


def steps(records: Iterable[Record]) -> set[int]:
    """Those that were reported."""
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


def products(records: Sequence[Record], there: Collection[str]) -> dict[str, str]:
    """Of the last complete session, the checkpoint that was the best of each selection, if it is `there`."""
    return {name: file for name, file in last_complete(records).get("products", {}).items() if file in there}


def last_complete(records: Sequence[Record]) -> Record:
    """The newest record that says that it was complete; empty where none does."""
    complete = (r for r in reversed(records) if r["kind"] == "state" and r["state"] == "complete")
    return next(complete, {})
