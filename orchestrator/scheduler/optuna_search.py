"""Which condition next: Optuna by ask and tell."""

import contextlib
import itertools
import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.scheduler.pruning import KEPT, decision_at, decision_on, is_pruned, is_stopped
from orchestrator.scheduler.search_store import (
    CONDITION,
    DECISION,
    DECLARED,
    RUNG,
    condition_of,
    declared,
    drawn_values,
    identity_of,
)
from orchestrator.scheduler.stop_request import Outage, StoppedError
from orchestrator.tracking import store as tracking_store
from orchestrator.tracking.availability import is_of_data
from orchestrator.tracking.damage import is_damage
from orchestrator.tracking.store import reason_of, unusable
from search_spaces.distributions import Distribution, Exponential, Integer, Real, listed
from search_spaces.halving import Rung
from search_spaces.redaction import redacted_uri
from search_spaces.sweep import Condition, Search, Sweep
from trainables.config import content_hash
from trainables.errors import InputError

T = TypeVar("T")

AWAY: Final = (StorageInternalError, SQLAlchemyError)
"""What Optuna raises while its database cannot be reached or written; the second where even giving up failed."""


class SearchedConditions:
    """Conditions that Optuna draws, one for each of its trials; the study is kept in a database, so a search goes on.

    Args:
        fingerprint: of the data; another corpus is another study.
        evaluation: `@NAME` of the one under which objectives and constraints are taken; empty where there is none.
        store: URI of Optuna's database, which any dashboard of Optuna opens.
        lock: a file that one process of this machine at a time holds while the database's tables are made.
        max_open: how many conditions may wait for their results at once.
        tell: told once when the database goes away.
    """

    def __init__(
        self,
        sweep: Sweep,
        fingerprint: str,
        evaluation: str,
        store: str,
        lock: Path,
        max_open: int,
        tell: Callable[[str], None],
    ) -> None:
        assert sweep.search is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._sweep, self._search, self._max_open, self._evaluation = sweep, sweep.search, max_open, evaluation
        self._objectives = [objective.metric for objective in sweep.objectives]
        self._identity = identity_of(sweep, fingerprint, evaluation)
        directions = [objective.direction for objective in sweep.objectives]
        self._signs = [-1.0 if direction == "maximize" else 1.0 for direction in directions]
        self._store, self._outage = store, Outage(tell)
        self._study = _open(store, lock, f"{sweep.name}-{self._identity}", directions, declared(sweep))
        self._seen: set[int] = set()
        self._numbers: dict[str, int] = {}
        self._open: dict[str, str] = {}
        self._held: list[Condition] = []
        self._untold: dict[str, Mapping[str, float] | None] = {}
        self._decisions: dict[str, str] = {}
        self._undecided: set[str] = set()
        self._whole: dict[str, Sequence[float]] = {}

    def more(self) -> Sequence[Condition]:
        """The conditions of earlier drivers first, then a newly drawn one, unless as many as may be are open.

        A condition with the config of an open one waits for that one, whatever was drawn: their replicates are the same
        work.

        None while Optuna's database cannot be written, such as on a full disk, or is away.

        Raises:
            StoppedError: if it has been so for too long, and no condition waits for its result.
        """
        return self._while_away(self._more) or []

    def _while_away(self, ask: Callable[[], T]) -> T | None:
        """The answer of Optuna's database; None while that is away."""
        try:
            answer = ask()
        except AWAY as error:
            cause = error.__cause__ or error
            if is_damage(cause):
                raise InputError(unusable(self._store, cause, "Optuna's database")) from None
            reason = reason_of(cause, self._store)
            if is_of_data(cause):
                refusal = f"Optuna's database {redacted_uri(self._store)} takes no such value: {reason}"
                raise InputError(refusal) from error
            stopped = StoppedError(f"Optuna's database {redacted_uri(self._store)} does not answer: {reason}.")
            self._outage.tolerate(stopped, is_idle=self._open.keys() <= self._undecided)
            return None
        self._outage.is_over()
        return answer

    def _more(self) -> Sequence[Condition]:
        for name, metrics in list(self._untold.items()):
            self._tell(name, metrics)
        waiting, self._held = [*self._held, *self._drawn()], []
        given = []
        for condition in waiting:
            key = content_hash(self._sweep.config(condition, self._sweep.seeds[0]))
            if key in self._open.values():
                self._held.append(condition)
            else:
                self._open[condition.name] = key
                given.append(condition)
        return given

    def _drawn(self) -> Sequence[Condition]:
        known = self._study.get_trials(deepcopy=False)
        earlier = [t for t in known if t.number not in self._seen and t.state != TrialState.WAITING]
        if earlier:
            # Optuna is told of all that are cut off before any is taken as seen: where that fails, all come again.
            whole = []
            for trial in earlier:
                if set(trial.params) == set(self._search.space):
                    whole.append(trial)
                    continue
                if not trial.state.is_finished():  # its driver was killed while it drew; another trial comes instead
                    self._study.tell(trial.number, state=TrialState.FAIL)
                self._seen.add(trial.number)
            return [self._condition(trial) for trial in whole]
        is_enough = max(len(self._open), len(self._held)) >= self._max_open
        if is_enough or len(self._numbers) >= self._search.num_settings():
            return []
        self._study.sampler = _sampler(self._search, len(self._numbers))
        if self._search.sampler == "grid" and all(trial.state != TrialState.WAITING for trial in known):
            self._study.enqueue_trial(_next_point(self._search, known))
        drawn = self._study.ask({path: to_optuna(values) for path, values in self._search.space.items()})
        return [self._condition(self._study.get_trials(deepcopy=False)[drawn.number])]

    def is_exhausted(self) -> bool:
        """Whether all trials were drawn, and Optuna knows all results."""
        return len(self._numbers) >= self._search.num_settings() and not self._untold and not self._held

    def num_undrawn(self) -> int:
        """The number of trials that are still to be drawn, or to be given."""
        return max(0, self._search.num_settings() - len(self._numbers)) + len(self._held)

    def decided(self, condition: Condition) -> str:
        """The decision on a condition, of this driver or an earlier one; it holds whatever the sweep declares now."""
        return self._decisions.get(condition.name, "")

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        """Decides once, also over restarts, whether it gets its other seeds; empty while the database is away.

        Raises:
            StoppedError: as `more`.
        """
        if condition.name not in self._decisions:
            self._undecided.add(condition.name)
            self._decisions |= self._while_away(lambda: self._decide(condition.name, first, has_begun)) or {}
        if condition.name in self._decisions:
            self._undecided.discard(condition.name)
        return self.decided(condition)

    def _decide(self, name: str, first: Mapping[str, float], has_begun: bool) -> dict[str, str]:
        frozen = self._study.get_trials(deepcopy=False)[self._numbers[name]]
        if decision := _decision(frozen):
            return {name: decision}
        is_kept = has_begun or frozen.state.is_finished() or not self._search.pruned
        decision = KEPT if is_kept else decision_on(self._row(first), self._whole)
        if not frozen.state.is_finished():
            trial = optuna.trial.Trial(self._study, frozen._trial_id)
            trial.set_user_attr(CONDITION, name)
            trial.set_user_attr(DECISION, decision)
        return {name: decision}

    def halve(self, condition: Condition, rung: Rung, num_steps: int | None) -> str | None:
        """Decides once, also over restarts, whether its first seed goes on at a rung; None while the database is away.

        Raises:
            StoppedError: as `more`.
        """
        decision = self._while_away(lambda: self._halve(condition.name, rung, num_steps))
        if decision:
            self._decisions[condition.name] = decision
        return decision

    def _halve(self, name: str, rung: Rung, num_steps: int | None) -> str:
        """The value and what it leads to are stored at once: a driver that is killed behind that changes nothing."""
        halving = self._search.halving
        assert halving is not None
        trials, attribute = self._study.get_trials(deepcopy=False), f"{RUNG}{rung.number}"
        own = trials[self._numbers[name]]
        there = {trial.number: trial.user_attrs[attribute] for trial in trials if attribute in trial.user_attrs}
        if own.number in there or own.state.is_finished():
            return str(there.get(own.number, {}).get("decision", ""))
        # An entry of another metric, or of a version that did not note it, is none to compare with: a stop is final.
        by = {"metric": halving.metric, "direction": halving.direction}
        alike = {number: known for number, known in there.items() if known.items() >= by.items()}
        # The same settings drawn twice are one piece of work, and their curve was judged already.
        twin = next(
            (alike[trial.number] for trial in trials if trial.number in alike and trial.params == own.params), None
        )
        others = [known["value"] for known in alike.values()]
        decision = twin["decision"] if twin else decision_at(rung, others, halving, num_steps)
        trial = optuna.trial.Trial(self._study, own._trial_id)
        trial.set_user_attr(attribute, {"value": rung.value, "decision": decision, **by})
        # Optuna takes values on the way of one objective only, and reads them by its direction.
        if self._signs == [halving.cost(1.0)]:
            trial.report(rung.value, rung.number)
        return str(decision)

    def _row(self, metrics: Mapping[str, float]) -> Sequence[float]:
        """What is ranked, less is better: the objectives, and by how much each constraint is missed."""
        values = [self._mean(name, metrics) for name in self._objectives]
        missed = [max(0.0, self._mean(c.metric, metrics) - c.at_most) for c in self._search.constraints]
        return [sign * value for sign, value in zip(self._signs, values, strict=True)] + missed

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None, decision: str = "") -> None:
        """Takes the means of a condition whose replicates are all in; Optuna learns them once, also over restarts.

        Args:
            decision: on the condition, where another search of the sweep may have made it.
        """
        self._open.pop(condition.name, None)
        if decision:
            self._decisions[condition.name] = decision
        if self._search.pruned and metrics is not None and not is_pruned(self.decided(condition)):
            self._whole[condition.name] = self._row(metrics)
        self._untold[condition.name] = metrics
        with contextlib.suppress(*AWAY):  # told again before the next is drawn
            self._tell(condition.name, metrics)

    def _tell(self, name: str, metrics: Mapping[str, float] | None) -> None:
        frozen = self._study.get_trials(deepcopy=False)[self._numbers[name]]
        if not frozen.state.is_finished():
            self._tell_open(name, frozen, metrics)
        del self._untold[name]

    def _tell_open(self, name: str, frozen: FrozenTrial, metrics: Mapping[str, float] | None) -> None:
        trial = optuna.trial.Trial(self._study, frozen._trial_id)
        if is_stopped(decision := self._decisions.get(name, "")):
            trial.set_user_attr(CONDITION, name)
            trial.set_user_attr(DECISION, decision)
            self._study.tell(frozen.number, state=TrialState.PRUNED)
            return
        if metrics is None:
            self._study.tell(frozen.number, state=TrialState.FAIL)
            return
        values = [self._mean(name, metrics) for name in self._objectives]
        over = {c.metric: self._mean(c.metric, metrics) - c.at_most for c in self._search.constraints}
        if not all(map(math.isfinite, [*values, *over.values()])):  # as Optuna itself ends one by its values
            self._study.tell(frozen.number, state=TrialState.FAIL)
            return
        for metric, missed_by in over.items():
            if metric not in trial.constraints:
                trial.set_constraint(metric, missed_by)
        self._study.tell(frozen.number, values)

    def _mean(self, name: str, metrics: Mapping[str, float]) -> float:
        mean = metrics.get(name + self._evaluation, metrics.get(name))
        if mean is None:
            raise InputError(f"The metric {name!r} of the search is not among {', '.join(sorted(metrics))}.")
        return mean

    def _condition(self, trial: FrozenTrial) -> Condition:
        values = drawn_values(trial.params, self._search.space)
        name = condition_of(trial.number, values, self._identity)
        self._seen.add(trial.number)
        self._numbers[name] = trial.number
        is_one_first = self._search.pruned or self._search.halving is not None
        is_whole = is_one_first and trial.state == TrialState.COMPLETE  # so it was before that was asked for
        if decision := _decision(trial) or (KEPT if is_whole else ""):
            self._decisions[name] = decision
        return Condition(name, values, settings=self._search.settings)


def _decision(trial: FrozenTrial) -> str:
    """What a driver has decided of its condition; empty before that."""
    rungs = (known["decision"] for name, known in trial.user_attrs.items() if name.startswith(RUNG))
    return str(trial.user_attrs.get(DECISION) or next(filter(None, rungs), ""))


def _open(
    store: str,
    lock: Path,
    name: str,
    directions: Sequence[Literal["minimize", "maximize"]],
    attribute: Mapping[str, Any],
) -> optuna.Study:
    """Waits for an SQLite file that another process writes; asks whether a server's connection still lives."""
    uri = tracking_store.address(store)
    is_file = uri.startswith("sqlite:")
    tracking_store.check_file(store, "Optuna's database")
    options: dict[str, Any] = {"connect_args": {"timeout": 60}} if is_file else {"pool_pre_ping": True}
    try:
        with tracking_store.made_once(uri, lock):
            storage = RDBStorage(uri, engine_kwargs=options)
            study = optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
        if DECLARED not in study.user_attrs:  # it has, unless it is new or an earlier version's
            study.set_user_attr(DECLARED, attribute)
        return study
    except (*AWAY, ImportError, ValueError) as error:
        raise InputError(unusable(store, error.__cause__ or error, "Optuna's database")) from None
    except RuntimeError as error:  # Optuna's word on tables that are not those of its version
        reason = f"{error} Optuna needs its own database, not MLflow's."
    raise InputError(f"Optuna's database {redacted_uri(store)} cannot be opened: {reason}")


def _sampler(search: Search, number: int) -> optuna.samplers.BaseSampler:
    """A sampler whose stream belongs to the trial's number, so that a restart does not draw the same points again."""
    seed = int(content_hash(search.seed, number), 16) % 2**32
    match search.sampler:
        case "tpe":
            return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed)
        case "random" | "grid":  # whose points are enqueued
            return optuna.samplers.RandomSampler(seed=seed)
        case "gp":
            return _quietly(optuna.samplers.GPSampler, seed=seed, warn_independent_sampling=False)
        case "qmc":  # one sequence: its place in it is kept in the study
            return _quietly(
                optuna.samplers.QMCSampler, scramble=True, seed=search.seed, warn_independent_sampling=False
            )


def _next_point(search: Search, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """The first point of the grid, in an order by the search's seed, that no trial has drawn whole.

    Optuna's own grid would leave out the point of a driver that was killed while it drew.
    """
    rows = itertools.product(*(listed(distribution) for distribution in search.space.values()))
    points = [dict(zip(search.space, row, strict=True)) for row in rows]
    random.Random(search.seed).shuffle(points)
    for trial in trials:
        if trial.params in points:
            points.remove(trial.params)
    return points[0]


def _quietly(sampler: type[optuna.samplers.BaseSampler], **options: Any) -> optuna.samplers.BaseSampler:
    """Optuna warns each time that these are young."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return sampler(**options)


def to_optuna(distribution: Distribution) -> BaseDistribution:
    """The distribution in Optuna's own type; of one that Optuna does not know, that of its quantile."""
    match distribution:
        case Real():
            return FloatDistribution(distribution.low, distribution.high, log=distribution.log)
        case Integer():
            return IntDistribution(distribution.low, distribution.high, log=distribution.log)
        case Exponential():
            return FloatDistribution(0.0, 1.0)
        case _:
            return CategoricalDistribution(distribution.values)
