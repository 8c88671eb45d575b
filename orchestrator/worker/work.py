"""A piece of work as it travels to a worker: one training run, named by its key."""

import importlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict

from orchestrator.worker.trainable import Trainable, load
from search_spaces.resources import ResolvedResources
from trainables.config import AnyConfig, content_hash, restored
from trainables.errors import InputError

MOST_NAMED: Final = 20
"""Metrics in a message."""


class Work(BaseModel):
    """One replicate or prerequisite to train and evaluate.

    Attributes:
        key: hash of everything that decides the result.
        label: for people, `surprisal seed 1`.
        root: folder from which the trainable is imported, where it is not installed.
        config_type: `module:NAME` of the config's type; empty where `train` says it.
        objectives: metrics without which it has no result, as it reports them: `loss`, or `loss@test` of an evaluation.
        constraints: the same of a search's constraints; also that of training, `loss`, is one where `loss@test` lacks.
        num_steps: the last step that `train` reports; None where it is not known before.
        folder: its journal and checkpoints, on storage that all machines see, or each machine's own copy of `shared`.
        shared: URL at which all machines see them; empty where they see `folder`.
        products: folder of each finished prerequisite by name.
        shared_products: URL of each, where they have one.
        attempt: names the driver that handed it out, and which time it did.
        code_version: of the trainable's sources.
        host: where they were read; every process that does the work compares its own.
        mark: of the folder around `folder`, where that is not behind a URL; other machines must see the same.
        working_folder: of the command, where a trainable's relative paths begin; None: that of the process.
        keep_last: keep the last checkpoints beside the best ones when it is complete.
        part: sweep, condition, seed, changed settings and data fingerprint; the journal alone then says what it is of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    label: str
    trainable: str
    root: str = ""
    config: dict[str, Any]
    config_type: str = ""
    objectives: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    num_steps: int | None
    folder: Path
    shared: str = ""
    products: dict[str, Path] = {}
    shared_products: dict[str, str] = {}
    resources: ResolvedResources
    attempt: str
    code_version: str
    host: str = ""
    mark: str = ""
    working_folder: Path | None = None
    keep_last: bool = False
    part: dict[str, Any] = {}

    def lacking(self, metrics: Collection[str], evaluation: str | None = None) -> str:
        """A sentence: that an objective or a constraint is not among what it reported; empty where all are.

        Args:
            evaluation: look at those of this one alone; default: at all.
        """
        end = "" if evaluation is None else f"@{evaluation}"
        for name in (metric for metric in (*self.objectives, *self.constraints) if metric.endswith(end)):
            plain, at, under = name.partition("@")
            if name not in metrics and not (name in self.constraints and plain in metrics):
                what = "objective" if name in self.objectives else "constraint's metric"
                reported = sorted(metric.removesuffix(at + under) for metric in metrics if metric.endswith(at + under))
                where = f" under {under!r}" if under else ""
                names = ", ".join(reported[:MOST_NAMED]) or "nothing"
                return f"The {what} {plain!r} is not among what {self.trainable} reports{where}: {names}."
        return ""

    @property
    def planned_steps(self) -> int:
        """`num_steps`; 0 where it is not known."""
        return self.num_steps or 0

    def loaded(self) -> Trainable:
        """The trainable."""
        return load(self.trainable, self.root)

    def typed_config(self) -> AnyConfig:
        """The config in its own type, with its secrets.

        Raises:
            InputError: if this process does not have one.
        """
        trainable = self.loaded()
        if not self.config_type:
            return restored(get_type_hints(trainable.module.train)["config"], self.config)
        module, _, name = self.config_type.partition(":")
        return restored(getattr(importlib.import_module(module), name), self.config)


def config_type(config: AnyConfig) -> str:
    """The name by which a worker finds the config's type.

    Raises:
        InputError: if it has none, because it was made inside a function.
    """
    kind = type(config)
    if kind.__module__ == "__main__":
        raise InputError(f"Workers import the config {kind.__qualname__}, so it must stand in a file; put it into one.")
    if getattr(importlib.import_module(kind.__module__), kind.__qualname__, None) is not kind:
        raise InputError(f"The config {kind.__qualname__} must stand at the top of its module, {kind.__module__}.")
    return f"{kind.__module__}:{kind.__qualname__}"


def evaluation_id(evaluation: Any) -> str:
    """Name and setting of an evaluation: `stochastic.0123456789abcdef`."""
    return f"{evaluation.name}.{content_hash(evaluation)}"


def evaluation_ids(trainable: Trainable, config: AnyConfig) -> frozenset[str]:
    """The ids of every evaluation that a config asks for."""
    return frozenset(evaluation_id(evaluation) for evaluation in trainable.evaluations(config))
