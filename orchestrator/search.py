"""Which condition next: Optuna by ask and tell; and the searcher through which Ray Tune asks a plan."""

import json
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState
from ray.tune.search import Searcher

from orchestrator.plan import Plan
from search_spaces.distributions import Distribution, Exponential, Integer, Real
from search_spaces.sweep import Condition, Search, Sweep, condition_name
from trainables.config import content_hash


class SearchedConditions:
    """Conditions that Optuna draws, one for each of its trials; the study is kept in a database, so a search goes on.

    Args:
        fingerprint: of the data; another corpus is another study.
        storage: URL of Optuna's database.
        max_open: how many conditions may wait for their results at once.
    """

    def __init__(self, sweep: Sweep, fingerprint: str, storage: str, max_open: int) -> None:
        assert sweep.search is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._search, self._max_open = sweep.search, max_open
        space = {path: repr(distribution) for path, distribution in sweep.search.space.items()}
        self._study = optuna.create_study(
            study_name=f"{sweep.name}-{content_hash(space, sweep.base, sweep.search.sampler, fingerprint)}",
            storage=storage,
            directions=[objective.direction for objective in sweep.objectives],
            load_if_exists=True,
        )
        self._numbers: dict[str, int] = {}
        self._open: set[str] = set()

    def more(self) -> Sequence[Condition]:
        """Those of earlier drivers first, then one newly asked, unless as many as may be are open."""
        earlier = [t for t in self._study.get_trials(deepcopy=False) if t.number not in self._numbers.values()]
        if earlier:
            return [self._condition(trial) for trial in earlier]
        if len(self._open) >= self._max_open or self.is_exhausted():
            return []
        self._study.sampler = _sampler(self._search, len(self._numbers))
        trial = self._study.ask(_to_optuna(self._search.space))
        return [self._condition(self._study.get_trials(deepcopy=False)[trial.number])]

    def is_exhausted(self) -> bool:
        """Whether all trials were asked for."""
        return len(self._numbers) >= self._search.num_trials

    def tell(self, condition: Condition, values: Sequence[float] | None) -> None:
        """The means of a condition whose replicates are all in; told only once, also over restarts."""
        self._open.discard(condition.name)
        number = self._numbers[condition.name]
        if not self._study.get_trials(deepcopy=False)[number].state.is_finished():
            self._study.tell(number, values, state=None if values else TrialState.FAIL)

    def _condition(self, trial: FrozenTrial) -> Condition:
        values = {path: _value(self._search.space[path], drawn) for path, drawn in trial.params.items()}
        name = f"{trial.number:04d} {condition_name(values, num_digits=3)}"
        self._numbers[name] = trial.number
        self._open.add(name)
        return Condition(name, values)


def _sampler(search: Search, number: int) -> optuna.samplers.BaseSampler:
    """A sampler whose stream belongs to the trial's number, so that a restart does not draw the same points again."""
    seed = int(content_hash(search.seed, number), 16) % 2**32
    match search.sampler:
        case "tpe":
            return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed)
        case "random":
            return optuna.samplers.RandomSampler(seed=seed)


def _to_optuna(space: Any) -> dict[str, BaseDistribution]:
    return {path: _one_to_optuna(distribution) for path, distribution in space.items()}


def _one_to_optuna(distribution: Distribution) -> BaseDistribution:
    match distribution:
        case Real():
            return FloatDistribution(distribution.low, distribution.high, log=distribution.log)
        case Integer():
            return IntDistribution(distribution.low, distribution.high, log=distribution.log)
        case Exponential():
            return FloatDistribution(0.0, 1.0)
        case _:
            return CategoricalDistribution(distribution.values)


def _value(distribution: Distribution, drawn: Any) -> Any:
    """What Optuna has drawn; of a distribution that it does not know it draws the quantile."""
    return distribution.quantile(drawn) if isinstance(distribution, Exponential) else drawn


class PlanSearcher(Searcher):
    """Hands a plan's work to Ray Tune and its results back; judges nothing itself.

    Method and argument names are Ray's. Nothing is saved for Ray's own restore: the plan finds out from the journals.
    """

    def __init__(self, plan: Plan | None) -> None:
        super().__init__()
        self._live_plan = plan
        self._keys: dict[str, str] = {}

    @property
    def _plan(self) -> Plan:
        if self._live_plan is None:
            raise RuntimeError("A searcher that was pickled has no plan; run the sweep again instead of restoring it.")
        return self._live_plan

    def suggest(self, trial_id: str) -> dict[str, str] | str | None:  # type: ignore[override]
        """The next work as JSON, None while it has to wait, FINISHED when nothing is left."""
        work = self._plan.next()
        if work is None:
            return str(Searcher.FINISHED) if self._plan.is_finished() else None
        self._keys[trial_id] = work.key
        return {"work": work.model_dump_json()}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """A record on its way."""
        if "record" in result:
            self._plan.reported(self._keys[trial_id], json.loads(result["record"]))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The end of a trial, its last record with it."""
        if trial_id not in self._keys:
            return
        if result:
            self.on_trial_result(trial_id, result)
        self._plan.ended(self._keys.pop(trial_id), lost="its worker was lost" if error else "")

    def __reduce__(self) -> tuple[type, tuple[None]]:
        """A Tuner pickles its searcher for a restore that is never made; the plan's live handles stay here."""
        return PlanSearcher, (None,)

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""

    def get_state(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def save_to_dir(self, checkpoint_dir: str, session_str: str = "default") -> None:
        """Nothing to save."""
