"""Differences over seeds and test items, of a study with errors by item."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.report.comparison_table import over_items_sentence
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.over_items import Place, check_sums, over_items
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics import over_groups
from orchestrator.statistics.equivalence import Difference
from trainables.errors import InputError
from trainables.item_errors import Item

RNG = np.random.default_rng(0)
SPEAKERS = ("ann", "ann", "bea", "bea", "cai", "dan")
LENGTHS = (10.0, 30.0, 20.0, 20.0, 50.0, 10.0)
A, B = (Place(name, name, "test") for name in "ab")


def items(metric_seed: int, lengths=LENGTHS) -> tuple[Item, ...]:
    errors = np.random.default_rng(metric_seed).integers(0, 9, len(lengths))
    rows = zip("uvwxyz", SPEAKERS, errors.tolist(), lengths, strict=False)
    return tuple(Item(item, group, float(wrong), length) for item, group, wrong, length in rows)


def study(**found: dict[int, tuple[Item, ...]]) -> Study:
    by_name = {(c, seed, "per@test"): listed for c, by_seed in found.items() for seed, listed in by_seed.items()}
    replicates = tuple(
        Replicate(
            f"{condition}{seed}",
            condition,
            seed,
            "complete",
            {"per@test": sum(i.errors for i in its) / sum(i.length for i in its)},
        )
        for (condition, seed, _), its in by_name.items()
    )
    return Study("s", replicates, items=ItemErrors.of(by_name))


def by_speaker(listed: tuple[Item, ...]) -> list[float]:
    return [sum(i.errors for i in listed if i.group == name) for name in ("ann", "bea", "cai", "dan")]


def test_errors_are_added_up_by_group_and_compared_over_seeds_and_groups():
    a, b = ({seed: items(seed + shift) for seed in (1, 2, 3)} for shift in (0, 50))
    (found,) = over_items(study(a=a, b=b), A, B, is_paired=False)
    assert (found.metric, found.n_a, found.n_b, found.num_groups, found.num_items) == ("per", 3, 3, 4, 6)
    tables = [np.array([by_speaker(listed) for listed in part.values()]) for part in (a, b)]
    expected = over_groups.of_difference(*tables, np.array([40.0, 40.0, 50.0, 10.0]), is_paired=False)
    assert found.both.standard_error == pytest.approx(float(expected.standard_error), rel=1e-12)
    rates = [table.sum(1) / 140 for table in tables]
    assert found.seeds.value == found.both.value == pytest.approx(rates[0].mean() - rates[1].mean())
    assert found.seeds.interval() == pytest.approx(Difference.unpaired(*rates).interval())


def test_pairs_are_of_the_seeds_that_both_have():
    a, b = {seed: items(seed) for seed in (1, 2, 3)}, {seed: items(seed + 9) for seed in (2, 3, 4)}
    (found,) = over_items(study(a=a, b=b), A, B, is_paired=True)
    assert (found.n_a, found.n_b) == (2, 2)


@pytest.mark.parametrize("is_paired", [True, False])
def test_of_fewer_seeds_than_have_the_metric_it_is_another_difference(is_paired):
    whole = study(**{name: {seed: items(seed) for seed in (1, 2, 3)} for name in "ab"})
    kept = replace(whole.items, errors=tuple(one for one in whole.items.errors if one.seed < 3))
    studies = whole, replace(whole, items=kept)
    assert [[one.is_whole for one in over_items(found, A, B, is_paired)] for found in studies] == [[True], [False]]
    (found,) = over_items(studies[1], A, B, is_paired)
    assert over_items_sentence(found) == "a against b, per by test item: the items of some seeds were not kept."


def test_of_different_test_sets_or_evaluations_nothing_is_said():
    a, other = {1: items(1), 2: items(2)}, {1: items(3, (*LENGTHS[:5], 11.0)), 2: items(4)}
    assert list(over_items(study(a=a, b=other), A, B, is_paired=False)) == []
    assert list(over_items(study(a=a, b=a), A, Place("b", "b", "elsewhere"), is_paired=False)) == []


def test_studies_are_joined_and_narrowed_with_their_items():
    a, b = {1: items(1), 2: items(2)}, {1: items(3, LENGTHS[:5])}
    both = study(a=a).items.joined(study(b=b, a={1: items(9)}).items)
    assert both == study(a=a, b=b).items
    assert study(a=a, b=b).of_conditions(["a"]).items.errors == study(a=a).items.errors


def test_errors_that_do_not_add_up_to_the_metric_are_refused():
    whole = study(a={1: items(1)})
    check_sums(whole)
    wrong = Study("s", (Replicate("a1", "a", 1, "complete", {"per@test": 0.5}),), items=whole.items)
    with pytest.raises(InputError, match="add up to the metric, but those of per@test of a, seed 1, come to"):
        check_sums(wrong)
