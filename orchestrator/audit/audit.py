"""An audit of a sweep: a trained replicate of each condition, or one that is trained for a few steps, is tested."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from orchestrator.audit import data, interventions, seeds
from orchestrator.audit.first_steps import digests, first_steps
from orchestrator.checks.resumption import in_folder, numbers_of, refuse_failed, run_forked
from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open
from orchestrator.results.audit import Audited, Finding, unchecked
from orchestrator.results.study import Study
from orchestrator.scheduler.kept_checkpoint import kept_checkpoint
from orchestrator.scheduler.task import Task
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import load_if_run
from orchestrator.worker.code_version import code_version
from orchestrator.worker.failure import is_unreadable
from orchestrator.worker.journal_trial import best_product
from orchestrator.worker.template import Template
from orchestrator.worker.trainable import Evaluation, Trainable, check_function, load
from orchestrator.worker.work import Work, config_type
from search_spaces.known_names import known_names
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError, shown
from trainables.importing import in_one_sentence
from trainables.prediction import Example, Prediction, Promises

NUM_REPORTS: Final = 3
"""How many reports a replicate makes that is trained for the audit."""

MOST_EXAMPLES: Final = 64
"""Test items of which some are changed."""

NUM_EXAMPLES: Final = 4
NUM_CROWD: Final = 12
"""Examples behind them in a large batch."""

FUNCTIONS: Final = {
    "predict": ("config", "checkpoint", "evaluation", "trial", "examples"),
    "examples": ("config", "part"),
    "promises": ("config", "evaluation"),
}


@dataclass(frozen=True)
class _Trained:
    """A replicate.

    Attributes:
        needed: its prerequisites by name.
        work: where it was trained.
        study: that it is of; None where it was trained for the audit.
    """

    condition: str
    seed: int
    config: Any
    needed: Mapping[str, Task]
    work: Work
    study: Study | None

    def checkpoint(self, evaluation: str, settings: Settings) -> Path:
        """The best one under an evaluation, or the newest of what was trained for the audit."""
        if self.study:
            known = evaluation if evaluation in self.study.evaluations() else None
            return kept_checkpoint(self.study, self.condition, self.seed, known, settings).path
        found = ReplicateFolder(self.work.folder, {}).newest()
        if found is None:
            raise InputError(
                f"{self.work.label} has no checkpoint after {NUM_REPORTS} reports, and `predict` needs one; give one "
                "to `trial.report(..., checkpoint=PATH)`."
            )
        return kept_open(found)


@dataclass(frozen=True)
class _Asking:
    """A `Trial` for `predict`, which only asks."""

    needed: Mapping[str, Task]

    def report(self, *_: object, **__: object) -> None:
        raise InputError("`predict` must report nothing.")

    def restore(self) -> None:
        return None

    def prerequisite(self, name: str) -> Path:
        if name not in self.needed:
            raise KeyError(f"There is no prerequisite {name!r}; there are {', '.join(self.needed) or 'none'}.")
        work = self.needed[name].work
        return kept_open(best_product(work.folder, work.shared))


def audit(
    sweep: Sweep,
    conditions: Sequence[Condition],
    evaluation: str | None,
    settings: Settings,
    folder: Path,
    tell: Callable[[str], None],
) -> Iterator[Audited]:
    """All checks of the conditions: of the data once for each data set, of seeds where the first one is trained here.

    Args:
        evaluation: the only one that is tested; None: all.
        folder: an empty one, in which replicates are trained.

    Raises:
        InputError: if a replicate fails, or the trainable breaks the contract of `predict`.
    """
    trainable, study = load(sweep.trainable), load_if_run(sweep.name, settings)
    for name, arguments in FUNCTIONS.items():
        check_function(trainable, name, arguments)
    kept = TaskFactory(sweep, settings, num_gpus=0)
    fresh = TaskFactory(sweep, replace(settings, runs=folder, storage=""), num_gpus=0)
    seen: set[str] = set()
    with contextlib.closing(Template("orchestrator.audit.first_steps:watch")) as template:
        for number, condition in enumerate(conditions):
            config = sweep.config(condition, sweep.seeds[0])
            evaluations = {one.name: one for one in trainable.evaluations(config) or (Evaluation(),)}
            if evaluation is not None and evaluation not in evaluations:
                known = known_names(evaluations, evaluation)
                raise InputError(f"{condition.name!r} has no evaluation {evaluation!r}; there are {known}.")
            of = partial(Audited, code_version=code_version(sweep.trainable, config_type(config)))
            promised = _promises(trainable, config, next(iter(evaluations.values())))
            if (mark := kept.fingerprint(sweep.trainable, config)) not in seen:
                seen.add(mark)
                yield from (of(condition.name, "", finding) for finding in _of_data(trainable, config, promised))
            trained = _kept(study, kept, condition)
            trained = trained or _train(template, fresh, condition, sweep.seeds[0], folder / "first", tell)
            if number == 0:
                if trained.study is None:
                    own_seed = sweep.seeds[0]
                    other_seed = next((seed for seed in sweep.seeds if seed != own_seed), own_seed + 1)
                    again, other = (
                        _train(template, fresh, condition, seed, folder / name, tell)
                        for name, seed in (("again", own_seed), ("other", other_seed))
                    )
                    found = _of_training(trained, again, other, promised)
                else:
                    found = _of_study(study, condition, sweep.name)
                yield from (of(condition.name, "", finding) for finding in found)
            for name, one in evaluations.items():
                if evaluation in (None, name):
                    tell(f"Testing {condition.name}, {name}")
                    found = _of_evaluation(trainable, trained, one, settings)
                    yield from (of(condition.name, name, finding) for finding in found)


def _of_data(trainable: Trainable, config: Any, promised: Promises) -> list[Finding]:
    if not hasattr(trainable.module, "examples"):
        why = f"{trainable.path} has no `examples(config, part)`"
        return [unchecked(check, why) for check in (data.COPIES, data.NEAR, data.GROUPS)]
    return data.of_data(_examples(trainable, config, "train"), _examples(trainable, config, "test"), promised.generated)


def _of_evaluation(trainable: Trainable, trained: _Trained, evaluation: Any, settings: Settings) -> list[Finding]:
    module = trainable.module
    for name in ("predict", "examples"):
        if not hasattr(module, name):
            why = f"{trainable.path} has no `{name}({', '.join(FUNCTIONS[name])})`"
            return [unchecked(check, why) for check in interventions.CHECKS]
    examples = _examples(trainable, trained.config, "test")[:MOST_EXAMPLES]
    if not examples:
        raise InputError(f"`examples` of {trainable.path} must give some of 'test', but gave none.")
    import torch

    torch.set_num_threads(1)  # a few small items are read many times, which several threads only hinder
    checkpoint, trial = trained.checkpoint(evaluation.name, settings), _Asking(trained.needed)

    def predict(items: Sequence[Example]) -> Sequence[Prediction]:
        predictions: Sequence[Prediction] = module.predict(trained.config, checkpoint, evaluation, trial, items)
        return predictions

    promised = _promises(trainable, trained.config, evaluation)
    few = interventions.chosen(examples, NUM_EXAMPLES)
    crowd = interventions.chosen([one for one in examples if one not in few], NUM_CROWD)
    return interventions.of_predictions(predict, few, promised, crowd)


def _promises(trainable: Trainable, config: Any, evaluation: Any) -> Promises:
    if not hasattr(trainable.module, "promises"):
        return Promises()
    with in_one_sentence(f"`promises` of {trainable.path} fails"):
        promises = trainable.module.promises(config, evaluation)
    if not isinstance(promises, Promises):
        raise InputError(f"`promises` of {trainable.path} must return `ponderay.Promises`, but got {shown(promises)}.")
    return promises


def _examples(trainable: Trainable, config: Any, part: str) -> list[Example]:
    with in_one_sentence(f"`examples` of {trainable.path} fails"):
        examples = list(trainable.module.examples(config, part))
    if other := next((one for one in examples if not isinstance(one, Example)), None):
        raise InputError(f"`examples` of {trainable.path} must return `ponderay.Example`s, but got {shown(other)}.")
    return examples


def _kept(study: Study | None, factory: TaskFactory, condition: Condition) -> _Trained | None:
    """The first complete replicate of these settings."""
    for replicate in study.of(condition.name) if study and condition.name in study.conditions else ():
        needed = factory.prerequisites(condition, replicate.seed)
        work = factory.replicate(condition, replicate.seed, needed).work
        if replicate.state == "complete" and work.key == replicate.key:
            config = factory.sweep.config(condition, replicate.seed)
            return _Trained(condition.name, replicate.seed, config, needed, work, study)
    return None


def _train(
    template: Template, factory: TaskFactory, condition: Condition, seed: int, place: Path, tell: Callable[[str], None]
) -> _Trained:
    """A replicate after its first reports, with whatever it needs trained to the end."""
    needed = factory.prerequisites(condition, seed)
    for task in needed.values():
        if ReplicateFolder(task.work.folder, {}).state()["state"] == "new":
            tell(f"Training {task.work.label}")
            run_forked(template, task.work, None)
            refuse_failed(task.work)
    work = in_folder(factory.replicate(condition, seed, needed).work, place / condition.name)
    tell(f"Training {work.label} to report {NUM_REPORTS}")
    run_forked(template, work, NUM_REPORTS)
    refuse_failed(work)
    return _Trained(condition.name, seed, factory.sweep.config(condition, seed), needed, work, None)


def _of_training(first: _Trained, again: _Trained, other: _Trained, promised: Promises) -> list[Finding]:
    numbers = [numbers_of(trained.work) for trained in (first, again, other)]
    one, two = (first_steps(trained.work.folder) for trained in (first, other))
    found = seeds.of_seeds(*numbers)
    if one is None or two is None:
        by_weights = seeds.of_checkpoints(_first_checkpoint(first.work), _first_checkpoint(other.work), promised)
        return [*found, by_weights, unchecked(seeds.ORDER, "no optimiser of torch made a step")]
    given: set[str] = set()  # what prerequisites made
    for task in first.needed.values():
        product = kept_open(best_product(task.work.folder, task.work.shared))
        given |= set(digests(seeds.arrays(_loaded(product))).values())
    return [*found, seeds.of_first_weights(one, two, given, promised), seeds.of_order(one, two, promised)]


def _of_study(study: Study | None, condition: Condition, sweep: str) -> list[Finding]:
    """What replicates that are there say of seeds."""
    complete = [one for one in study.of(condition.name) if one.state == "complete"] if study else []
    why = f"it is trained already; `ponderay check {sweep}` trains it again for a few steps"
    unknown = [unchecked(seeds.EQUAL, why)]
    unknown += [unchecked(check, "it is trained already") for check in (seeds.WEIGHTS, seeds.ORDER)]
    if len(complete) < 2:
        return [*unknown, unchecked(seeds.OTHER, "one seed is complete")]
    first, other = ({(0, name): value for name, value in one.metrics.items()} for one in complete[:2])
    return [*unknown, seeds.of_seeds(first, first, other)[1]]


def _first_checkpoint(work: Work) -> Any:
    path = next(iter(ReplicateFolder(work.folder, {}).checkpoints().values()), None)
    return None if path is None or path.suffix == ".zip" else _loaded(path)


def _loaded(path: Path) -> Any:
    """What a file of torch holds; None of any other."""
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if path.is_dir() or is_unreadable(error):
            return None
        raise
