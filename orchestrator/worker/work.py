"""A piece of work as it travels to a worker: one training run, named by its key."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict

from search_spaces.sweep import ResolvedResources
from trainables.config import Config, content_hash
from trainables.errors import InputError

CONTRACT = ("train", "evaluate", "fingerprint", "selection", "num_steps")


class Work(BaseModel):
    """One replicate or prerequisite to train and evaluate.

    Attributes:
        key: hash of everything that decides the result.
        label: for people, `surprisal seed 1`.
        num_steps: the last step that `train` reports.
        folder: its journal and checkpoints, on storage that all machines see, or each machine's own copy of `shared`.
        shared: URL at which all machines see them; empty where they see `folder`.
        products: folder of each finished prerequisite by name.
        shared_products: URL of each, where they have one.
        attempt: names the driver that handed it out, and which time it did.
        code_version: of the trainable's sources.
        host: where they were read; other machines compare theirs.
        mark: of the folder around `folder`, where that is not behind a URL; other machines must see the same.
        keep_last: keep the last checkpoints beside the best ones when it is complete.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    label: str
    trainable: str
    config: dict[str, Any]
    num_steps: int
    folder: Path
    shared: str = ""
    products: dict[str, Path] = {}
    shared_products: dict[str, str] = {}
    resources: ResolvedResources
    attempt: str
    code_version: str
    host: str = ""
    mark: str = ""
    keep_last: bool = False

    def module(self) -> ModuleType:
        """The trainable."""
        return import_trainable(self.trainable)

    def typed_config(self) -> Config:
        """The config as the trainable's own type."""
        config_type: type[Config] = get_type_hints(self.module().train)["config"]
        return config_type.model_validate(self.config)


def evaluation_id(evaluation: Any) -> str:
    """Name and setting of an evaluation: `stochastic.0123456789abcdef`."""
    return f"{evaluation.name}.{content_hash(evaluation)}"


def evaluation_ids(config: Config) -> frozenset[str]:
    """Those of every evaluation that a config asks for."""
    return frozenset(evaluation_id(evaluation) for evaluation in getattr(config, "evaluations", ()))


def import_trainable(path: str) -> ModuleType:
    """The module at an import path.

    Raises:
        InputError: if it cannot be imported or has no `train`.
    """
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        raise InputError(f"The trainable {path!r} cannot be imported: {error}.") from None
    if not hasattr(module, "train"):
        raise InputError(f"The trainable {path!r} must have {', '.join(CONTRACT)}, but has no train.")
    return module
