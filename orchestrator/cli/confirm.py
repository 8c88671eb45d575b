"""`run --confirm`: the sweep that its options mean."""

from typing import Final

from orchestrator.cli.options import find
from orchestrator.console.printing import say
from orchestrator.environment.settings import Settings
from orchestrator.scheduler.confirmation import confirmation
from search_spaces.sweep import Sweep

LEAST_SEEDS: Final = 5
"""Fresh seeds of a choice, where no number is asked for."""


def find_confirmation(
    name: str,
    smoke: bool,
    values: list[str] | None,
    seeds: str | None,
    resources: list[str] | None,
    conditions: list[str] | None,
    grid: list[str] | None,
    settings: Settings,
    accept_code: bool = False,
) -> Sweep:
    """The sweep that runs again, under fresh seeds, what was chosen of the one that the options mean.

    Raises:
        InputError, RefusedError: as `find` and `confirmation`.
    """
    sweep = find(name, smoke, values, seeds, resources, conditions, grid, confirm=True)
    num_seeds = int(seeds) if seeds else max(LEAST_SEEDS, len(sweep.seeds))
    found = confirmation(sweep, settings, num_seeds, conditions or (), accept_code)
    assert found.confirms is not None
    first, last = found.seeds[0], found.seeds[-1]
    under = f"seed {first}" if first == last else f"seeds {first} to {last}"
    say(
        f"{found.name} confirms {len(found.confirms.means):,} of {found.confirms.num_conditions:,} conditions of "
        f"{sweep.name}, under {under}, which chose nothing."
    )
    return found
