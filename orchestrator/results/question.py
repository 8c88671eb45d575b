"""What a sweep asks, as far as its answers need it; JSON-ready, so that answers can be made again elsewhere."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from search_spaces.claim import Claim
from search_spaces.claim_file import claims_of
from search_spaces.confirmation import Confirmation
from search_spaces.redaction import redacted_leaves
from search_spaces.settings import declared_name, text_of
from search_spaces.sweep import Objective, Sweep
from trainables.config import AnyConfig, flatten, key_content


@dataclass(frozen=True)
class Question:
    """Facts of a sweep.

    Attributes:
        sweep: its name, with `.smoke` where it is small.
        configs: every listed condition's config, leaf values by dotted path, as text; empty for a search.
        settings: what `--set` changed in these, as text by config path.
        shown_note: which part of the study is shown; empty where it is all.
        reference_note: why the reference is not the declared one, or there is none; else empty.
        changed_note: which conditions ran with other settings than are declared now; empty where none did.
        claims: what was published of it.
        non_inferiority: as of the sweep.
        confirms: as of the sweep.
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
    changed_note: str = ""
    claims: tuple[Claim, ...] = ()
    tied: tuple[str, ...] = ()
    non_inferiority: float | None = None
    confirms: Confirmation | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on what is shown, on the reference and on changed settings, each where there is one."""
        return tuple(note for note in (self.shown_note, self.reference_note, self.changed_note) if note)

    @classmethod
    def of(cls, sweep: Sweep) -> "Question":
        """What `sweep` asks.

        Raises:
            InputError: if the claims that it names cannot be read.
        """
        return cls(
            sweep=sweep.name,
            description=sweep.description,
            objectives=sweep.objectives,
            reference=sweep.reference or "",
            test=sweep.test,
            seeds=sweep.seeds,
            configs={c.name: config_texts(flatten(sweep.config(c, sweep.seeds[0]))) for c in sweep.conditions},
            settings={
                c.name: {path: text_of(value) for path, value in c.settings.items()}
                for c in sweep.conditions
                if c.settings
            },
            claims=claims_of(sweep),
            non_inferiority=sweep.non_inferiority,
            confirms=sweep.confirms,
        )

    def names_of(self, condition: str) -> list[str]:
        """The conditions that are the declared `condition`: itself, or it with settings."""
        return [name for name in self.configs if declared_name(name, self.settings.get(name, ())) == condition]


def config_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """A config's values as text by path, without the seed, passwords and tokens."""
    return redacted_leaves({path: value for path, value in values.items() if path != "seed"})


def config_value(text: str) -> Any:
    """What a config's value was before it was recorded as text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def key_paths(config: AnyConfig) -> frozenset[str]:
    """The paths of a config's values, and of the configs in it, that are part of a replicate's key."""

    def below(content: Mapping[str, Any], prefix: str) -> Iterator[str]:
        for name, value in content.items():
            yield f"{prefix}{name}"
            if isinstance(value, Mapping):
                yield from below(value, f"{prefix}{name}.")

    return frozenset(below(key_content(config), ""))
