"""Whether there is anything to try again, asked before anything starts."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from orchestrator.tracking.load import load_study
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from search_spaces.sweep import Sweep


def check_retry(sweep: "Sweep", settings: "Settings", retry: Collection[str]) -> None:
    """Looks for failed replicates of each condition in `retry` under a seed of the sweep.

    Raises:
        InputError: if the sweep has not run, or a condition is unknown or has none.
    """
    if isinstance(retry, str):
        raise InputError(f"`retry` must be a list of conditions, but got {retry!r}.")
    if not retry:
        return
    study = load_study(sweep.name, settings)
    failed = {one.condition for one in study.replicates if one.state == "failed" and one.seed in sweep.seeds}
    known = [*dict.fromkeys((*(condition.name for condition in sweep.conditions), *study.conditions))]
    for name in retry:
        if name not in known:
            raise InputError(f"{sweep.name} has no condition {name!r} to try again; there are {', '.join(known)}.")
        if name not in failed:
            others = ", ".join(one for one in known if one in failed) or "no condition"
            raise InputError(f"{name!r} has no failed replicate to try again; {others} has.")
