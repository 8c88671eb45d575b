"""What a sweep asks, as far as its answers need it; JSON-ready, so that answers can be made again elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from search_spaces.claim import Claim
from search_spaces.find_claims import claims_of
from search_spaces.sweep import Objective, Sweep
from trainables.config import flatten


@dataclass(frozen=True)
class Question:
    """Facts of a sweep.

    Attributes:
        sweep: its name, with `.smoke` where it is small.
        configs: every listed condition's config, leaf values by dotted path, as text; empty for a search.
        claims: what was published of it.
    """

    sweep: str
    description: str
    objectives: tuple[Objective, ...]
    reference: str
    test: Literal["welch", "paired_permutation"]
    seeds: tuple[int, ...]
    configs: Mapping[str, Mapping[str, str]]
    claims: tuple[Claim, ...] = ()

    @classmethod
    def of(cls, sweep: Sweep) -> "Question":
        """What `sweep` asks.

        Raises:
            InputError: if the claims that it names cannot be read.
        """
        configs = {c.name: _texts(flatten(sweep.config(c, sweep.seeds[0]))) for c in sweep.conditions}
        name, about = sweep.name, sweep.description
        reference, claims = sweep.reference or "", claims_of(sweep)
        return cls(name, about, sweep.objectives, reference, sweep.test, sweep.seeds, configs, claims)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {path: str(value) for path, value in values.items() if path != "seed"}
