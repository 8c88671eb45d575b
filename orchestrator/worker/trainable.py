"""A trainable: a module with `train(config, trial)`; whatever else it may have has a plain default here."""

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Final

from orchestrator.worker.interrupts import noted_interrupts
from orchestrator.worker.own_runs import own_runs
from trainables.analysis import Analysis
from trainables.config import fields_of
from trainables.errors import InputError, shown
from trainables.importing import import_module, put_first, said_at
from trainables.metric import Best, Metric
from trainables.trial import Trial

FUNCTIONS: Final = {
    "train": ("config", "trial"),
    "evaluate": ("config", "checkpoint", "evaluation", "trial"),
    "reads": ("config",),
    "fingerprint": ("config",),
    "selection": ("config",),
    "num_steps": ("config",),
}
"""What a trainable may define, with the arguments of each; only `train` must be there."""


@contextmanager
def _exit_is_an_error() -> Iterator[None]:
    """What is raised to end a program, as by `sys.exit()`, would end the process of a trainable as if all were done.

    Raises:
        RuntimeError: in its place. Ray, which ends a worker by SystemExit, and what takes a report are let do so.
        BaseException: that by which a signal interrupted it, whatever it made of that: Lightning calls `sys.exit(1)`,
            others return as if all were done, or fail.
    """
    with noted_interrupts() as interrupts:
        try:
            yield
        except BaseException as error:
            if interrupts:
                raise interrupts[-1] from None
            ours = str(Path(__file__).with_name("journal_trial.py"))
            is_of_a_report = any(
                frame.f_code.co_filename == ours for frame, _ in traceback.walk_tb(error.__traceback__)
            )
            if isinstance(error, Exception) or hasattr(error, "ray_terminate_msg") or is_of_a_report:
                raise
            if isinstance(error, SystemExit):
                fault = f"called sys.exit({shown(error.code)}); it must return or raise."
            else:
                fault = f"raised {type(error).__name__}, which ends programs; it must raise an Exception."
            raise RuntimeError(f"The trainable {fault}") from error
        if interrupts:
            raise interrupts[-1]


@dataclass(frozen=True)
class Evaluation:
    """The one way of testing, of a trainable whose config lists no `evaluations`."""

    name: str = "test"


@dataclass(frozen=True)
class Trainable:
    """A module as the orchestrator sees it.

    Attributes:
        path: its import path.
    """

    path: str
    module: ModuleType

    def train(self, config: Any, trial: Trial) -> None:
        """Trains from the trial's checkpoint, or from the start where it has none."""
        with _exit_is_an_error(), own_runs():
            self.module.train(config, trial)

    def evaluations(self, config: Any) -> tuple[Any, ...]:
        """Ways of testing: those of the config; one where it has none; none where nothing is evaluated."""
        if not hasattr(self.module, "evaluate"):
            return ()
        return tuple(getattr(config, "evaluations", (Evaluation(),)))

    def evaluate(self, config: Any, checkpoint: Path, evaluation: Any, trial: Trial) -> None:
        """Tests a checkpoint in one way; what it reports is the result.

        It draws the same whatever this process has drawn before: another session may have trained.
        """
        from trainables import distributed, rng  # load torch and numpy

        stream = (getattr(config, "seed", 0), "evaluate", evaluation.name, distributed.rank())
        rng.seed_everything(rng.derive(*stream))
        with _exit_is_an_error(), own_runs():
            self.module.evaluate(config, checkpoint, evaluation, trial)

    def fingerprint(self, config: Any) -> str:
        """A hash of the data that are read under `config`; empty where the trainable does not say.

        Raises:
            InputError: if the data cannot be read.
        """
        return str(self._answer("fingerprint", config, str, ""))

    def reads(self, config: Any) -> str:
        """What of `config` decides the fingerprint, as text; all but seed and evaluations where it does not say."""
        if hasattr(self.module, "reads"):
            return repr(self._answer("reads", config, object, None))
        values = fields_of(config)
        return repr([(name, values[name]) for name in sorted(values) if name not in ("seed", "evaluations")])

    def selection(self, config: Any) -> dict[str, Best]:
        """Names of the checkpoints to keep, each with what it is the best of; none means the last checkpoint.

        Raises:
            InputError: if the trainable names something else than metrics.
        """
        selected = self._answer("selection", config, Mapping, {})
        return {str(name): self._best(wanted) for name, wanted in selected.items()}

    def num_steps(self, config: Any) -> int | None:
        """The last step that `train` reports; None where only its return says that it is done."""
        num_steps: int | None = self._answer("num_steps", config, int | None, None)
        if num_steps is not None and num_steps < 0:
            raise InputError(f"`num_steps` of {self.path} must be at least 0, but got {num_steps}.")
        return num_steps

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that it reports; empty where it does not say."""
        return tuple(getattr(self.module, "metrics", ()))

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """The analyses of its trained replicates, by name."""
        analyses: Mapping[str, Analysis] = getattr(self.module, "analyses", {})
        return analyses

    def _answer(self, name: str, config: Any, kind: type | UnionType, default: Any) -> Any:
        function = getattr(self.module, name, None)
        if function is None:
            return default
        try:
            answer = function(config)
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a `sys.exit()` would end the command without a word
            raise InputError(f"`{name}` of {self.path} fails: {said_at(error)}") from error
        if not isinstance(answer, kind) or isinstance(answer, bool):
            form = ', as {"test": "loss"}' if name == "selection" else ""
            raise InputError(f"`{name}` of {self.path} must return a {NAMES[kind]}{form}, but got {shown(answer)}.")
        return answer

    def _best(self, wanted: object) -> Best:
        if isinstance(wanted, str):
            return Best(wanted)
        metric, direction = getattr(wanted, "metric", None), getattr(wanted, "direction", None)
        if isinstance(metric, str) and direction in ("minimize", "maximize"):
            return Best(metric, direction)
        raise InputError(f"`selection` of {self.path} must name a metric or an Objective, but got {shown(wanted)}.")


NAMES: Final[Mapping[type | UnionType, str]] = {
    object: "value",
    str: "text",
    Mapping: "mapping",
    int | None: "whole number or None",
}


def load(path: str, root: str = "") -> Trainable:
    """The trainable at an import path.

    Args:
        root: folder from which it can be imported, where it is not installed.

    Raises:
        InputError: if it cannot be imported, or breaks the contract.
    """
    put_first(root)
    return _load(path)


@cache
def _load(path: str) -> Trainable:
    trainable = Trainable(path, import_module(path, f"The trainable {path!r}"))
    for name, arguments in FUNCTIONS.items():
        check_function(trainable, name, arguments)
    metrics = getattr(trainable.module, "metrics", ())
    if not isinstance(metrics, Sequence) or not all(isinstance(metric, Metric) for metric in metrics):
        raise InputError(f"`metrics` of {path} must be a list of Metric, but it is {metrics!r}.")
    for metric in metrics:
        if metric.direction not in ("minimize", "maximize", "none"):
            raise InputError(
                f"In `metrics` of {path} the direction of {metric.name!r} must be "
                f"minimize, maximize or none, but got {metric.direction!r}."
            )
    names = [metric.name for metric in metrics]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"`metrics` of {path} lists {doubled[0]!r} twice.")
    analyses = vars(trainable.module).get("analyses", {})  # those of a module's `__getattr__` are loaded when asked for
    if not isinstance(analyses, Mapping) or not all(isinstance(value, Analysis) for value in analyses.values()):
        raise InputError(f"`analyses` of {path} must be a mapping from names to Analysis, but it is {analyses!r}.")
    return trainable


def check_function(trainable: Trainable, name: str, arguments: Sequence[str]) -> None:
    """Raises InputError if the trainable has something else under this name than a function of these arguments."""
    function = getattr(trainable.module, name, None)
    called = f"{name}({', '.join(arguments)})"
    if function is None:
        if name == "train":
            raise InputError(f"The trainable {trainable.path!r} must have a function {called}, but has no {name}.")
        return
    if not callable(function):
        raise InputError(f"`{name}` of {trainable.path} must be a function {called}, but it is {function!r}.")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise InputError(f"`{name}` of {trainable.path} must be a plain function, without `async` and `yield`.")
    if not _takes(function, len(arguments)):
        given = inspect.signature(function)
        raise InputError(f"`{name}` of {trainable.path} must be called as {called}, but it is {name}{given}.")


def _takes(function: Callable[..., Any], num_arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * num_arguments)
    except TypeError:
        return False
    except ValueError:  # of a function written in C nothing is known
        return True
    return True
