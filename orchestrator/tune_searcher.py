"""The searcher through which Ray Tune asks a plan for work."""

import json
from typing import Any

from ray.tune import Callback
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from orchestrator.plan import Plan


class PlanSearcher(Searcher):
    """Hands a plan's work to Ray Tune and its results back; judges nothing itself.

    Method and argument names are Ray's. Nothing is saved for Ray's own restore: the plan finds out from the journals.
    """

    def __init__(self, plan: Plan | None) -> None:
        super().__init__()
        self._live_plan = plan
        self._keys: dict[str, str] = {}
        self._lost: set[str] = set()

    @property
    def _plan(self) -> Plan:
        if self._live_plan is None:
            raise RuntimeError("A searcher that was pickled has no plan; run the sweep again instead of restoring it.")
        return self._live_plan

    def suggest(self, trial_id: str) -> dict[str, str] | str | None:  # type: ignore[override]
        """The next work as JSON, None while it has to wait, FINISHED when nothing is left."""
        for lost in list(self._lost):
            self.end_lost(lost)
        work = self._plan.next()
        if work is None:
            return str(Searcher.FINISHED) if self._plan.is_finished() or self._plan.stopping.reason else None
        self._keys[trial_id] = work.key
        return {"work": work.model_dump_json()}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Records on their way."""
        for record in json.loads(result.get("records", "[]")):
            self._plan.reported(self._keys[trial_id], record)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The end of a trial, its last record with it."""
        if trial_id not in self._keys:
            return
        if result:
            self.on_trial_result(trial_id, result)
        if error:
            self._lost.add(trial_id)  # Ray tells why right after, in a callback
        else:
            self._plan.ended(self._keys.pop(trial_id))

    def end_lost(self, trial_id: str, cause: str = "") -> None:
        """The end of a trial that could not say it itself, because of `cause`."""
        if trial_id in self._lost:
            self._lost.discard(trial_id)
            self._plan.ended(self._keys.pop(trial_id), lost=f"its worker was lost{': ' * bool(cause)}{cause}")

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


class LostTrials(Callback):
    """Hears from Ray why a trial was lost, and passes it on."""

    def __init__(self, searcher: PlanSearcher) -> None:
        self._searcher = searcher

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Called after the searcher was told that the trial is over."""
        self._searcher.end_lost(trial.trial_id, cause_of(str(trial.get_error() or "")))


def cause_of(error: str) -> str:
    """The line of what Ray writes about a lost worker that says most: its exit, else an exception's last line."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    telling = [line for line in lines if "memory" in line.lower() or "exit detail" in line or "is dead because" in line]
    return (telling or lines[-1:] or [""])[0][:300]
