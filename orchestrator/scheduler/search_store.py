"""What the searches of a sweep have left in Optuna's database, for those who only read it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import optuna
from optuna.distributions import (
    BaseDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.environment.settings import Settings
from orchestrator.results.trials import Trial, Trials
from orchestrator.tracking.store import address, has_store, made_once, reason_of, unusable
from search_spaces.distributions import Distribution, Exponential
from search_spaces.names import condition_name_of
from search_spaces.redaction import redacted_uri
from search_spaces.settings import condition_name
from search_spaces.sweep import Condition, Sweep
from trainables.config import content_hash
from trainables.errors import InputError

CONDITION: Final = "ponderay.condition"
"""Attribute of a trial: the name of the condition that a pruned search has decided on."""

DECISION: Final = "ponderay.decision"
"""Attribute of a trial: that decision, as `pruning.decision_on` gives it."""

RUNG: Final = "ponderay.rung."
"""Attributes of a trial, one for each rung that its curve has reached: value there, of which metric, and decision."""

DECLARED: Final = "ponderay.declared"
"""Attribute of a study: the metrics that its values are of, and a hash of all that its sweep declared."""

UNREADABLE: Final = (StorageInternalError, SQLAlchemyError, ImportError, ValueError, RuntimeError)
"""What Optuna raises at a database that is away, or is none of its own."""


def studies(sweep: str, settings: Settings) -> list[optuna.Study]:
    """The studies of all searches called `sweep`; none where there is no database.

    Raises:
        UNREADABLE: if the database cannot be read.
    """
    if not has_store(settings.search_store):
        return []
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    uri = address(settings.search_store)
    with made_once(uri, settings.runs / "optuna.lock"):
        storage = RDBStorage(uri)
    pattern = re.compile(re.escape(sweep) + "-[0-9a-f]{16}")
    names = [name for name in optuna.get_all_study_names(storage) if pattern.fullmatch(name)]
    return [optuna.load_study(study_name=name, storage=storage) for name in names]


def decisions(sweep: str, settings: Settings) -> Mapping[str, str]:
    """What a pruned search has decided so far, by the condition's name.

    Raises:
        InputError: if the database cannot be read.
    """
    try:
        trials = [trial.user_attrs for study in studies(sweep, settings) for trial in study.get_trials(deepcopy=False)]
    except UNREADABLE as error:
        cause = error.__cause__ or error
        raise InputError(unusable(settings.search_store, cause, "Optuna's database")) from None
    return {known[CONDITION]: known[DECISION] for known in trials if DECISION in known}


def read_trials(sweep: Sweep, settings: Settings) -> Trials:
    """The results that the search `sweep` has so far.

    Of several searches of its name, for the same objectives, those of the one that is declared as `sweep` is; else, or
    of several such, those of the longest. Where Optuna's database is away or holds none, the notes say so.

    Raises:
        InputError: if the sweep is no search.
    """
    if sweep.search is None:
        raise InputError(f"{sweep.name} must be a search to have parameters, but its conditions are listed.")
    nothing = Trials(sweep.name, tuple(objective.metric for objective in sweep.objectives), {})
    store, space, now = settings.search_store, sweep.search.space, declared(sweep)
    directions = [objective.direction for objective in sweep.objectives]
    try:
        every = studies(sweep.name, settings)
        alike = [
            study
            for study in every
            if study.user_attrs.get(DECLARED, now)["objectives"] == now["objectives"]
            and [direction.name.lower() for direction in study.directions] == directions
        ]
        own = [study for study in alike if study.user_attrs.get(DECLARED) == now]
        searches = [_trials(study, space, nothing) for study in own or alike]
    except UNREADABLE as error:
        reason = reason_of(error.__cause__ or error, store)
        return replace(nothing, notes=(f"Optuna's database {redacted_uri(store)} cannot be read: {reason}",))
    if not searches:
        for_these = f" for {', '.join(nothing.objectives)}" if every else ""
        none = f"Optuna's database {redacted_uri(store)} holds no search of {sweep.name}{for_these}."
        return replace(nothing, notes=(none,))
    most = max(searches, key=lambda search: len(search.trials))
    which = "of most trials" if len(searches) > 1 else "that the sweep declares" if own else "for these objectives"
    several = f"{len(every)} searches have this name; this is the one {which}."
    return replace(most, notes=(several,) if len(every) > 1 else ())


def declared(sweep: Sweep) -> dict[str, Any]:
    """What `DECLARED` is of the search `sweep`; the data, which take time to read, are no part of it."""
    assert sweep.search is not None
    space, goals = space_and_goals(sweep)
    return {
        "objectives": [objective.metric for objective in sweep.objectives],
        "hash": content_hash(space, sweep.base, sweep.search.sampler, goals),
    }


def space_and_goals(sweep: Sweep) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The space of the search `sweep`, and what it minimizes, maximizes and must keep, ready for a hash."""
    assert sweep.search is not None
    space = {path: repr(distribution) for path, distribution in sweep.search.space.items()}
    return space, [vars(goal) for goal in (*sweep.objectives, *sweep.search.constraints)]


def identity_of(sweep: Sweep, fingerprint: str, evaluation: str) -> str:
    """A hash of all that a study's values depend on; conditions have it in their names too, numbered from 0 in each."""
    assert sweep.search is not None
    space, goals = space_and_goals(sweep)
    return content_hash(space, sweep.base, sweep.search.sampler, fingerprint, goals, evaluation)


def drawn_conditions(sweep: Sweep, settings: Settings, identity: str = "") -> dict[str, Condition]:
    """All that the searches called `sweep` have drawn, by name: what Optuna knows as failed, too, may be complete now.

    Args:
        identity: of the one search that is looked at; default: all.

    Raises:
        InputError: if the database cannot be read.
    """
    assert sweep.search is not None
    space, found = sweep.search.space, dict[str, Condition]()
    try:
        for study in studies(sweep.name, settings):
            own = study.study_name.rpartition("-")[2]
            for trial in study.get_trials(deepcopy=False) if identity in ("", own) else ():
                values = drawn_values(trial.params, space)
                name = condition_of(trial.number, values, own)
                found[name] = Condition(name, values, settings=sweep.search.settings)
    except UNREADABLE as error:
        raise InputError(unusable(settings.search_store, error.__cause__ or error, "Optuna's database")) from None
    return found


def dump_searches(sweep: str, settings: Settings) -> list[dict[str, Any]]:
    """All that Optuna's database has of the searches called `sweep`, as JSON has it."""
    return [
        {
            "name": study.study_name,
            "directions": [direction.name.lower() for direction in study.directions],
            "user_attrs": study.user_attrs,
            "trials": [
                {
                    "state": trial.state.name,
                    "values": trial.values,
                    "params": trial.params,
                    "distributions": {path: distribution_to_json(one) for path, one in trial.distributions.items()},
                    "user_attrs": trial.user_attrs,
                    "system_attrs": trial.system_attrs,
                    "intermediate_values": list(trial.intermediate_values.items()),
                }
                for trial in study.get_trials(deepcopy=False)
            ],
        }
        for study in studies(sweep, settings)
    ]


def load_searches(dumped: Sequence[Mapping[str, Any]], settings: Settings) -> bool:
    """Writes what `dump_searches` gave into Optuna's database, and returns whether this and nothing else is there now.

    A search that a cut-off try has begun to write gets the trials that it lacks; one with other trials stays as it is.
    """
    uri, is_there = address(settings.search_store), True
    for one in dumped:
        with made_once(uri, settings.runs / "optuna.lock"):
            storage = RDBStorage(uri)
        study = optuna.create_study(
            study_name=one["name"], storage=storage, directions=one["directions"], load_if_exists=True
        )
        drawn = [trial.params for trial in study.get_trials(deepcopy=False)]
        if drawn != [trial["params"] for trial in one["trials"][: len(drawn)]]:
            is_there = False
            continue
        for name in one["user_attrs"].keys() - study.user_attrs.keys():
            study.set_user_attr(name, one["user_attrs"][name])
        for trial in one["trials"][len(drawn) :]:
            distributions = {path: json_to_distribution(text) for path, text in trial["distributions"].items()}
            state, at_steps = TrialState[trial["state"]], dict(trial["intermediate_values"])
            study.add_trial(
                create_trial(
                    **{**trial, "state": state, "distributions": distributions, "intermediate_values": at_steps}
                )
            )
    return is_there


def delete_searches(sweep: str, settings: Settings) -> None:
    """Removes the searches called `sweep` from Optuna's database."""
    for study in studies(sweep, settings):
        optuna.delete_study(study_name=study.study_name, storage=address(settings.search_store))


def _trials(study: optuna.Study, space: Mapping[str, Distribution], nothing: Trials) -> Trials:
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    finite = [trial for trial in complete if all(map(math.isfinite, trial.values))]
    identity = study.study_name.rpartition("-")[2]
    names = (condition_of(trial.number, drawn_values(trial.params, space), identity) for trial in finite)
    trials = tuple(Trial(name, trial.params, tuple(trial.values)) for name, trial in zip(names, finite, strict=True))
    ranges = finite[0].distributions if finite else {}
    distributions = {path: distribution_to_json(_before_rounding(values)) for path, values in ranges.items()}
    return replace(nothing, distributions=distributions, trials=trials)


def _before_rounding(distribution: BaseDistribution) -> BaseDistribution:
    """What Optuna draws a value from: of integers half a step beyond both ends, so that these are as likely as others.

    Here, and not where the importance is computed: bundles of earlier versions keep their digits.
    """
    if not isinstance(distribution, IntDistribution) or distribution.single():
        return distribution
    beyond = distribution.step / 2
    return FloatDistribution(distribution.low - beyond, distribution.high + beyond, log=distribution.log)


def condition_of(number: int, values: Mapping[str, Any], identity: str) -> str:
    """The name of the condition with the values that the trial of this number, of the search `identity`, has drawn."""
    return condition_name_of(f"{number:04d} {condition_name(values, num_digits=3)} {identity[:4]}")


def drawn_values(params: Mapping[str, Any], space: Mapping[str, Distribution]) -> dict[str, Any]:
    """The settings that a trial has drawn; of a distribution that Optuna does not know it draws the quantile."""
    values = dict(params)
    for path, drawn in params.items():
        if isinstance(distribution := space.get(path), Exponential):
            values[path] = distribution.quantile(drawn)
    return values
