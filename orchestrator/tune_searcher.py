"""The searcher through which Ray Tune asks a plan for work."""

import json
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from orchestrator.plan import Plan


class PlanSearcher(Searcher):
    """Hands a plan's work to Ray Tune and its results back; judges nothing itself.

    Method and argument names are Ray's. Nothing is saved for Ray's own restore: the plan finds out from the journals.

    Args:
        folder: Tune's own; the errors of trials are read there.
    """

    def __init__(self, plan: Plan | None, folder: Path) -> None:
        super().__init__()
        self._live_plan, self._folder = plan, folder
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
        self._plan.ended(self._keys.pop(trial_id), lost=self._cause(trial_id) if error else "")

    def _cause(self, trial_id: str) -> str:
        """The last line of what Ray wrote about the end of a trial that could not say it itself."""
        lines = [
            line.strip()
            for file in self._folder.glob(f"*/*{trial_id}*/error.txt")
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.strip()
        ]
        return f"its worker was lost: {lines[-1][:300]}" if lines else "its worker was lost"

    def __reduce__(self) -> tuple[type, tuple[None, Path]]:
        """A Tuner pickles its searcher for a restore that is never made; the plan's live handles stay here."""
        return PlanSearcher, (None, self._folder)

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""

    def get_state(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def save_to_dir(self, checkpoint_dir: str, session_str: str = "default") -> None:
        """Nothing to save."""
