"""Test items that are in the training data: the same ones, near copies, and others of the same group."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.audit.first_steps import as_array, digest
from orchestrator.results.audit import Finding, unchecked
from trainables.prediction import Example

COPIES, NEAR, GROUPS = "copies in training", "near copies in training", "groups in training"

MOST_TESTED: Final = 64
"""Test items that near copies are looked for of."""

NUM_DIRECTIONS: Final = 8
ALIKE: Final = 0.95
"""Correlation over time, at the best shift, of two items of real numbers that are copies."""

ALIKE_STEPS: Final = 0.5
"""The same of their differences from step to step: two slow drifts correlate by chance, and their steps do not."""

LEAST_STEPS: Final = 32
"""Shorter items of real numbers correlate by chance."""

LEAST_SYMBOLS: Final = 64
"""Shorter texts are equal, or share half of their runs, by stock phrases."""

SEED: Final = 4
"""Symbols in a row by which places of a text are found where a copy may begin."""

MOST_PLACES: Final = 64
"""A row of symbols that training has more often says nothing of where."""

NUM_SHIFTS: Final = 8
ALIGNED: Final = 0.6
"""Share of the symbols of a text that those of a copy equal, place by place."""

REPEATED: Final = 0.5
"""Share of the test items that may equal another one; if more do, inputs are so few that training has them too."""

GRAM: Final = 8
SHARED: Final = 0.5
"""Share of the runs of `GRAM` symbols of a test item that a copy has."""


def of_data(train: Sequence[Example], test: Sequence[Example], is_generated: bool = False) -> list[Finding]:
    """The three checks of training and test items.

    Args:
        is_generated: both are drawn alike, so that equal ones are chance.
    """
    repeated = _repeated(test)
    if not train or not test:
        why = f"`examples` gives none of {'training' if not train else 'test'}"
        return [repeated or unchecked(COPIES, why), unchecked(NEAR, why), unchecked(GROUPS, why)]
    if repeated:
        return [repeated, unchecked(NEAR, "test items repeat each other"), _groups(train, test)]
    if is_generated:
        why = "training and test items are drawn alike (generated=True)"
        return [unchecked(COPIES, why), unchecked(NEAR, why), _groups(train, test)]
    return [_copies(train, test), _near(train, test), _groups(train, test)]


def _repeated(test: Sequence[Example]) -> Finding | None:
    """Whether most test items equal another one, as where a task has few inputs."""
    digests = Counter(
        digest(as_array(example.inputs)) for example in test if not _is_short_text(as_array(example.inputs))
    )
    number = sum(count for count in digests.values() if count > 1)
    if number <= REPEATED * len(test):
        return None
    moved = f"{number:,} of {len(test):,} test items equal another one, so few inputs are there for training and test"
    return Finding(COPIES, "finding", "nothing", moved, number / len(test))


def _copies(train: Sequence[Example], test: Sequence[Example]) -> Finding:
    test = [one for one in test if not _is_short_text(as_array(one.inputs))]
    if not test:
        return unchecked(COPIES, f"test items have fewer than {LEAST_SYMBOLS} symbols")
    known = {digest(as_array(example.inputs)): example.name for example in reversed(train)}
    pairs = [(example.name, known[mark]) for example in test if (mark := digest(as_array(example.inputs))) in known]
    if not pairs:
        return Finding(COPIES)
    moved = f"{len(pairs):,} of {len(test):,} test items are in training, first {pairs[0][0]} as {pairs[0][1]}"
    return Finding(COPIES, "finding", "nothing", moved, len(pairs) / len(test))


def _near(train: Sequence[Example], test: Sequence[Example]) -> Finding:
    places = np.linspace(0, len(test) - 1, min(MOST_TESTED, len(test))).round().astype(int)
    tested = [test[place] for place in places]
    ours, theirs = ([as_array(example.inputs) for example in part] for part in (tested, train))
    if all(map(_is_text, (*ours, *theirs))):
        is_short = [_is_short_text(values) for values in ours]
        if all(is_short):
            return unchecked(NEAR, f"test items have fewer than {LEAST_SYMBOLS} symbols")
        likeness, bound = np.maximum(_shared_runs(ours, theirs), SHARED / ALIGNED * _aligned(ours, theirs)), SHARED
        likeness[is_short] = 0
    elif min(map(len, (*ours, *theirs))) < LEAST_STEPS or len({values.shape[1:] for values in (*ours, *theirs)}) > 1:
        return unchecked(NEAR, f"items must have at least {LEAST_STEPS} steps, all of one shape")
    else:
        symbols = [[_symbols(values) for values in part] for part in (ours, theirs)]
        steps = ([np.diff(values, axis=0) for values in part] for part in (ours, theirs))
        alike = np.where(_correlations(*steps) >= ALIKE_STEPS, _correlations(ours, theirs), 0.0)
        likeness, bound = np.maximum(alike, ALIKE / SHARED * _shared_runs(*symbols)), ALIKE
    most = likeness.max(1)
    if most.max() < bound:
        return Finding(NEAR)
    first = int((most >= bound).argmax())
    twin = train[int(likeness[first].argmax())].name
    moved = f"{int((most >= bound).sum()):,} of {len(tested):,} test items have one, first {tested[first].name}: {twin}"
    return Finding(NEAR, "finding", "nothing", moved, float(most[first]))


def _groups(train: Sequence[Example], test: Sequence[Example]) -> Finding:
    of_train, of_test = ({example.group for example in part if example.group} for part in (train, test))
    if not of_train or not of_test:
        return unchecked(GROUPS, "examples have no group")
    shared = sorted(of_train & of_test)
    if not shared:
        return Finding(GROUPS)
    moved = f"{len(shared):,} of {len(of_test):,} groups of test items are in training, first {shared[0]}"
    return Finding(GROUPS, "finding", "nothing", moved, len(shared) / len(of_test))


def _is_text(values: NDArray[Any]) -> bool:
    return values.ndim == 1 and np.issubdtype(values.dtype, np.integer)


def _is_short_text(values: NDArray[Any]) -> bool:
    """Whether another item may well be the same by chance."""
    return _is_text(values) and len(values) < LEAST_SYMBOLS


def _correlations(test: Sequence[NDArray[Any]], train: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """The correlation of each pair, over a few fixed directions of the steps, at the shift with the highest (B A)."""
    width = int(np.prod(test[0].shape[1:]))
    directions = np.random.default_rng(0).normal(size=(width, min(width, NUM_DIRECTIONS)))
    length = 2 * max(map(len, (*test, *train)))

    def spectrum(values: NDArray[Any]) -> tuple[NDArray[np.complex128], float]:
        seen = values.reshape(len(values), -1).astype(np.float64) @ directions
        seen -= seen.mean(0)
        return np.fft.rfft(seen, length, axis=0), float(np.linalg.norm(seen)) or 1.0

    spectra = [spectrum(values) for values in test]
    found = np.zeros((len(test), len(train)))
    for j, values in enumerate(train):
        theirs, norm = spectrum(values)
        for i, (ours, own_norm) in enumerate(spectra):
            found[i, j] = np.fft.irfft((ours * theirs.conj()).sum(1), length).max() / (norm * own_norm)
    return found


def _mixed(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each row, of equal rows the same."""
    factors = np.random.default_rng(0).integers(1, 2**62, rows.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed: NDArray[np.uint64] = (rows * factors).sum(1, dtype=np.uint64)
    return mixed


def _symbols(values: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each step of an item of real numbers: of equal steps the same, but of silence."""
    mixed = _mixed(np.ascontiguousarray(values.reshape(len(values), -1).astype(np.float64)).view(np.uint64))
    is_still = np.concatenate([[False], mixed[1:] == mixed[:-1]])  # silence is equal everywhere
    return np.where(is_still, np.arange(len(values), dtype=np.uint64) + mixed[:1] * np.uint64(3), mixed)


def _shared_runs(test: Sequence[NDArray[Any]], train: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """The share of the runs of symbols of each test item that each training item has (B A)."""

    ours = [np.unique(_rows(values, GRAM)) for values in test]
    every, owner = np.concatenate(ours), np.repeat(np.arange(len(ours)), [len(one) for one in ours])
    found = np.zeros((len(test), len(train)))
    for j, values in enumerate(train):
        is_there = np.isin(every, _rows(values, GRAM))
        found[:, j] = np.bincount(owner[is_there], minlength=len(test))
    return found / np.maximum(1, [len(one) for one in ours])[:, None]


def _aligned(test: Sequence[NDArray[Any]], train: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """The share of the symbols of each test item that equal those of all training, laid beside it where they fit best.

    A stretch that begins in one training item and ends in the next counts for the one in which it begins (B A).
    """
    text = np.concatenate(train).astype(np.int64)
    ends, found = np.cumsum([len(values) for values in train]), np.zeros((len(test), len(train)))
    rows = _rows(text, SEED)
    order = np.argsort(rows)
    ranked = rows[order]
    for i, values in enumerate(test):
        own = _rows(values, SEED)
        first, past = np.searchsorted(ranked, own, "left"), np.searchsorted(ranked, own, "right")
        places = np.flatnonzero((past > first) & (past - first <= MOST_PLACES))
        shifts = [order[first[place] : past[place]] - place for place in places]
        each, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *shifts]), return_counts=True)
        for shift in each[np.argsort(-counts)[:NUM_SHIFTS]]:
            start, end = max(0, -shift), min(len(values), len(text) - shift)
            equal = (values[start:end] == text[start + shift : end + shift]).sum() / len(values)
            j = int(np.searchsorted(ends, start + shift, "right"))
            found[i, j] = max(found[i, j], equal)
    return found


def _rows(text: NDArray[Any], length: int) -> NDArray[np.uint64]:
    """A number for each `length` symbols in a row."""
    if len(text) < length:
        return np.zeros(0, np.uint64)
    return _mixed(np.lib.stride_tricks.sliding_window_view(text.astype(np.uint64), length))
