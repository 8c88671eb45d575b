"""What a sweep asks, as far as its answers need it; JSON-ready, so that answers can be made again elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from orchestrator.results.comparison import Comparison, is_not_worse
from orchestrator.results.reference import find_reference, with_settings
from orchestrator.results.study import Study
from orchestrator.results.where import Configs
from search_spaces.claim import Claim
from search_spaces.find_claims import claims_of
from search_spaces.redaction import redacted_leaf
from search_spaces.settings import declared_name, text_of
from search_spaces.sweep import Objective, Sweep
from trainables.config import flatten


@dataclass(frozen=True)
class Question:
    """Facts of a sweep.

    Attributes:
        sweep: its name, with `.smoke` where it is small.
        configs: every listed condition's config, leaf values by dotted path, as text; empty for a search.
        settings: what `--set` changed in these, as text by config path.
        shown_note: which part of the study is shown; empty where it is all.
        reference_note: why the reference is not the declared one, or there is none; else empty.
        claims: what was published of it.
        non_inferiority: as of the sweep.
        tied: metrics whose values repeat under different seeds in conditions that are not shown.
    """

    sweep: str
    description: str
    objectives: tuple[Objective, ...]
    reference: str
    test: Literal["welch", "paired_permutation"]
    seeds: tuple[int, ...]
    configs: Mapping[str, Mapping[str, str]]
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shown_note: str = ""
    reference_note: str = ""
    claims: tuple[Claim, ...] = ()
    tied: tuple[str, ...] = ()
    non_inferiority: float | None = None

    def is_not_worse(self, found: Comparison) -> bool:
        """Whether a comparison in the first objective that decides nothing shows no loss beyond the named margin."""
        first, margin = self.objectives[0], self.non_inferiority
        is_asked = margin is not None and found.metric == first.metric and found.answer == "undecided"
        return is_asked and is_not_worse(found, margin or 0.0, first.direction)

    @property
    def notes(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(note for note in (self.shown_note, self.reference_note) if note)

    @classmethod
    def of(cls, sweep: Sweep) -> "Question":
        """What `sweep` asks.

        Raises:
            InputError: if the claims that it names cannot be read.
        """
        configs = {c.name: _texts(flatten(sweep.config(c, sweep.seeds[0]))) for c in sweep.conditions}
        set_ones = (c for c in sweep.conditions if c.settings)
        settings = {c.name: {path: text_of(value) for path, value in c.settings.items()} for c in set_ones}
        name, about = sweep.name, sweep.description
        reference, claims = sweep.reference or "", claims_of(sweep)
        asked = (name, about, sweep.objectives, reference, sweep.test, sweep.seeds, configs, settings)
        return cls(*asked, claims=claims, non_inferiority=sweep.non_inferiority)

    @classmethod
    def of_study(
        cls, sweep: Sweep, study: Study, recorded: Callable[[], Configs], reference: str | None = None
    ) -> "Question":
        """What `sweep` asks of what is recorded in `study`, with the reference of `find_reference`.

        A listed condition that is not recorded itself, but with settings, is there under those names. What was
        recorded under an older declaration counts as it was recorded, not as it is declared now.

        Args:
            recorded: gives the config of each recorded condition; asked only where it is needed.
            reference: as of `find_reference`.

        Raises:
            InputError: as `find_reference`.
        """
        plain, found = cls.of(sweep), find_reference(sweep, study, reference)
        configs, settings = dict(plain.configs), dict(plain.settings)
        logged = cache(lambda: {name: _texts(config) for name, config in recorded().items()})
        for condition in sweep.conditions:
            name = condition.name
            if name in study.conditions:
                configs[name] = {**configs[name], **(logged().get(name, {}) if plain.claims else {})}
            elif given := with_settings(condition, sweep, study):
                configs.pop(name)
                settings.pop(name, None)
                configs |= {one: logged().get(one, {}) for one in given}
                settings |= given
        return replace(plain, reference=found.name, configs=configs, settings=settings, reference_note=found.note)

    def names_of(self, condition: str) -> list[str]:
        """The conditions that are the declared `condition`: itself, or it with settings."""
        return [name for name in self.configs if declared_name(name, self.settings.get(name, ())) == condition]


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {path: redacted_leaf(path, value) for path, value in values.items() if path != "seed"}
