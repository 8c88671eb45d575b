"""Test items that are in training are found: the same, shifted, with noise, or of the same speaker."""

import numpy as np
import pytest
import torch

from orchestrator.audit.data import COPIES, GROUPS, NEAR, of_data
from trainables.prediction import Example

DRAW = np.random.default_rng(1)


def sounds(number, part):
    return [
        Example(f"{part} {i}", DRAW.normal(size=(int(DRAW.integers(60, 90)), 5)), group=f"{part} speaker {i % 3}")
        for i in range(number)
    ]


def results(train, test):
    return {one.check: one for one in of_data(train, test)}


def findings(train, test):
    return [check for check, one in results(train, test).items() if one.result == "finding"]


def test_disjoint_items_are_fine():
    assert findings(sounds(20, "train"), sounds(9, "test")) == []


def test_a_duplicate_is_found_exactly_and_a_shared_speaker():
    train, test = sounds(20, "train"), sounds(9, "test")
    copy = Example("the copy", torch.from_numpy(train[7].inputs.copy()), group="train speaker 1")
    found = results(train, [*test, copy])
    assert [one.result for one in found.values()] == 3 * ["finding"]
    assert found[COPIES].moved == "1 of 10 test items are in training, first the copy as train 7"
    assert found[GROUPS].moved == "1 of 4 groups of test items are in training, first train speaker 1"


def test_a_task_of_few_inputs_is_found_where_training_items_are_not_given_or_drawn_alike():
    few = [Example(f"test {i}", np.eye(3)[[i % 3]]) for i in range(9)]
    for train, generated in (([], False), (sounds(20, "train"), True), (sounds(20, "train"), False)):
        (found, *_) = of_data(train, few, generated)
        assert found.moved == "9 of 9 test items equal another one, so few inputs are there for training and test"
    assert of_data([], sounds(9, "test"))[0].result == "not checked"


@pytest.mark.parametrize(
    "change",
    [lambda x: x + 0.1 * DRAW.normal(size=x.shape), lambda x: x[4:], lambda x: 0.5 * np.concatenate([x[:5] * 0, x])],
    ids=["noise", "shift", "shift and volume"],
)
def test_a_near_duplicate_of_a_sound_is_found(change):
    train, test = sounds(20, "train"), sounds(9, "test")
    test[3] = Example("near", change(train[7].inputs), group="test speaker 0")
    assert findings(train, test) == [NEAR]
    assert results(train, test)[NEAR].moved == "1 of 9 test items have one, first near: train 7"


def test_overlapping_windows_of_a_recording_are_found_and_shared_silence_is_not():
    recording = DRAW.normal(size=(400, 5))
    train = [Example(f"train {i}", recording[start : start + 50]) for i, start in enumerate(range(0, 200, 20))]
    test = [Example("test 0", recording[110:160]), Example("test 1", recording[300:350])]
    found = results(train, test)
    assert [one.result for one in found.values()] == ["ok", "finding", "not checked"]
    assert found[NEAR].moved.startswith("1 of 2 test items have one, first test 0")
    quiet = np.zeros((40, 5))
    train, test = (
        [Example(f"{part} {i}", np.concatenate([quiet, DRAW.normal(size=(40, 5))])) for i in range(5)]
        for part in ("train", "test")
    )
    assert findings(train, test) == []


def test_two_drifts_are_no_copies():
    train, test = (
        [Example(f"{part} {i}", DRAW.normal(size=(60, 1)).cumsum(0)) for i in range(40)] for part in ("train", "test")
    )
    assert findings(train, test) == []


def test_of_what_is_drawn_alike_the_groups_alone_are_checked():
    train, test = sounds(5, "train"), sounds(5, "test")
    found = {one.check: one for one in of_data(train, [*test, train[0]], True)}
    assert [found[check].result for check in (COPIES, NEAR, GROUPS)] == ["not checked", "not checked", "finding"]


def test_a_near_duplicate_of_a_text_is_found():
    train, test = ([Example(f"{part} {i}", DRAW.integers(0, 50, 80)) for i in range(9)] for part in ("train", "test"))
    assert findings(train, test) == []
    test[3] = Example("near", np.concatenate([train[5].inputs[11:], train[6].inputs[:5]]))
    assert findings(train, test) == [NEAR]


def test_what_is_not_there_is_not_checked():
    assert {one.why for one in of_data([], sounds(2, "test"))} == {"`examples` gives none of training"}
    found = of_data([Example("a", np.arange(3))], [Example("b", np.arange(3))])
    few = "test items have fewer than 64 symbols"
    assert [one.why for one in found] == [few, few, "examples have no group"]


def test_a_text_with_a_word_in_eight_exchanged_is_found_wherever_training_is_cut():
    text = DRAW.integers(0, 500, 900)
    noisy = np.where(DRAW.random(900) < 1 / 8, DRAW.integers(0, 500, 900), text)[150:750]
    train = np.concatenate([DRAW.integers(0, 500, 1_000), noisy])
    train = [Example(f"train {i}", train[i : i + 100]) for i in range(0, 1_600, 100)]
    test = [Example(f"test {i}", text[i : i + 90]) for i in range(0, 900, 90)]
    found = results(train, test)[NEAR]
    assert found.moved == "6 of 10 test items have one, first test 180: train 1000"
    assert results(train[:10], test)[NEAR].result == "ok"
