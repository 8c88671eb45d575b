"""What each replicate comes to when it is run by itself, in this process, by nothing but its trainable."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks.faulty import first, trainable
from benchmarks.faulty.trainable import FaultyConfig
from trainables import rng

State = Literal["complete", "failed"]


@dataclass(frozen=True)
class Expected:
    """How a replicate ends.

    Attributes:
        metrics: the last value of each.
        recorded: the same as MLflow tells it, to which the last is that of the highest step.
        num_reports: steps that it reports before it ends.
    """

    state: State
    metrics: Mapping[str, float]
    recorded: Mapping[str, float]
    num_reports: int


@dataclass
class AloneTrial:
    """A `Trial` that keeps everything: metrics in memory, checkpoints by step."""

    folder: Path
    first: Path | None = None
    rows: dict[int, dict[str, float]] = field(default_factory=dict)

    def report(
        self,
        metrics: Mapping[str, float],
        *,
        step: int,
        checkpoint: Path | None = None,
        artifacts: Sequence[Path] = (),
    ) -> None:
        """Keeps `metrics` and a copy of `checkpoint`."""
        self.rows[step] = dict(metrics)
        if checkpoint:
            shutil.copyfile(checkpoint, self.path(step))

    def restore(self) -> Path | None:
        """It starts anew."""
        return None

    def prerequisite(self, name: str) -> Path:
        """That of the one prerequisite."""
        assert self.first is not None
        return self.first

    def path(self, step: int) -> Path:
        """The checkpoint of a step."""
        return self.folder / f"{step}.pt"


@cache
def expected(config: FaultyConfig) -> Expected:
    """The end of the replicate with this config, which must not order faults."""
    config = config.model_copy(update={"sleep_s": 0.0})
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / part for part in ("first", "train", "evaluate")]
        for folder in folders:
            folder.mkdir()
        before = AloneTrial(folders[0])
        first.train(config.first.model_copy(update={"sleep_s": 0.0}), before)
        trial = AloneTrial(folders[1], before.path(max(before.rows)))
        streams = rng.capture()
        try:
            trainable.train(config, trial)
        except ArithmeticError:
            return Expected("failed", _last(trial), _last(trial), len(trial.rows))
        finally:
            rng.put_back(streams)
        best = min(trial.rows, key=lambda step: (trial.rows[step]["valid_error@plain"], step))
        test = AloneTrial(folders[2])
        trainable.evaluate(config, trial.path(best), config.evaluations[0], test)
        found = test.rows[best] | {"checkpoint_step": float(best)}
        tested = {f"{metric}@plain": value for metric, value in found.items()}
        return Expected("complete", _last(trial) | tested, tested | _last(trial), len(trial.rows))


def _last(trial: AloneTrial) -> dict[str, float]:
    return {metric: value for row in trial.rows.values() for metric, value in row.items()}
