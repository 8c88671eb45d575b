"""What a sweep declares, recorded with its study: enough for its answers where its code is not installed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from orchestrator.worker.trainable import load
from search_spaces.confirmation import Confirmation
from search_spaces.names import condition_name_of
from search_spaces.sweep import Condition, Constraint, Objective, Sweep
from trainables.errors import InputError

Direction = Literal["minimize", "maximize"]
LIMIT: Final = 5000
"""Characters of an experiment's tag in MLflow."""

KEPT: Final = ("name", "description", "trainable", "declared_at", "seeds", "pairing", "non_inferiority", "claims")


@dataclass(frozen=True)
class Recorded:
    """The config of a condition whose code is not here: its name alone."""

    condition: str = ""
    seed: int = 1


def text_of(sweep: Sweep) -> str:
    """What is recorded of the sweep; without the directions of its metrics where they are too many."""
    references = [condition.declared for condition in sweep.conditions if condition.name == sweep.reference]
    found: dict[str, Any] = {name: getattr(sweep, name) for name in KEPT}
    found |= {"description": sweep.description[:500], "reference": references[0] if references else None}
    found |= {"objectives": [asdict(objective) for objective in sweep.objectives]}
    found |= {"confirms": asdict(sweep.confirms)} if sweep.confirms else {}
    if sweep.search and sweep.search.constraints:
        found |= {"constraints": [asdict(constraint) for constraint in sweep.search.constraints]}
    directions = {one.name: one.direction for one in load(sweep.trainable).metrics if one.direction != "none"}
    with_metrics = json.dumps(found | {"metrics": directions})
    return with_metrics if len(with_metrics) <= LIMIT else json.dumps(found)


def sweep_of(text: str, conditions: Sequence[str]) -> Sweep:
    """The sweep with its recorded conditions, of which only the names are known; it can be asked for, not run."""
    found = json.loads(text)
    before = {"pairing": "seeds" if found.get("test") == "paired_permutation" else "none", "non_inferiority": None}
    found = before | found  # of an earlier version
    reference = found["reference"]
    reference = condition_name_of(reference) if reference else None
    listed = dict.fromkeys([*map(condition_name_of, conditions), *([reference] if reference else [])])
    return Sweep(
        **{name: found[name] for name in KEPT if name not in ("seeds", "claims")},
        seeds=tuple(found["seeds"]),
        base=Recorded(),
        conditions=tuple(Condition(name, {"condition": name}) for name in listed),
        objectives=tuple(Objective(**one) for one in found["objectives"]),
        reference=reference,
        confirms=Confirmation(**found["confirms"]) if "confirms" in found else None,
    )


def constraints_of(sweep: Sweep, text: str | None) -> tuple[Constraint, ...]:
    """What the search `sweep` asks of its conditions; of a sweep whose code is not loaded, as it was recorded."""
    if not isinstance(sweep.base, Recorded):
        return sweep.search.constraints if sweep.search else ()
    return tuple(Constraint(**one) for one in json.loads(text or "{}").get("constraints", []))


def directions_of(sweep: Sweep, text: str | None) -> Mapping[str, Direction]:
    """Whether each metric that has a direction is to minimize or to maximize; the recorded ones before the code's.

    Raises:
        InputError: if neither says so.
    """
    own: dict[str, Direction] = {objective.metric: objective.direction for objective in sweep.objectives}
    recorded: dict[str, Direction] = json.loads(text).get("metrics", {}) if text else {}
    if recorded:
        return recorded | own
    try:
        metrics = load(sweep.trainable).metrics
    except InputError:
        return own
    return {one.name: one.direction for one in metrics if one.direction != "none"} | own
