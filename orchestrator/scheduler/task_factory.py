"""From a sweep to pieces of work: keys, folders and prerequisites of each replicate."""

import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from orchestrator.environment.settings import Settings
from orchestrator.journal.first_name import name_in_keys
from orchestrator.scheduler.task import Task
from orchestrator.worker.code_version import digests_of, imported_sources, version_of
from orchestrator.worker.contract import check_contract
from orchestrator.worker.trainable import load
from orchestrator.worker.work import Work, config_type, evaluation_ids
from search_spaces.find import find_sweep
from search_spaces.resources import ResolvedResources
from search_spaces.settings import setting_texts
from search_spaces.size import size_of
from search_spaces.sweep import Condition, Sweep
from trainables.config import (
    PLAIN,
    AnyConfig,
    as_json,
    content_hash,
    offer_secrets,
    with_secrets,
    with_value,
)
from trainables.importing import root_of


def draws_data(sweep: Sweep) -> bool:
    """Whether a search draws what data a replicate reads."""
    space = sweep.search.space if sweep.search else ()
    return any({"data", "spared"} & set(path.split(".")) for path in space)


@dataclass
class TaskFactory:
    """Makes tasks of a sweep's conditions and seeds; fingerprints and code versions are computed once.

    Attributes:
        files: by version of the code, digests of its files by name.

    Raises:
        InputError: if the sweep and its trainables do not fit each other.
    """

    sweep: Sweep
    settings: Settings
    num_gpus: float
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    _fingerprints: dict[str, str] = field(default_factory=dict)
    _versions: dict[tuple[str, str], str] = field(default_factory=dict)
    _roots: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_contract(self.sweep)
        sweep = self.sweep
        # Plain values hold no secrets, so of thousands of conditions only those with whole configs are built here.
        whole = (c for c in sweep.conditions if not all(isinstance(value, PLAIN) for value in c.values.values()))
        offer_secrets([sweep.base, *(sweep.config(condition, sweep.seeds[0]) for condition in whole)])

    @cached_property
    def first_seed(self) -> int:
        """The sweep's first seed as declared: its config stands for a condition, whichever seeds a driver has."""
        sweep = self.sweep
        return (find_sweep(sweep.declared_at, size_of(sweep.name) == "smoke") if sweep.declared_at else sweep).seeds[0]

    @cached_property
    def keyed_as(self) -> str:
        """The sweep's name in the keys of its replicates: that which it had first, where it was renamed since."""
        return name_in_keys(self.settings, self.sweep.name)

    def replicate(self, condition: Condition, seed: int, prerequisites: Mapping[str, Task]) -> Task:
        """The task of one condition with one seed, which needs `prerequisites` by name."""
        sweep, config = self.sweep, with_secrets(self.sweep.config(condition, seed))
        fingerprint = self.fingerprint(sweep.trainable, config)
        keys = tuple(task.work.key for task in prerequisites.values())
        key = content_hash(self.keyed_as, sweep.trainable, config, fingerprint, list(keys), seed)
        work = self._work(
            key,
            f"{condition.name} seed {seed}",
            sweep.trainable,
            config,
            self.settings.replicates(sweep.name) / key,
            (condition.resources or sweep.resources).resolve(self.num_gpus),
            {name: task.work for name, task in prerequisites.items()},
        )
        end = self.first_evaluation(condition)
        must_report = {
            "objectives": tuple(self.objective_names(condition)),
            "constraints": tuple(bound.metric + end for bound in (sweep.search.constraints if sweep.search else ())),
        }
        part = {
            "sweep": sweep.name,
            "condition": condition.name,
            "seed": seed,
            "settings": setting_texts(condition.settings),
            "fingerprint": fingerprint,
        }
        return Task(
            work=work.model_copy(update={**must_report, "part": part}),
            condition=condition,
            seed=seed,
            fingerprint=fingerprint,
            prerequisites=keys,
            evaluations=evaluation_ids(load(sweep.trainable), config),
        )

    def prerequisites(self, condition: Condition, seed: int) -> dict[str, Task]:
        """The prerequisites that a replicate uses, by name; equal content has an equal key, in whatever sweep."""
        used = condition.prerequisites
        needed = [wanted for wanted in self.sweep.prerequisites if used is None or wanted.name in used]
        tasks: dict[str, Task] = {}
        for wanted in needed:
            of_seed = seed if wanted.each_seed else self.sweep.seeds[0]
            config: AnyConfig = with_secrets(getattr(self.sweep.config(condition, of_seed), wanted.config_path))
            if wanted.each_seed:
                config = with_value(config, "seed", seed)
            fingerprint = self.fingerprint(wanted.trainable, config)
            key = content_hash(wanted.trainable, config, fingerprint, *([seed] if wanted.each_seed else []))
            label = f"prerequisite {wanted.name}{f' seed {seed}' if wanted.each_seed else ''}"
            folder = self.settings.runs / "prerequisites" / key
            resources = (wanted.resources or self.sweep.resources).resolve(self.num_gpus)
            work = self._work(key, label, wanted.trainable, config, folder, resources, {})
            tasks[wanted.name] = Task(work, None, getattr(config, "seed", 0), fingerprint)
        return tasks

    def first_evaluation(self, condition: Condition) -> str:
        """`@NAME` of the evaluation under which the objectives are taken; empty where there is none."""
        config = self.sweep.config(condition, self.sweep.seeds[0])
        return next((f"@{evaluation.name}" for evaluation in load(self.sweep.trainable).evaluations(config)), "")

    def objective_names(self, condition: Condition) -> list[str]:
        """The metrics that are the objectives, as a replicate of the condition reports them."""
        end = self.first_evaluation(condition)
        return [objective.metric + end for objective in self.sweep.objectives]

    def fingerprint(self, trainable: str, config: AnyConfig) -> str:
        """The fingerprint of the data that `trainable` reads under `config`; equal answers of `reads` share one."""
        config = with_secrets(config)
        name = content_hash(trainable, load(trainable).reads(config))
        if name not in self._fingerprints:
            self._fingerprints[name] = load(trainable).fingerprint(config)
        return self._fingerprints[name]

    def _work(
        self,
        key: str,
        label: str,
        trainable: str,
        config: AnyConfig,
        folder: Path,
        resources: ResolvedResources,
        needed: dict[str, Work],
    ) -> Work:
        kind = config_type(config)
        if (trainable, kind) not in self._versions:
            sources = imported_sources(trainable, kind.partition(":")[0])
            version = self._versions[trainable, kind] = version_of(sources)
            self.files[version] = digests_of(sources)
            self._roots[trainable] = root_of(trainable)
        return Work(
            key=key,
            label=label,
            trainable=trainable,
            root=self._roots[trainable],
            config=as_json(config),
            config_type=kind,
            num_steps=load(trainable).num_steps(config),
            folder=folder,
            shared=self.settings.shared(folder),
            products={name: work.folder for name, work in needed.items()},
            shared_products={name: work.shared for name, work in needed.items() if work.shared},
            resources=resources,
            attempt=self.attempt,
            code_version=self._versions[trainable, kind],
            host=socket.gethostname(),
            working_folder=Path.cwd(),
            keep_last=self.sweep.keep_last,
        )
