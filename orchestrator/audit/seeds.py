"""Whether seeds reach everything: equal ones give equal digits, and two give others, from the first weights on."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from orchestrator.checks.resumption import Numbers, differences, untimed
from orchestrator.results.audit import Finding, unchecked

EQUAL, OTHER, WEIGHTS = "equal seeds agree", "two seeds differ", "first weights by seed"

LEAST_WEIGHTS: Final = 32
ALIKE: Final = 0.8
"""Correlation of a matrix under two seeds at the first checkpoint: of independent first weights it is near 0."""


def of_seeds(
    first: Numbers, again: Numbers, other: Numbers, weights: tuple[Any, Any], same_start: bool = False
) -> list[Finding]:
    """The checks of a few steps of training.

    Args:
        first, again: what was reported under one seed, twice.
        other: under another one.
        weights: the first checkpoint of `first` and that of `other`, as `torch.load` gives them; None: there is none.
        same_start: whether all seeds begin with the same weights.
    """
    last = min(max((step for step, _ in one), default=0) for one in (first, again, other))  # one was ended later
    first, again, other = ({at: value for at, value in one.items() if at[0] <= last} for one in (first, again, other))
    equal, different = next(differences(first, again), None), list(differences(first, other))
    agree, differ = Finding(EQUAL), Finding(OTHER)
    if equal:
        by = abs(equal.expected - equal.found) if equal.found is not None else None
        agree = Finding(EQUAL, "finding", "nothing, trained again", f"{equal.metric} at step {equal.step}", by)
    if not different:
        moved = f"nothing of {len(untimed(first)):,} numbers; draw everything from `config.seed`"
        differ = Finding(OTHER, "finding", "the seed", moved, 0.0)
    return [agree, differ, _first_weights(*weights, same_start)]


def _first_weights(one: Any, other: Any, same_start: bool) -> Finding:
    if same_start:
        return unchecked(WEIGHTS, "it is not promised (same_start=True)")
    ours, theirs = dict(_matrices(one)), dict(_matrices(other))
    likeness = {
        name: abs(float(np.corrcoef(ours[name].ravel(), theirs[name].ravel())[0, 1]))
        for name in ours.keys() & theirs.keys()
        if ours[name].shape == theirs[name].shape
    }
    if not likeness:
        return unchecked(WEIGHTS, "no checkpoint has matrices")
    least = min(likeness, key=lambda name: likeness[name])
    if likeness[least] < ALIKE:
        return Finding(WEIGHTS)
    moved = f"none of {len(likeness)} matrices of weights; {least} is most different, correlated"
    return Finding(WEIGHTS, "finding", "the seed", moved, likeness[least])


def _matrices(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Weights in a checkpoint, by their path: of real numbers, in two axes or more, and not all alike."""
    if isinstance(state, Mapping):
        for name, value in state.items():
            if not str(name).startswith("optim"):
                yield from _matrices(value, f"{path}.{name}".lstrip("."))
    elif isinstance(state, list | tuple):
        for number, value in enumerate(state):
            yield from _matrices(value, f"{path}.{number}".lstrip("."))
    elif hasattr(state, "detach") and state.is_floating_point() and state.ndim > 1 and state.numel() >= LEAST_WEIGHTS:
        values = state.detach().cpu().double().numpy()
        if values.std() > 0:
            yield path, values
