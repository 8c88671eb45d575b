"""From a sweep to pieces of work: keys, folders and prerequisites of each replicate."""

import socket
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import Record
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Replicate, State
from orchestrator.worker.work import Work, code_version, evaluation_ids, import_trainable
from search_spaces.sweep import Condition, ResolvedResources, Sweep
from trainables.config import Config, content_hash

TaskState = Literal["waiting", "live", "complete", "failed"]


@dataclass(eq=False)
class Task:
    """A piece of work in a scheduler, and how it stands.

    Attributes:
        condition: None for a prerequisite.
        needs: keys of the prerequisites it waits for.
        evaluations: ids of those it must have.
        state: one whose worker was lost waits again; `tries` counts how often it was started.
        not_before_s: by the monotonic clock, when it may be tried again.
        summary: what its journal said when it was last looked at.
        started: the record with which the session under way started: host, process and node.
        driving: the same of the process that drives its workers, where it has some.
        running_s, heard_s: by the monotonic clock, when its worker started and when it last said something.
        last: the last record that says how it ended.
        lost_because: why the driver has ended its process.
    """

    work: Work
    condition: Condition | None
    seed: int
    fingerprint: str
    needs: tuple[str, ...] = ()
    evaluations: frozenset[str] = frozenset()
    state: TaskState = "waiting"
    error: str = ""
    is_lost: bool = False
    tries: int = 0
    not_before_s: float = 0.0
    summary: JournalSummary = field(default_factory=JournalSummary)
    started: Record = field(default_factory=dict)
    driving: Record = field(default_factory=dict)
    running_s: float = 0.0
    heard_s: float = 0.0
    last: Record = field(default_factory=dict)
    lost_because: str = ""

    @property
    def num_devices(self) -> float:
        """GPUs that it holds; CPUs where it holds none."""
        return self.work.resources.num_gpus or self.work.resources.num_cpus

    @property
    def code_version(self) -> str:
        """Of the sources that made its results; where it failed, of those that failed last."""
        if self.state == "failed":
            return self.summary.last_version or self.work.code_version
        return (self.summary.versions or [self.work.code_version])[0]

    def device_s(self, now_s: float) -> float:
        """Seconds of devices that its present try has held; 0 while it waits for its worker."""
        return self.num_devices * (now_s - self.running_s) if self.running_s else 0.0

    def replicate(self, state: State, earlier: Mapping[str, float]) -> Replicate:
        """What is known of it: its journal's metrics over `earlier` ones."""
        assert self.condition is not None
        return Replicate(
            key=self.work.key,
            condition=self.condition.name,
            seed=self.seed,
            state=state,
            metrics=dict(earlier) | self.summary.metrics,
            error=self.error,
            is_lost=self.is_lost,
            code_version=self.code_version,
            evaluations=frozenset(self.summary.evaluations),
            data_fingerprint=self.fingerprint,
            duration_s=self.summary.duration_s,
            num_devices=self.num_devices,
            size_bytes=self.summary.size_bytes,
            peak_host_bytes=self.summary.peak_host_bytes,
            peak_gpu_bytes=self.summary.peak_gpu_bytes,
            host=self.summary.host,
            device=self.summary.device,
        )


@dataclass
class TaskFactory:
    """Makes tasks of a sweep's conditions and seeds; fingerprints and code versions are computed once."""

    sweep: Sweep
    settings: Settings
    num_gpus: float
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _fingerprints: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)

    def replicate(self, condition: Condition, seed: int, prerequisites: dict[str, Task]) -> Task:
        """The task of one condition with one seed, which needs `prerequisites` by name."""
        sweep, config = self.sweep, self.sweep.config(condition, seed)
        fingerprint = self.fingerprint(sweep.trainable, config)
        needs = tuple(task.work.key for task in prerequisites.values())
        key = content_hash(sweep.name, sweep.trainable, config, fingerprint, list(needs), seed)
        return Task(
            work=self._work(
                key,
                f"{condition.name} seed {seed}",
                sweep.trainable,
                config,
                self.settings.replicates(sweep.name) / key,
                (condition.resources or sweep.resources).resolve(self.num_gpus),
                {name: task.work for name, task in prerequisites.items()},
            ),
            condition=condition,
            seed=seed,
            fingerprint=fingerprint,
            needs=needs,
            evaluations=evaluation_ids(config),
        )

    def prerequisites(self, condition: Condition) -> dict[str, Task]:
        """The prerequisites of a condition by name; equal content has an equal key, in whatever sweep."""
        config = self.sweep.config(condition, self.sweep.seeds[0])
        tasks = {}
        for wanted in self.sweep.prerequisites:
            its_config: Config = getattr(config, wanted.config_path)
            fingerprint = self.fingerprint(wanted.trainable, its_config)
            key = content_hash(wanted.trainable, its_config, fingerprint)
            folder = self.settings.runs / "prerequisites" / key
            resources = (wanted.resources or self.sweep.resources).resolve(self.num_gpus)
            work = self._work(key, f"prerequisite {wanted.name}", wanted.trainable, its_config, folder, resources, {})
            tasks[wanted.name] = Task(work, None, getattr(its_config, "seed", 0), fingerprint)
        return tasks

    def first_evaluation(self, condition: Condition) -> str:
        """`@NAME` of the evaluation under which the objectives are taken; empty where there is none."""
        config = self.sweep.config(condition, self.sweep.seeds[0])
        return next((f"@{evaluation.name}" for evaluation in getattr(config, "evaluations", ())), "")

    def fingerprint(self, trainable: str, config: Config) -> str:
        """Of the data that `trainable` reads under `config`; configs whose fields `data` are equal ask only once."""
        name = content_hash(trainable, list(_data_fields(config)))
        if name not in self._fingerprints:
            self._fingerprints[name] = import_trainable(trainable).fingerprint(config)
        return self._fingerprints[name]

    def _work(
        self,
        key: str,
        label: str,
        trainable: str,
        config: Config,
        folder: Path,
        resources: ResolvedResources,
        needed: dict[str, Work],
    ) -> Work:
        if trainable not in self._versions:
            self._versions[trainable] = code_version(trainable)
        return Work(
            key=key,
            label=label,
            trainable=trainable,
            config=config.model_dump(mode="json"),
            num_steps=import_trainable(trainable).num_steps(config),
            folder=folder,
            shared=self.settings.shared(folder),
            products={name: work.folder for name, work in needed.items()},
            shared_products={name: work.shared for name, work in needed.items() if work.shared},
            resources=resources,
            attempt=self.attempt,
            code_version=self._versions[trainable],
            host=socket.gethostname(),
            keep_last=self.sweep.keep_last,
        )


def _data_fields(config: Config) -> Iterator[str]:
    """Every field named `data` or `spared`, at any depth, with its paths."""
    for name, value in config.fields().items():
        if name in ("data", "spared"):
            yield f"{name}={value!r}"
        elif isinstance(value, Config):
            yield from _data_fields(value)
