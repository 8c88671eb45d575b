"""Logic: a chain of binary gates at each step, the first of which reads the step before (Graves 2016, section 3.2)."""

import numpy as np
from numpy.typing import NDArray

from trainables.act.config import Logic
from trainables.act.tasks.batch import NO_TARGET, Batch, batch

NUM_CLASSES = 2
GATES = {
    "NOR": "FFFT",
    "Xq": "FFTF",
    "ABJ": "FTFF",
    "XOR": "FTTF",
    "NAND": "FTTT",
    "AND": "TFFF",
    "XNOR": "TFFT",
    "if/then": "TFTT",
    "then/if": "TTFT",
    "OR": "TTTF",
}
"""The outputs of each gate T(P, Q) for (T, T), (T, F), (F, T), (F, F): table 1."""

TABLE = np.array([[said == "T" for said in column] for column in GATES.values()])


def num_inputs(config: Logic) -> int:
    """Two bits, then a one-hot gate in each slot."""
    return 2 + config.num_gates * len(GATES)


def make(config: Logic, count: int, random: np.random.Generator) -> Batch:
    """`count` sequences of a uniformly drawn number of vectors, each with a uniformly drawn number B of gates.

    With b_0, b_1 the bits of a vector, b_{i+1} = T_i(b_i, b_{i-1}) for i = 1 to B (Eq. 21) and the target is b_{B+1}.
    From the second vector on b_0 is the target before, and 0 in the input. Difficulty is B.
    """
    num_vectors = random.integers(1, config.num_vectors, size=count, endpoint=True)
    shape = (count, config.num_vectors)
    is_vector = np.arange(config.num_vectors) < num_vectors[:, None]
    bits = random.integers(0, 2, size=(*shape, 2)).astype(bool)
    num_gates = random.integers(1, config.num_gates, size=shape, endpoint=True)
    gates = random.integers(0, len(GATES), size=(*shape, config.num_gates))
    results = np.zeros(shape, bool)
    for step in range(config.num_vectors):
        first = results[:, step - 1] if step else bits[:, 0, 0]
        results[:, step] = apply_gates(first, bits[:, step, 1], gates[:, step], num_gates[:, step])
    bits[:, 1:, 0] = False
    is_used = np.arange(config.num_gates) < num_gates[:, :, None]
    one_hot = np.eye(len(GATES))[gates] * is_used[:, :, :, None]
    inputs = np.concatenate([bits, one_hot.reshape(*shape, -1)], 2) * is_vector[:, :, None]
    targets = np.where(is_vector, results, NO_TARGET)
    return batch(inputs, num_vectors, targets[:, :, None], num_gates * is_vector)


def apply_gates(
    first: NDArray[np.bool_], second: NDArray[np.bool_], gates: NDArray[np.integer], num_gates: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """b_{B+1} of each row, from b_0 = `first`, b_1 = `second` and the row's first `num_gates` numbers of gates."""
    before, now = first, second
    for i in range(gates.shape[1]):
        column = 2 * ~now + ~before
        after = np.where(i < num_gates, TABLE[gates[:, i], column], now)
        before, now = now, after
    return now
