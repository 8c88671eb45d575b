"""A choice runs again on fresh seeds: what a search or a front has chosen, under seeds that chose nothing.

The mean that made a condition the best of many owes a part to the luck of its seeds, so it flatters. Seeds that were
named before anything ran under them have no such part in their means.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import read_study_file
from orchestrator.journal.summary import JournalSummary
from orchestrator.pareto.front import MOST_OBJECTIVES, front
from orchestrator.results.constraints import missed
from orchestrator.results.lookup import no_points
from orchestrator.scheduler.earlier_results import EarlierResults
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import load_declaration, load_if_run, load_study
from search_spaces.confirmation import ENDING, Confirmation
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError

MOST_CHOSEN: Final = 12


def confirmation(
    sweep: Sweep, settings: Settings, num_seeds: int, names: Collection[str] = (), accept_code: bool = False
) -> Sweep:
    """The sweep `NAME.confirm`: the conditions on the front of the study of `sweep`, under fresh seeds.

    With them the reference, so that they are compared with it under the same seeds. The choice is recorded with its
    study: asked for again, it is the same, whatever has been run of `sweep` since.

    Args:
        names: conditions to confirm instead of those on the front.
        accept_code: confirm by other code than what the conditions were chosen under.

    Raises:
        InputError: if the sweep has no results, a condition is not declared, the front has too many conditions, or
            others were confirmed before.
        RefusedError: if a condition would be trained otherwise than it was when it was chosen.
    """
    name = sweep.name + ENDING
    known: dict[str, Any] = {}
    if load_if_run(name, settings):  # MLflow keeps the declaration of a study that was removed
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
    chosen = replace(sweep, conditions=tuple(listed), search=None, sequential=None, reference=None)
    _check_unchanged(chosen, settings, accept_code)
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
    if not names and (over := missed(study, sweep.search.constraints if sweep.search else ())):
        kept = study.of_conditions([name for name in study.conditions if name not in over])
        points = front(kept, objectives) or points  # where none keeps the constraints, the front is of all
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
        known = {condition.name: condition for condition in sweep.conditions}
        place = f"{sweep.name} does not declare"
    else:
        from orchestrator.scheduler.search_store import drawn_conditions  # loads Optuna

        known, place = drawn_conditions(sweep, settings), "Optuna's database does not have"
    if lacking := [name for name in names if name not in known]:
        raise InputError(
            f"{place} {lacking[0]!r}, which was chosen; confirm it where {sweep.name} ran, with the sweep and the "
            "--set as they were."
        )
    return [known[name] for name in names]


def _check_unchanged(sweep: Sweep, settings: Settings, accept_code: bool) -> None:
    """Raises RefusedError where a condition of the sweep would be trained otherwise than it was when it was chosen.

    Where its study is gone, the choice stays as it is recorded.
    """
    if (study := load_if_run(sweep.name, settings)) is None:
        return
    content = read_study_file(settings.replicates(sweep.name))
    chosen = study.of_conditions([condition.name for condition in sweep.conditions])
    factory = TaskFactory(sweep, settings, num_gpus=0)
    earlier = EarlierResults(chosen, factory, accept_code, code=content.code if content else {})
    for condition in sweep.conditions:
        seed = sweep.seeds[0]
        task = factory.replicate(condition, seed, factory.prerequisites(condition, seed))
        if rule := earlier.other_setting(task):
            raise RefusedError(f"{rule}, so fresh seeds would confirm another model. Confirm the sweep as it was.")
        if rule := earlier.other_code(task, JournalSummary()):
            raise RefusedError(f"{rule}, so fresh seeds would confirm another model. --accept-code does so.")
