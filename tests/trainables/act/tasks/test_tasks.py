"""Labels of every generated task against plain Python, exhaustively at small sizes, and the bytes of texts."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from search_spaces.act import SWEEPS
from trainables.act import train
from trainables.act.config import ActConfig, Addition, Evaluation, Logic, Optimisation, Parity, Sort, Text
from trainables.act.tasks import addition, data, logic, parity, sort, text_file
from trainables.act.tasks.batch import NO_TARGET
from trainables.errors import InputError

GATES = {
    "NOR": lambda p, q: not (p or q),
    "Xq": lambda p, q: q and not p,
    "ABJ": lambda p, q: p and not q,
    "XOR": lambda p, q: p != q,
    "NAND": lambda p, q: not (p and q),
    "AND": lambda p, q: p and q,
    "XNOR": lambda p, q: p == q,
    "if/then": lambda p, q: q if p else True,
    "then/if": lambda p, q: p if q else True,
    "OR": lambda p, q: p or q,
}


def stream(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_parity_of_every_vector_of_four_bits():
    batch = parity.make(Parity(num_bits=4), 20_000, stream())
    seen = set()
    for vector, target, difficulty in zip(
        batch.inputs[:, 0].tolist(), batch.targets[:, 0, 0].tolist(), batch.difficulty[:, 0].tolist(), strict=True
    ):
        assert target == vector.count(1.0) % 2
        assert difficulty == 4 - vector.count(0.0)
        seen.add(tuple(vector))
    assert seen == set(itertools.product((-1.0, 0.0, 1.0), repeat=4)) - {(0.0,) * 4}
    assert batch.num_steps.unique().tolist() == [1]


def test_parity_draws_the_number_of_active_bits_uniformly():
    counts = Counter(parity.make(Parity(num_bits=64), 64_000, stream()).difficulty[:, 0].tolist())
    assert set(counts) == set(range(1, 65))
    assert max(abs(count - 1000) for count in counts.values()) < 5 * math.sqrt(1000)


def test_gates_are_those_of_table_1():
    assert list(logic.GATES) == list(GATES)
    for number, gate in enumerate(GATES.values()):
        for p, q in itertools.product((True, False), repeat=2):
            found = logic.apply_gates(np.array([q]), np.array([p]), np.array([[number]]), np.array([1]))
            assert found.item() == gate(p, q), (list(GATES)[number], p, q)


def chain(first: bool, second: bool, gates: list[int]) -> bool:
    """b_{B+1}, as Eq. 21 says."""
    bits = [first, second]
    for i, gate in enumerate(gates, start=1):
        bits.append(list(GATES.values())[gate](bits[i], bits[i - 1]))
    return bits[-1]


def test_every_chain_of_up_to_three_gates():
    for length in (1, 2, 3):
        cases = list(itertools.product((False, True), (False, True), *[range(10)] * length))
        first, second = (np.array([case[i] for case in cases]) for i in (0, 1))
        gates = np.array([[*case[2:], 4] for case in cases])  # one more slot, which is not used
        found = logic.apply_gates(first, second, gates, np.full(len(cases), length))
        assert found.tolist() == [chain(case[0], case[1], list(case[2:])) for case in cases]


def test_logic_by_hand():
    """XOR of b_1 = T and b_0 = F is T, then NOR of that and b_1 is F; the next vector's b_0 is F: T AND F is F."""
    assert chain(False, True, [3, 0]) is False
    assert chain(False, True, [5]) is False


def test_logic_targets_follow_from_the_inputs_alone():
    config = Logic(num_gates=3, num_vectors=4)
    batch = logic.make(config, 400, stream())
    lengths = Counter(batch.num_steps.tolist())
    assert set(lengths) == {1, 2, 3, 4}
    for row in range(len(batch)):
        previous = None
        for step in range(4):
            vector, target = batch.inputs[row, step], batch.targets[row, step, 0].item()
            if step >= batch.num_steps[row]:
                assert (vector == 0).all() and target == NO_TARGET and batch.difficulty[row, step] == 0
                continue
            slots = vector[2:].reshape(3, 10)
            used = [slot.argmax().item() for slot in slots if slot.any()]
            assert len(used) == batch.difficulty[row, step] >= 1
            assert slots[: len(used)].sum() == len(used) == vector[2:].sum()
            first = bool(vector[0]) if previous is None else previous
            assert previous is None or vector[0] == 0
            previous = chain(first, bool(vector[1]), used)
            assert target == previous


@pytest.mark.parametrize("num_places", [3, 6])
def test_digits_of_every_sum_below_a_thousand(num_places):
    found = addition.sum_digits(np.arange(1000), num_places)
    for number in range(1000):
        digits = [int(digit) for digit in str(number)]
        assert found[number].tolist() == digits + [addition.END] * (num_places - len(digits))


def test_values_of_all_numbers_of_up_to_three_digits():
    for length in (1, 2, 3):
        digits = np.array(list(itertools.product(range(10), repeat=length)))
        padded = np.concatenate([digits, np.full((len(digits), 1), 7)], 1)
        assert addition.values(padded, np.full(len(digits), length)).tolist() == list(range(10**length))


def test_addition_targets_follow_from_the_inputs_alone():
    config = Addition(num_digits=2, num_numbers=3)
    assert config.num_sum_digits == 3
    assert Addition().num_sum_digits == 6
    batch = addition.make(config, 500, stream())
    assert set(batch.num_steps.tolist()) == {1, 2, 3}
    for row in range(len(batch)):
        total = 0
        for step in range(3):
            places, target = batch.inputs[row, step].reshape(2, 10), batch.targets[row, step].tolist()
            written = "".join(str(place.argmax().item()) for place in places if place.any())
            assert len(written) == batch.difficulty[row, step] == (places[: len(written)] == 1).sum()
            if step >= batch.num_steps[row]:
                assert written == "" and target == [NO_TARGET] * 3
                continue
            total += int(written)
            digits = [int(digit) for digit in str(total)]
            expected = digits + [10] * (3 - len(digits)) if step else [NO_TARGET] * 3
            assert target == expected


def test_addition_by_hand():
    """7 and then 95: nothing is asked at first, then 102."""
    sums = addition.values(np.array([[[7, 0], [9, 5]]]), np.array([[1, 2]])).cumsum(1)
    assert addition.sum_digits(sums, 4).tolist() == [[[7, 10, 10, 10], [1, 0, 2, 10]]]


def test_sort_targets_follow_from_the_inputs_alone():
    batch = sort.make(Sort(num_items=4), 2000, stream())
    orders = set()
    for row in range(len(batch)):
        count = batch.num_steps[row].item() // 2
        numbers, flags = batch.inputs[row, :, 0].tolist(), batch.inputs[row, :, 1].tolist()
        assert flags == [float(step == count - 1) for step in range(8)]
        assert numbers[count:] == [0.0] * (8 - count)
        expected = sorted(range(count), key=numbers.__getitem__)
        found = batch.targets[row, :, 0].tolist()
        assert found == [NO_TARGET] * count + expected + [NO_TARGET] * (8 - 2 * count)
        assert batch.difficulty[row].tolist() == [count] * 2 * count + [0] * (8 - 2 * count)
        orders.add(tuple(expected))
    assert orders == {order for count in (2, 3, 4) for order in itertools.permutations(range(count))}


def config_of(task, **changes) -> ActConfig:
    return ActConfig(data=task, training=Optimisation(batch_size=6), num_validation_sequences=5, **changes)


@pytest.mark.parametrize("task", [Parity(num_bits=5), Logic(), Addition(), Sort(), Text(num_steps=30)])
def test_batches_are_fixed_by_seed_and_iteration_and_fit_the_sizes_of_the_task(task):
    config = config_of(task)
    batch, again = next(data.training_batches(config, [3])), next(data.training_batches(config, [3]))
    torch.testing.assert_close(batch.inputs, again.inputs, rtol=0, atol=0)
    torch.testing.assert_close(batch.targets, again.targets, rtol=0, atol=0)
    others = next(data.training_batches(config, [4])), next(data.training_batches(config.with_value("seed", 2), [3]))
    assert not any(torch.equal(batch.inputs, other.inputs) for other in others)
    sizes = data.sizes(task)
    assert batch.targets.shape == (6, batch.inputs.shape[1], sizes.num_outputs)
    assert batch.targets.max() < sizes.num_classes
    if sizes.is_symbol:
        assert batch.inputs.max() < sizes.num_inputs
    else:
        assert batch.inputs.shape[2] == sizes.num_inputs
    later = config.with_value("seed", 9)
    torch.testing.assert_close(data.validation_set(config).inputs, data.validation_set(later).inputs)
    tests = [data.test_set(one, Evaluation(num_sequences=7)) for one in (config, later)]
    torch.testing.assert_close(tests[0].inputs, tests[1].inputs)


def test_another_seed_of_an_evaluation_is_another_test_set():
    config = config_of(Parity())
    one, two = (data.test_set(config, Evaluation(seed=seed)).inputs for seed in (1, 2))
    assert len(one) == 10_000 and not torch.equal(one, two)


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_bytes(bytes(range(256)) * 4)
    return Text(path=path, num_steps=20, validation_share=0.1, test_share=0.05)


def test_text_is_cut_into_parts_and_sequences_without_a_gap(story):
    content = story.path.read_bytes()
    config = config_of(story)
    parts = text_file.split(story)
    assert b"".join(part.tobytes() for part in (parts.train, parts.validation, parts.test)) == content
    assert (len(parts.test), len(parts.validation)) == (51, 102)
    batch = data.test_set(config, Evaluation())
    assert batch.num_steps.tolist() == [20, 20, 10]
    read = [batch.inputs[row, :length].tolist() for row, length in enumerate(batch.num_steps)]
    asked = [batch.targets[row, :length, 0].tolist() for row, length in enumerate(batch.num_steps)]
    assert bytes(itertools.chain(*read)) == content[-51:-1]
    assert bytes(itertools.chain(*asked)) == content[-50:]
    assert (batch.targets[2, 10:] == NO_TARGET).all()
    assert len(data.test_set(config, Evaluation(num_sequences=1))) == 1
    assert len(data.validation_set(config)) == 5
    training = next(data.training_batches(config, [1]))
    for row in range(6):
        assert bytes(training.inputs[row].tolist()) in parts.train.tobytes()
    assert torch.equal(training.inputs[:, 1:], training.targets[:, :-1, 0])


def test_the_built_in_text_is_pythons_documentation():
    parts = text_file.split(Text())
    assert len(parts.train) > 300_000
    assert b'"assert" statement' in text_file.read(None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"none.txt cannot be read: No such file or directory; set `data.path`"),
        (b"short", r"must be longer: of its 5 bytes 5 are for training, which must be more than `data.num_steps` = 20"),
    ],
)
def test_a_text_that_cannot_be_used_is_one_line(tmp_path, content, said):
    path = tmp_path / "none.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        text_file.split(Text(path=path, num_steps=20))


def test_the_fingerprint_is_of_the_bytes(tmp_path):
    for name, content in (("a", b"x" * 999), ("b", b"x" * 999), ("c", b"y" * 999)):
        (tmp_path / name).write_bytes(content)
    a, b, c = (text_file.fingerprint(Text(path=tmp_path / name)) for name in "abc")
    assert a == b != c
    (tmp_path / "a").write_bytes(b"z" * 999)
    assert text_file.fingerprint(Text(path=tmp_path / "a")) != a
    parity, sort = (SWEEPS[f"tau_{task}"]("smoke").base for task in ("parity", "sort"))
    assert train.fingerprint(parity) == train.fingerprint(sort) == "generated"
