"""Conditions, points and metrics of a study by the names that a user types; an unknown name lists the known ones."""

from collections.abc import Sequence

from orchestrator.results.points import Point
from orchestrator.results.study import Study
from search_spaces.known_names import known_names
from search_spaces.settings import declared_name, same_name
from search_spaces.sweep import Objective
from search_spaces.value_lists import is_list
from trainables.errors import InputError


def find_condition(study: Study, name: str) -> str:
    """The recorded condition of this name, or the only one that is it with settings, or begins with these whole words.

    The number with which a search begins its names will do without its zeros.

    Raises:
        InputError: if there is none, or several are meant.
    """
    name = same_name(name, study.conditions)
    if name in study.conditions:
        return name
    found = [own for own in study.conditions if declared_name(own, study.settings.get(own, ())) == name]
    if len(found) > 1:
        raise InputError(f"{name!r} is recorded with several settings; name one of {known_names(found)}.")
    start = f"{int(name):04}" if name.isascii() and name.isdigit() else name
    found = found or [own for own in study.conditions if start and own.startswith((f"{start} ", f"{start},"))]
    if len(found) > 1:
        raise InputError(f"{name!r} is the beginning of several conditions; name one of {known_names(found)}.")
    return found[0] if found else study.of(name)[0].condition


def find_points(study: Study, points: Sequence[Point], name: str) -> tuple[Point, ...]:
    """The points of a condition, or the one under the evaluation that is named after it.

    Raises:
        InputError: if there is no such condition or evaluation, or none of its replicates is complete.
    """
    condition, evaluation = parts_of(study, name)
    if evaluation and evaluation not in study.evaluations():
        raise InputError(
            f"{study.sweep} has no evaluation {evaluation!r}; it has {known_names(study.evaluations(), evaluation)}."
        )
    chosen = tuple(p for p in points if p.condition == condition and evaluation in ("", p.evaluation))
    if not chosen:
        is_ours = any(replicate.key for replicate in study.replicates)
        remedy = f"; `ponderay status {study.sweep}` shows its state" if is_ours else ""
        raise InputError(f"{name} must have a complete replicate with these metrics, but has none{remedy}.")
    return chosen


def parts_of(study: Study, name: str) -> tuple[str, str]:
    """Condition and evaluation of a point's name; a condition's own name may hold the sign between them.

    Raises:
        InputError: if there is no such condition, or several are it with settings.
    """
    condition, _, evaluation = name.rpartition("@")
    if name in study.conditions or not condition:
        return find_condition(study, name), ""
    return find_condition(study, condition), evaluation


def place_of(study: Study, name: str) -> tuple[str, str]:
    """As `parts_of`; of a study with one evaluation with that one, which the names of its points do not say."""
    (condition, evaluation), evaluations = parts_of(study, name), study.evaluations()
    return condition, evaluation or (evaluations[0] if len(evaluations) == 1 else "")


def check_objectives(study: Study, objectives: Sequence[Objective]) -> None:
    """Refuses objectives that are no metrics of the study.

    Raises:
        InputError: if one is no `Objective` with a direction, is named twice, or is reported by no replicate.
    """
    if not (is_list(objectives) and all(isinstance(one, Objective) for one in objectives)):
        raise InputError(f"`objectives` must be a list of Objective(METRIC, DIRECTION), but got {objectives!r}.")
    for objective in objectives:
        if objective.direction not in ("minimize", "maximize"):
            raise InputError(f"An objective is to minimize or maximize, but got {objective.direction!r}.")
    wanted = [objective.metric for objective in objectives]
    if len(set(wanted)) < len(wanted):
        raise InputError(f"Each objective must be named once, but got {', '.join(wanted)}.")
    known = list(dict.fromkeys(metric.partition("@")[0] for metric in study.metrics()))
    unknown = [metric for metric in wanted if metric not in (*known, *study.metrics())]
    if known and unknown:
        raise InputError(f"The objective {unknown[0]!r} must be a metric; there are {known_names(known, unknown[0])}.")


def no_points(study: Study, objectives: Sequence[Objective]) -> InputError:
    """The error for a study in which no point has all objectives."""
    known = list(dict.fromkeys(name for metric in study.metrics() for name in (metric, metric.partition("@")[0])))
    if known and (lacking := [objective.metric for objective in objectives if objective.metric not in known]):
        names = known_names(known, lacking[0])
        return InputError(f"No complete replicate of {study.sweep} has the metric {lacking[0]!r}; they have {names}.")
    metrics = " and ".join(objective.metric for objective in objectives)
    status = f"; see `ponderay status {study.sweep}`" if study.question is None else ""
    return InputError(f"No complete replicate of {study.sweep} has {metrics}{status}.")
