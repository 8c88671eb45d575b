"""What a sweep is: a trainable, its conditions or their search, seeds, objectives and what it needs."""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from search_spaces.confirmation import Confirmation
from search_spaces.declaration import check_declaration, check_json
from search_spaces.distributions import Choice, Distribution, listed
from search_spaces.halving import Halving
from search_spaces.known_names import known_names
from search_spaces.names import GENERATED_LENGTH, check_condition_name, condition_name_of
from search_spaces.resources import Resources
from search_spaces.settings import (
    condition_name,
    declared_name,
    name_with,
    paths,
    reached_values,
    recorded_value,
    same_name,
    with_all,
    with_base_value,
)
from search_spaces.size import Size
from search_spaces.value_lists import check_choices, is_list
from trainables.config import AnyConfig, content_hash, secrets_of, with_value
from trainables.errors import InputError, shown
from trainables.secret import plain, variable_of


@dataclass(frozen=True)
class Objective:
    """A metric with a direction."""

    metric: str
    direction: Literal["minimize", "maximize"] = "minimize"


@dataclass(frozen=True)
class Condition:
    """One setting of a sweep, without its seed: values by config path, and its own resources where they differ.

    Attributes:
        name: a letter or digit, then these, spaces and any of . _ , = + -, 250 in all; another is an InputError.
        values: in place of those of the sweep's base.
        resources: default: those of the sweep.
        settings: what `--set` changed in it: JSON-ready values by config path.
        prerequisites: names of those of the sweep that it uses; it waits for no other. None: all.
        computed_from: config paths that its values were computed from, as a width from a cost. `ponderay run --set` of
            one of them, or of a part with it, is refused: the condition would no longer be what its name says.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    prerequisites: tuple[str, ...] | None = None
    computed_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_condition_name(self.name)

    @property
    def declared(self) -> str:
        """The name that the sweep gives it, without its settings."""
        return declared_name(self.name, self.settings)

    def with_value(self, before: AnyConfig, after: AnyConfig, path: str, value: object) -> Self:
        """The condition with `value` in what it sets itself; its base was `before` and is `after`."""
        old = with_all(before, self.values)
        values = reached_values(self.values, path, value) if path in paths(old) else self.values
        new = with_all(after, values)
        if content_hash(old) == content_hash(new):
            return self if old == new else replace(self, values=values)
        return replace(self, values=values, settings={**self.settings, path: recorded_value(new, path)})


@dataclass(frozen=True)
class Constraint:
    """What a condition's mean over its seeds must keep: `metric` at most `at_most`, in the metric's unit."""

    metric: str
    at_most: float


@dataclass(frozen=True)
class Search:
    """Conditions drawn by Optuna: a distribution for each config path, and how many to draw.

    Attributes:
        space: by config path; each end of a distribution must be valid in the sweep's base.
        num_trials: at least 1; a grid draws no more than it has points.
        sampler: Optuna's; with "grid" the space is of Choice and Integer.
        seed: of the sampler.
        constraints: what draws should keep; one that does not is trained, and ranks behind all that do.
        settings: as of `Condition`, of every condition that it draws.
        pruned: whether a condition gets one seed at first, and its others only if no condition whose seeds are all
            complete dominates that one.
        halving: by which curves of first seeds are stopped early; a condition gets its other seeds behind its first.
    """

    space: Mapping[str, Distribution]
    num_trials: int
    sampler: Literal["tpe", "nsga2", "random", "grid", "qmc", "gp"] = "tpe"
    seed: int = 1
    constraints: tuple[Constraint, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    pruned: bool = False
    halving: Halving | None = None

    def num_settings(self) -> int:
        """How many conditions it draws: a grid has no more than it has points."""
        if self.sampler != "grid":
            return self.num_trials
        return min(self.num_trials, math.prod(len(listed(distribution)) for distribution in self.space.values()))


@dataclass(frozen=True)
class Sequential:
    """Seeds by need: all conditions start with `minimum`, and only undecided ones get more, up to the sweep's seeds.

    Attributes:
        minimum: seeds that every condition gets; at least 3.
        question: "reference" asks of each condition whether the first objective differs from the reference's;
            "front" asks which conditions are on the front of all objectives.
        error_rate: the chance that any of the answers is wrong stays below it.
    """

    minimum: int = 3
    question: Literal["reference", "front"] = "reference"
    error_rate: float = 0.05


@dataclass(frozen=True)
class Prerequisite:
    """A run whose product the replicates use: `trainable` on the config found at `config_path` of theirs.

    Attributes:
        name: by which `trial.prerequisite` gives its checkpoint.
        trainable: import path of its module.
        config_path: of its config, within that of a replicate.
        resources: default: those of a replicate.
        each_seed: whether each seed of the sweep has its own, trained with that seed; else all share one.
    """

    name: str
    trainable: str
    config_path: str
    resources: Resources | None = None
    each_seed: bool = False


@dataclass(frozen=True)
class Sweep:
    """A declared experiment; validated when built.

    Attributes:
        name: of the study; letters, digits and any of . _ -, such as `family.name`.
        trainable: import path of a module with `train(config, trial)`; `__name__` where the sweep stands beside it.
        base: the config that conditions change: a `Config`, a frozen pydantic model or a dataclass, with a `seed`.
        conditions: listed ones; empty where `search` draws them.
        objectives: metrics without the name of an evaluation, the first one ranked by.
        seeds: of every condition; with `sequential`, those that may be given.
        reference: the condition that others are compared with.
        pairing: `seeds`: conditions are compared seed by seed, by the exact paired permutation test, and the seeds must
            suffice for it; `none`: as separate groups, by Welch's test. Every comparison of conditions is made so.
        non_inferiority: how much worse in the first objective still counts as "not worse", in its unit; without it a
            difference that is not shown is no more than that.
        keep_last: keep the last checkpoints of a completed replicate beside the best ones.
        declared_at: where it was found, `module:NAME` or `file.py:NAME`.
        claims: what was published of it: `package.module:function`, a function that yields claims, or the absolute path
            of a TOML file (`search_spaces.claim_file`), as `str(Path(__file__).with_name("claims.toml"))` gives it.
        confirms: whose choice it confirms; `ponderay run --confirm` makes such a sweep.
    """

    name: str
    description: str
    trainable: str
    base: AnyConfig
    objectives: tuple[Objective, ...]
    conditions: tuple[Condition, ...] = ()
    search: Search | None = None
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    sequential: Sequential | None = None
    reference: str | None = None
    pairing: Literal["none", "seeds"] = "none"
    non_inferiority: float | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    resources: Resources = field(default_factory=Resources)
    keep_last: bool = False
    declared_at: str = ""
    claims: str = ""
    confirms: Confirmation | None = None

    def __post_init__(self) -> None:
        check_declaration(self)
        if self.reference:
            object.__setattr__(self, "reference", same_name(self.reference, [c.name for c in self.conditions]))
        _validate(self)

    @property
    def test(self) -> Literal["welch", "paired_permutation"]:
        """The one test by which conditions are compared."""
        return "paired_permutation" if self.pairing == "seeds" else "welch"

    def num_conditions(self) -> int:
        """The number of listed conditions, or as many as the search draws."""
        return self.search.num_settings() if self.search else len(self.conditions)

    @property
    def is_pruned(self) -> bool:
        """Whether conditions get more than one seed only where that one says so."""
        return self.search is not None and (self.search.pruned or self.search.halving is not None)

    def config(self, condition: Condition, seed: int) -> AnyConfig:
        """The whole config of one replicate."""
        return with_value(with_all(self.base, condition.values), "seed", seed)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """The sweep with `values` in its base, and in the parts that conditions set themselves.

        A condition whose setting they change is another one: its `settings` say what was changed, its name too. One
        that does not have a path stays as it is.

        Raises:
            InputError: if a path or value is wrong, changes no condition, or names the seed, which is not a setting.
        """
        if "seed" in values:
            raise InputError("`seed` is not part of a setting; `--seeds N` asks for seeds 1 to N.")
        base, conditions, search = self.base, self.conditions, self.search
        searched = search.space if search else ()
        for path, value in sorted(values.items(), key=lambda item: item[0].count(".")):
            before, base = base, with_base_value(self.name, base, [c.values for c in conditions], searched, path, value)
            conditions = tuple(c.with_value(before, base, path, value) for c in conditions)
            if search and content_hash(before) != content_hash(base):
                search = replace(search, settings={**search.settings, path: recorded_value(base, path)})
        known = {path for c in conditions for path in paths(with_all(base, c.values))}
        names = {
            old.name: name_with(old.declared, new.settings, known, with_all(base, new.values))
            if new.settings != old.settings
            else old.name
            for old, new in zip(self.conditions, conditions, strict=True)
        }
        renamed = tuple(replace(c, name=names[c.name]) for c in conditions)
        first: dict[str, Condition] = {}
        for condition in renamed:
            other = first.setdefault(content_hash(with_all(base, condition.values)), condition)
            if other is not condition:
                given = ", ".join({**other.settings, **condition.settings})
                raise InputError(
                    f"{self.name}: with {given} set so, {other.declared!r} and {condition.declared!r} are the same "
                    "setting; set a path or a value that keeps them apart."
                )
        reference = names.get(self.reference or "")
        return replace(self, base=base, conditions=renamed, search=search, reference=reference)

    def with_resources(self, values: Mapping[str, Any]) -> Self:
        """The sweep with these of its `Resources`, in all conditions.

        Raises:
            InputError: if there is no such resource, or not that much of it can be asked for.
        """
        known = {resource.name for resource in fields(Resources)}
        if unknown := sorted(set(values) - known):
            raise InputError(f"{unknown[0]!r} is not a resource; the resources are {', '.join(sorted(known))}.")
        conditions = tuple(
            replace(c, resources=replace(c.resources, **values)) if c.resources else c for c in self.conditions
        )
        return replace(self, resources=replace(self.resources, **values), conditions=conditions)

    def only(self, condition_name: str, seed: int) -> Self:
        """The sweep cut down to one replicate, of the condition of this name or of this name without its settings."""
        chosen = self.condition(condition_name)
        return replace(self, conditions=(chosen,), seeds=(seed,), sequential=None, reference=None)

    def of_conditions(self, names: Collection[str]) -> Self:
        """The sweep cut down to conditions of these names, or of these without their settings, in its own order.

        It keeps its reference only where that is one of them.

        Raises:
            InputError: if there is none of a name, or if seeds by need ask about a reference that is none of them.
        """
        chosen = {self.condition(name).name for name in names}
        if self.sequential and self.sequential.question == "reference" and self.reference not in chosen:
            raise InputError(f"{self.name}: seeds by need ask about {self.reference!r}; add it to the conditions.")
        conditions = tuple(c for c in self.conditions if c.name in chosen)
        return replace(self, conditions=conditions, reference=self.reference if self.reference in chosen else None)

    def condition(self, name: str) -> Condition:
        """The listed condition of this name, or of this name without its settings.

        Raises:
            InputError: if there is none.
        """
        by_name = {c.declared: c for c in self.conditions} | {c.name: c for c in self.conditions}
        name = same_name(name, by_name)
        if name not in by_name:
            known = known_names((c.name for c in self.conditions), name) if self.conditions else "none listed"
            raise InputError(f"{self.name} has no condition {name!r}; it has {known}.")
        return by_name[name]


SweepFunction = Callable[[Size], Sweep]
"""Builds a sweep in a size; a family's `SWEEPS` holds one for each name."""


def grid(values: Mapping[str, Sequence[Any]]) -> tuple[Condition, ...]:
    """Every combination of the listed values, named by them: `learning_rate=0.01,dropout=0.1`.

    Args:
        values: by config path, a list or tuple each, whose values differ; another is an InputError.
    """
    for path, listed_values in values.items():
        if not is_list(listed_values):
            raise InputError(f"A grid lists values for each path, but `{path}` has {shown(listed_values)}.")
        check_choices(listed_values, f"The values of a grid for `{path}`")
    conditions = []
    for combination in itertools.product(*values.values()):
        setting = dict(zip(values, combination, strict=True))
        conditions.append(Condition(condition_name_of(condition_name(setting), GENERATED_LENGTH), setting))
    return tuple(conditions)


def _validate(sweep: Sweep) -> None:
    """Raises InputError at the first thing that cannot work."""
    names = [condition.name for condition in sweep.conditions]
    if bool(names) == bool(sweep.search):
        raise InputError(f"{sweep.name}: give either conditions or a search.")
    if len(set(names)) < len(names):
        raise InputError(f"{sweep.name}: the names of conditions must differ, but got {', '.join(names)}.")
    margin = sweep.non_inferiority
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    if margin is not None and not (is_number and math.isfinite(margin) and margin > 0):
        raise InputError(f"{sweep.name}: `non_inferiority` must be above 0, but got {margin!r}.")
    if not sweep.seeds or len(set(sweep.seeds)) < len(sweep.seeds):
        raise InputError(f"{sweep.name}: there must be seeds, and they must differ, but got {sweep.seeds}.")
    if not sweep.objectives:
        raise InputError(f"{sweep.name}: give at least one objective.")
    if sweep.reference and sweep.reference not in names:
        raise InputError(f"{sweep.name}: the reference {sweep.reference!r} is not one of {', '.join(names)}.")
    metrics = [objective.metric for objective in sweep.objectives]
    if len(set(metrics)) < len(metrics):
        raise InputError(f"{sweep.name}: the objectives must differ, but got {', '.join(metrics)}.")
    settings: dict[str, str] = {}
    known_prerequisites = [prerequisite.name for prerequisite in sweep.prerequisites]
    for condition in sweep.conditions:
        if unknown := [name for name in condition.prerequisites or () if name not in known_prerequisites]:
            known = f"which has {', '.join(known_prerequisites)}" if known_prerequisites else "which has none"
            raise InputError(
                f"{sweep.name}: {condition.name!r} uses {unknown[0]!r}, no prerequisite of the sweep, {known}."
            )
        config = sweep.config(condition, sweep.seeds[0])
        for path, owner, own in secrets_of(config):
            if path in condition.values and (plain(getattr(owner, own)) or "\n") in condition.name:
                raise InputError(
                    f"{sweep.name}: a condition's name must not hold the secret `{path}`; set {variable_of(own)} "
                    "instead."
                )
        check_json(f"{sweep.name}, condition {condition.name!r}", config)
        setting = content_hash(config)
        if setting in settings:
            raise InputError(f"{sweep.name}: {settings[setting]!r} and {condition.name!r} are the same setting.")
        settings[setting] = condition.name
    secrets = {path for path, _, _ in secrets_of(sweep.base)}
    for path, distribution in (sweep.search.space if sweep.search else {}).items():
        if path in secrets:
            raise InputError(f"{sweep.name}: `{path}` is a secret, which makes no condition; it cannot be searched.")
        ends = distribution.values if isinstance(distribution, Choice) else (distribution.low, distribution.high)
        for value in ends:
            check_json(sweep.name, with_value(sweep.base, path, value))
    if sweep.search and sweep.search.num_settings() < 1:
        raise InputError(f"{sweep.name}: `num_trials` must be at least 1, but got {sweep.search.num_trials}.")
    _validate_seeds(sweep)


def _validate_seeds(sweep: Sweep) -> None:
    """Raises InputError where the seeds cannot do what they are for."""
    if sweep.search and sweep.search.pruned and len(sweep.seeds) < 2:
        raise InputError(
            f"{sweep.name}: a pruned search needs at least 2 seeds, the first to decide on the others, but got "
            f"{len(sweep.seeds)}."
        )
    if sweep.sequential is None:
        return
    least, most = sweep.sequential.minimum, len(sweep.seeds)
    if not 3 <= least <= most:
        raise InputError(f"{sweep.name}: `minimum` must be in [3, {most}], the number of seeds, but got {least}.")
    if sweep.search:
        raise InputError(
            f"{sweep.name}: seeds by need work with listed conditions only; a search needs equal numbers of seeds."
        )
    if not 0 < sweep.sequential.error_rate < 1:
        raise InputError(f"{sweep.name}: `error_rate` must be in (0, 1), but got {sweep.sequential.error_rate}.")
    if sweep.sequential.question == "reference" and not sweep.reference:
        raise InputError(f"{sweep.name}: seeds by need ask about the reference, but the sweep names none.")
