"""Whether a shipped sweep, run as it is, measures what a claim was published of."""

from collections.abc import Mapping
from functools import cache

from search_spaces.claim import Claim, NumberClaim
from search_spaces.find import find_sweep
from search_spaces.sweep import Sweep
from trainables.config import flatten


def can_answer(name: str, claim: Claim) -> bool:
    """Whether the conditions of the claim have, in the sweep `name`, the settings that it was published of.

    What only a run tells, such as the size of a vocabulary, is not asked. A barred claim is answered by nothing.
    """
    if isinstance(claim, NumberClaim) and claim.bar:
        return False
    allowed = {path: (required,) for path, required in claim.setting.requires.items()} | dict(claim.setting.any_of)
    configs = (_config(name, condition) for place in claim.places for condition in place.conditions)
    return all(config.get(path, "") in texts for config in configs for path, texts in allowed.items())


@cache
def _config(name: str, condition: str) -> Mapping[str, str]:
    """The settings of a condition as text, by path."""
    sweep = _sweep(name)
    config = sweep.config(sweep.condition(condition), sweep.seeds[0])
    return {path: str(value) for path, value in flatten(config).items()}


@cache
def _sweep(name: str) -> Sweep:
    return find_sweep(name)
