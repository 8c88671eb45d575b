"""What a sweep has produced so far: frozen records and the queries on them."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

from orchestrator.results.audit import Audited
from orchestrator.results.config_columns import config_columns
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.validations import Validations
from search_spaces.known_names import known_names
from trainables.errors import InputError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from orchestrator.results.points import Point
    from orchestrator.results.question import Question
    from orchestrator.scheduler.trained import Trained
    from orchestrator.statistics.summary import Summary
    from search_spaces.sweep import Objective

MOST_NAMED: Final = 8
MOST_SHOWN: Final = 60
"""Conditions of a text, of ten lines at most, and of a table."""

State = Literal["running", "stopped", "complete", "failed", "pruned"]


@dataclass(frozen=True)
class Replicate:
    """A condition with a seed.

    Attributes:
        metrics: the last value of each; those of an evaluation are named `metric@evaluation`.
        error: one line, where it failed, or was pruned by its curve.
        evaluations: ids of those done, `name.hash`.
        is_lost: failed for a reason outside the trainable, so that another attempt may succeed.
        duration_s: time that it ran, over all attempts.
        num_devices: GPUs that it held while it ran; CPUs where it held none.
        size_bytes: what its folder takes on disk.
        peak_host_bytes: the most memory that a process of it held.
        peak_gpu_bytes: the most GPU memory that torch held for one of its workers; 0 without a GPU.
    """

    key: str
    condition: str
    seed: int
    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    is_lost: bool = False
    code_version: str = ""
    run_id: str = ""
    evaluations: frozenset[str] = frozenset()
    data_fingerprint: str = ""
    duration_s: float = 0.0
    num_devices: float = 0.0
    size_bytes: int = 0
    peak_host_bytes: int = 0
    peak_gpu_bytes: int = 0
    host: str = ""
    device: str = ""


@dataclass(frozen=True)
class Origin:
    """What a replicate was begun with.

    Attributes:
        commit: of the sources; with `+` where files differed.
        packages: `name==version` of what results depend on.
        command: the command line; of a job what sends it again.
    """

    commit: str
    packages: str
    command: str

    @property
    def again(self) -> str:
        """The command line that goes on with it.

        Earlier versions noted of a job what it ran, and the first of them `__main__.py` for the package.
        """
        return re.sub(r"^(python -m orchestrator|__main__\.py) run ", "ponderay submit ", self.command)


@dataclass(frozen=True, repr=False)
class Study:
    """A sweep's replicates in the order of conditions and seeds.

    Attributes:
        updated_ms: when each condition last changed, in milliseconds since 1970, where that is known.
        settings: what `--set` changed in each condition, as text by config path; nothing where it changed nothing.
        configs: of each recorded condition, values as text by config path.
        origins: by key, in the order in which the replicates were begun, of those of which it is known.
        question: what is asked of results that Ponderay did not make; None where the sweep says it.
        validations: curves by seed of what selects checkpoints; none where they were not read.
        items: errors by test item; none where they were not read.
        unmirrored: condition and seed of replicates that have ended and that MLflow lacks, as far as it is known
            without asking.
        audit: what `ponderay audit` found; none where it was not read.
        elsewhere: condition and seed of replicates that a bundle brought; what lies here under their keys is an
            earlier try.

    Example:
        >>> study = notebook.load("asr.demo")  # doctest: +SKIP
        >>> study.to_dataframe().groupby("condition")["per@stochastic"].mean()  # doctest: +SKIP
    """

    sweep: str
    replicates: tuple[Replicate, ...]
    updated_ms: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    question: "Question | None" = field(default=None, compare=False)
    validations: Validations = field(default_factory=Validations, compare=False)
    items: ItemErrors = field(default_factory=ItemErrors, compare=False)
    unmirrored: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    audit: tuple[Audited, ...] = field(default=(), compare=False)
    elsewhere: Collection[tuple[str, int]] = field(default=(), compare=False)

    @classmethod
    def from_dataframe(
        cls,
        frame: "pandas.DataFrame",
        objectives: "Sequence[Objective]" = (),
        sweep: str = "results",
        condition: str | Sequence[str] = "condition",
        seed: str = "seed",
        reference: str | None = None,
        test: Literal["welch", "paired_permutation"] = "welch",
        description: str = "",
    ) -> "Study":
        """The study of results that Ponderay did not make, or of what `to_dataframe` gave: one row a run.

        Every column of numbers is a metric; columns of text and of yes and no are passed over. An empty or NaN cell
        says that the run did not report the metric. A column `state` (or `status`, with such words) says how each run
        ended (running, stopped, complete, failed or pruned); without it a run without a finite value of each objective
        has failed.

        Args:
            objectives: what fronts, comparisons and reports are of, unless they are given others.
            sweep: a name for the study.
            condition: the column of the conditions' names, or several columns that make a condition together.
            seed: the column of whole numbers that tell the runs of a condition apart.
            reference: the condition that others are compared with.
            test: the comparison with the reference that counts.

        Raises:
            InputError: if there is no row, a column is missing, a metric holds text, or a condition has a seed twice.

        Example:
            >>> study = Study.from_dataframe(frame, [Objective("error"), Objective("cost")])  # doctest: +SKIP
            >>> [point.name for point in notebook.pareto(study).points if point.is_front]  # doctest: +SKIP
        """
        from orchestrator.results.from_dataframe import read_dataframe

        return read_dataframe(frame, objectives, sweep, condition, seed, reference, test, description)

    def __repr__(self) -> str:
        """At most ten lines: how many replicates of each state the conditions have."""
        counts = {name: Counter(replicate.state for replicate in self.of(name)) for name in self.conditions}
        lines = [f"{self.sweep}: {len(self.replicates):,} replicates of {len(counts):,} conditions"]
        for name, states in list(counts.items())[:MOST_NAMED]:
            lines.append(f"  {name}: {', '.join(f'{number} {state}' for state, number in states.items())}")
        if len(counts) > MOST_NAMED:
            lines.append(f"  and {len(counts) - MOST_NAMED:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A notebook's view: a row a condition, with its states and the mean of each metric."""
        metrics = self.metrics()[:MOST_NAMED]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("condition", "replicates", *metrics))
        rows = []
        for name in self.conditions[:MOST_SHOWN]:
            states = Counter(replicate.state for replicate in self.of(name))
            means = (self.summary(name, metric) for metric in metrics)
            cells = [name, ", ".join(f"{number} {state}" for state, number in states.items())]
            cells += [f"{mean.mean:.4g}{f' ± {mean.std:.2g}' if mean.n > 1 else ''}" if mean else "" for mean in means]
            rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        left = len(self.conditions) - MOST_SHOWN
        more = f"<p>{left:,} more conditions; <code>to_dataframe()</code> has all.</p>" if left > 0 else ""
        return f"<table><caption>{escape(self.sweep)}</caption><tr>{head}</tr>{''.join(rows)}</table>{more}"

    def __post_init__(self) -> None:
        """Every condition has its settings, so that nobody has to know in which of them something was changed."""
        object.__setattr__(self, "settings", {**{name: {} for name in self.conditions}, **self.settings})

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names in the order of their first replicate."""
        return tuple(self._by_condition)

    def own(self, state: State) -> list[Replicate]:
        """The replicates in this state whose records lie here."""
        return [r for r in self.replicates if r.state == state and (r.condition, r.seed) not in self.elsewhere]

    def of(self, condition: str) -> tuple[Replicate, ...]:
        """The replicates of one condition by seed.

        Raises:
            InputError: if it has none.
        """
        if condition not in self._by_condition:
            known = known_names(self.conditions, condition)
            raise InputError(f"{self.sweep} has no results of the condition {condition!r}; its conditions are {known}.")
        return self._by_condition[condition]

    def of_conditions(self, names: Collection[str]) -> "Study":
        """The study of these conditions alone."""
        replicates = tuple(replicate for replicate in self.replicates if replicate.condition in names)
        updated_ms = {name: time_ms for name, time_ms in self.updated_ms.items() if name in names}
        settings = {name: given for name, given in self.settings.items() if name in names}
        return replace(
            self,
            replicates=replicates,
            updated_ms=updated_ms,
            settings=settings,
            configs={name: config for name, config in self.configs.items() if name in names},
            validations=self.validations.of_conditions(names),
            items=self.items.of_conditions(names),
            unmirrored=tuple(one for one in self.unmirrored if one[0] in names),
        )

    def values(self, condition: str, metric: str) -> tuple[float, ...]:
        """The finite values of `metric` over the complete replicates of `condition`, by seed.

        Raises:
            InputError: if there is no such condition, or no replicate of any has reported the metric.
        """
        every = (r.metrics.get(metric, math.nan) for r in self.of(condition) if r.state == "complete")
        found = tuple(value for value in every if math.isfinite(value))
        if not found and metric not in (known := self.metrics()):
            raise InputError(f"{self.sweep} has no metric {metric!r}; it has {known_names(known, metric)}.")
        return found

    def summary(self, condition: str, metric: str) -> "Summary | None":
        """Mean, standard deviation and number; None without a value.

        Raises:
            InputError: as `values`.
        """
        from orchestrator.statistics.summary import summarise

        values = self.values(condition, metric)
        return summarise(values) if values else None

    def best(self, metric: str, direction: Literal["minimize", "maximize"] | None = None) -> "Trained":
        """The condition whose mean over its complete seeds is best, with `config()` and `checkpoint()`.

        The mean of what is best of many looks better than it is; train it again on other seeds before you report it.

        Args:
            metric: `NAME`, or `NAME@EVALUATION` where several evaluations have it.
            direction: default: the metric's, as the sweep or its trainable declares it.

        Raises:
            InputError: if no complete replicate has the metric, several evaluations have it, or its direction is
                unknown.
        """
        from orchestrator.scheduler.trained import best

        return best(self, metric, direction)

    def trained(self, condition: "str | Point") -> "Trained":
        """A condition, by its name or as a point of a front, with `config()` and `checkpoint()`.

        Raises:
            InputError: if there is no such condition, or no replicate of it is complete.
        """
        from orchestrator.scheduler.trained import trained

        return trained(self, condition)

    def evaluations(self) -> tuple[str, ...]:
        """Names of evaluations that some replicate has."""
        return tuple(sorted({metric.partition("@")[2] for metric in self.metrics() if "@" in metric}))

    def metrics(self) -> tuple[str, ...]:
        """Names of all that some replicate reported, in the order first seen."""
        return self._metrics

    @cached_property
    def _metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for replicate in self.replicates for metric in replicate.metrics))

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row a replicate: condition, seed, state, error and the other fields, config values, then the metrics.

        Config values have columns `config.PATH`. What a replicate has not reported is NaN. A metric with the name of
        another column has a column `metric NAME`. Ids of evaluations are one text with spaces between, which every
        file format keeps.
        """
        import pandas

        own = [f.name for f in fields(Replicate) if f.name not in ("condition", "seed", "state", "error", "metrics")]
        own = ["condition", "seed", "state", "error", *own]
        columns: dict[str, list[Any]] = {
            name: [getattr(replicate, name) for replicate in self.replicates] for name in own
        }
        columns["evaluations"] = [" ".join(sorted(ids)) for ids in columns["evaluations"]]
        for name, values in config_columns(
            self.configs, [replicate.condition for replicate in self.replicates]
        ).items():
            has_gaps = None in values and all(value is None or type(value) is int for value in values)
            columns[name] = pandas.array(values, dtype="Int64") if has_gaps else values  # else 8 would become 8.0
        for metric in self.metrics():
            name = f"metric {metric}" if metric in columns else metric
            columns[name] = [replicate.metrics.get(metric, math.nan) for replicate in self.replicates]
        return pandas.DataFrame(columns)

    @cached_property
    def _by_condition(self) -> dict[str, tuple[Replicate, ...]]:
        found: dict[str, list[Replicate]] = {}
        for replicate in self.replicates:
            found.setdefault(replicate.condition, []).append(replicate)
        return {name: tuple(sorted(listed, key=lambda r: r.seed)) for name, listed in found.items()}
