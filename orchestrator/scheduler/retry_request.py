"""Whether there is anything to try again, asked before anything starts."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from orchestrator.tracking.load import load_study
from search_spaces.known_names import known_names
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from search_spaces.sweep import Sweep


def check_retry(sweep: "Sweep", settings: "Settings", retry: Collection[str]) -> tuple[str, ...]:
    """The conditions that `retry` names, by their name or that without settings; each has a failed replicate.

    It must be under a seed of the sweep.

    Raises:
        InputError: if the sweep has not run, or a condition is unknown or has none.
    """
    if isinstance(retry, str):
        raise InputError(f"`retry` must be a list of conditions, but got {retry!r}.")
    if not retry:
        return ()
    study = load_study(sweep.name, settings)
    failed = {one.condition for one in study.replicates if one.state == "failed" and one.seed in sweep.seeds}
    known = [*dict.fromkeys((*(condition.name for condition in sweep.conditions), *study.conditions))]
    declared = {condition.declared: condition.name for condition in sweep.conditions}
    chosen = tuple(name if name in known else declared.get(name, name) for name in retry)
    for name in chosen:
        if name not in known:
            there = known_names(known, name)
            raise InputError(f"{sweep.name} has no condition {name!r} to try again; there are {there}.")
        if name not in failed:
            others = known_names(one for one in known if one in failed) if failed else "no condition"
            raise InputError(f"{name!r} has no failed replicate to try again; {others} has.")
    return chosen
