"""A choice runs again on fresh seeds: what a search or a front has chosen, under seeds that chose nothing.

The mean that made a condition the best of many owes a part to the luck of its seeds, so it flatters. Seeds that were
named before anything ran under them have no such part in their means.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.pareto.front import front
from orchestrator.report.answers import MOST_OBJECTIVES
from orchestrator.results.lookup import no_points
from orchestrator.results.trials import Trials
from orchestrator.tracking.load import load_declaration, load_study
from search_spaces.confirmation import Confirmation
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError

ENDING: Final = ".confirm"
MOST_CHOSEN: Final = 12


def confirmation(sweep: Sweep, settings: Settings, num_seeds: int, names: Collection[str] = ()) -> Sweep:
    """The sweep `NAME.confirm`: the conditions on the front of the study of `sweep`, under fresh seeds.

    With them the reference, so that they are compared with it under the same seeds. The choice is recorded with its
    study: asked for again, it is the same, whatever has been run of `sweep` since.

    Args:
        names: conditions to confirm instead of those on the front.

    Raises:
        InputError: if the sweep has no results, a condition is not declared as it was run, the front has too many
            conditions, or others were confirmed before.
    """
    name = sweep.name + ENDING
    known = json.loads(load_declaration(name, settings) or "{}")
    if "confirms" in known:
        confirms, first = Confirmation(**known["confirms"]), known["seeds"][0]
        if names and set(names) != set(confirms.means):
            raise InputError(
                f"{name} confirms {', '.join(confirms.means)}; remove it by `ponderay rm {name}` to choose others."
            )
    else:
        confirms, first = _choice(sweep, settings, names)
    listed = _conditions(sweep, settings, list(confirms.means))
    reference = sweep.condition(sweep.reference) if sweep.reference else None
    if reference and reference not in listed:
        listed = [reference, *listed]
    return replace(
        sweep,
        name=name,
        description=f"Fresh seeds for what was chosen of {confirms.num_conditions:,} conditions of {sweep.name}.",
        conditions=tuple(listed),
        search=None,
        sequential=None,
        seeds=tuple(range(first, first + num_seeds)),
        declared_at="",
        claims="",
        confirms=confirms,
    )


def _choice(sweep: Sweep, settings: Settings, names: Collection[str]) -> tuple[Confirmation, int]:
    """What is confirmed, and the first seed that no replicate of it has had."""
    study = load_study(sweep.name, settings)
    objectives = sweep.objectives[:MOST_OBJECTIVES]
    points = front(study, objectives)
    if not points:
        raise no_points(study, objectives)
    if unknown := sorted(set(names) - {point.condition for point in points}):
        raise InputError(f"{sweep.name} has no complete condition {unknown[0]!r}; see `ponderay status {sweep.name}`.")
    chosen = [point for point in points if (point.condition in names if names else point.is_front)]
    means: dict[str, dict[str, float]] = {}
    for point in chosen:
        for objective, summary in zip(objectives, point.summaries, strict=True):
            means.setdefault(point.condition, {})[point.named(objective.metric)] = summary.mean
    if len(means) > MOST_CHOSEN:
        raise InputError(
            f"At most {MOST_CHOSEN} conditions are confirmed at once, but {len(means):,} of {sweep.name} are on the "
            f"front; name those that matter by --condition, such as {next(iter(means))!r}."
        )
    first = max(*(replicate.seed for replicate in study.replicates), *sweep.seeds) + 1
    return Confirmation(sweep.name, len({point.condition for point in points}), means), first


def _conditions(sweep: Sweep, settings: Settings, names: Sequence[str]) -> list[Condition]:
    """The conditions of these names with their values: listed ones, or draws that Optuna's database still has."""
    if sweep.search is None:
        return [sweep.condition(name) for name in names]
    from orchestrator.scheduler.search_store import read_trials  # loads Optuna

    drawn = drawn_conditions(sweep, read_trials(sweep, settings))
    if lacking := [name for name in names if name not in drawn]:
        raise InputError(
            f"Optuna's database does not have {lacking[0]!r} of {sweep.name} with the space that it declares now; "
            "confirm it where it was searched, with the sweep as it was."
        )
    return [drawn[name] for name in names]


def drawn_conditions(sweep: Sweep, trials: Trials) -> dict[str, Condition]:
    """The conditions of a search by name, with the values that its trials drew."""
    from orchestrator.scheduler.search_store import drawn_values

    assert sweep.search is not None
    space, own = sweep.search.space, sweep.search.settings
    return {
        trial.condition: Condition(trial.condition, drawn_values(trial.drawn, space), settings=own)
        for trial in trials.trials
    }
