"""The sources' main statements at a laptop's sizes are about what their sweeps have."""

import pytest

from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep
from search_spaces.sources import can_answer
from trainables.config import flatten


@pytest.mark.parametrize(("name", "number"), [("asr.laptop_table2", 3), ("asr.laptop_model3", 3), ("lm.equal_cost", 9)])
def test_every_claim_is_of_a_condition_an_evaluation_and_a_size_of_its_sweep(name: str, number: int) -> None:
    sweep = find_sweep(name)
    claims = claims_of(sweep)
    assert len(claims) == number
    for claim in claims:
        assert can_answer(name, claim)
        for place in claim.places:
            config = sweep.config(sweep.condition(place.condition), 1)
            assert place.evaluation in [one.name for one in config.evaluations]
            values = {path: str(value) for path, value in flatten(config).items()}
            assert {path: values[path] for path in claim.setting.requires} == claim.setting.requires


def test_dynamic_evaluation_is_held_against_the_same_models_without_it() -> None:
    (adapted,) = [one for one in claims_of(find_sweep("lm.equal_cost")) if one.id == "lm.laptop.dynamic"]
    assert adapted.left.evaluation == "dynamic_all" and adapted.left.over.evaluation == "test"
    assert adapted.left.over.condition == adapted.left.condition == "baseline" and adapted.right == 0.95
