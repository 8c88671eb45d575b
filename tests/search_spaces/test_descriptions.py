"""What the description of a sweep counts and calls its size is so in the size that is described."""

import re

import pytest

from search_spaces import find
from search_spaces.size import size_of
from search_spaces.sweep import Sweep

SIZES = ("", ".smoke")


def conditions_with(sweep: Sweep, start: str) -> list[str]:
    return [condition.name for condition in sweep.conditions if condition.name.startswith(start)]


def num_epochs(sweep: Sweep) -> int:
    return int(sweep.base.training.num_epochs)  # type: ignore[attr-defined]


def num_evaluations(sweep: Sweep) -> int:
    return len(sweep.base.evaluations)  # type: ignore[attr-defined]


COUNTED = {
    r"(\d+) seeds?\b": lambda sweep: len(sweep.seeds),
    r"(\d+) time penalties": lambda sweep: len(conditions_with(sweep, "tau=")),
    r"1 to (\d+) updates": lambda sweep: len(conditions_with(sweep, "updates=")),
    r"(\d+) biases": num_evaluations,
    r"(\d+) samples": lambda sweep: sweep.search.num_trials if sweep.search else None,
    r"(\d+) epochs?\b": num_epochs,
}
"""What a description counts, and how many there are."""


@pytest.mark.parametrize("name", sorted(find.sweep_functions()))
def test_a_description_counts_what_its_size_has(name: str) -> None:
    for suffix in SIZES:
        sweep = find.find_sweep(name + suffix)
        for pattern, number in COUNTED.items():
            for count in re.findall(pattern, sweep.description):
                assert int(count) == number(sweep), (sweep.name, sweep.description)


@pytest.mark.parametrize("name", [name for name in sorted(find.sweep_functions()) if "fixed_updates" in name])
def test_the_updates_to_which_act_is_held_are_those_of_its_size(name: str) -> None:
    for suffix in SIZES:
        sweep = find.find_sweep(name + suffix)
        (held,) = re.findall(r"ACT held to ([\d, and]*\d)", sweep.description)
        assert [f"budget={n}" for n in re.findall(r"\d+", held)] == conditions_with(sweep, "budget=")


@pytest.mark.parametrize("name", sorted(find.sweep_functions()))
def test_the_small_size_of_a_sweep_does_not_claim_another_one(name: str) -> None:
    """Graves' parity has 64 bits, a laptop's 16 and 20,000 iterations; the small size has 60 iterations."""
    sweep = find.find_sweep(f"{name}.smoke")
    assert size_of(sweep.name) == "smoke"
    claimed = ("Graves' sizes", "laptop sizes", "an hour of LibriSpeech")
    assert [words for words in claimed if words in sweep.description] == [], sweep.description
