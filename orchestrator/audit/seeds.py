"""Whether seeds reach everything: equal ones give equal digits, and two give others, from the first weights on."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from orchestrator.audit.first_steps import FirstSteps, matrices
from orchestrator.checks.resumption import Numbers, differences, untimed
from orchestrator.results.audit import Finding, unchecked
from trainables.prediction import Promises

EQUAL, OTHER, WEIGHTS, ORDER = "equal seeds agree", "two seeds differ", "first weights by seed", "data by seed"

ALIKE: Final = 0.8
"""Correlation of a matrix under two seeds at the first checkpoint: of independent first weights it is near 0."""


def of_seeds(first: Numbers, again: Numbers, other: Numbers) -> list[Finding]:
    """What the reports of a few steps of training say.

    Args:
        first, again: what was reported under one seed, twice.
        other: under another one.
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
    return [agree, differ]


def of_first_weights(first: FirstSteps, other: FirstSteps, given: Collection[str], promised: Promises) -> Finding:
    """Whether two seeds draw all weights.

    Args:
        given: digests of weights that come from prerequisites, which may be trained once for all seeds.
    """
    if promised.same_start is True:
        return unchecked(WEIGHTS, "it is not promised (same_start=True)")
    meant = tuple(promised.same_start or ())
    names = [name for name in first.weights if name in other.weights]
    names = [name for name in names if first.weights[name] not in given and not _is_meant(name, meant)]
    if not names:
        return unchecked(WEIGHTS, "there are no weights that look as if they were drawn")
    same = [name for name in names if first.weights[name] == other.weights[name]]
    if not same:
        return Finding(WEIGHTS)
    moved = f"not {', '.join(same[:3])}{' ...' if len(same) > 3 else ''}: {len(same)} of {len(names)} weights are equal"
    return Finding(WEIGHTS, "finding", "the seed", f"{moved}; draw them from `config.seed`", 0.0)


def _is_meant(name: str, meant: tuple[str, ...]) -> bool:
    """A name begins with the module's kind, which its author does not write."""
    return name.startswith(meant) or name.partition(".")[2].startswith(meant)


def of_order(first: FirstSteps, other: FirstSteps, promised: Promises) -> Finding:
    """Whether two seeds read other data in each of the first steps."""
    if promised.same_order:
        return unchecked(ORDER, "it is not promised (same_order=True)")
    if len(first.read) < 2 or not first.read[0]:
        return unchecked(ORDER, "no module of torch was given an array in two steps of an optimiser")
    steps = list(zip(first.read, other.read, strict=False))
    for name in first.read[0]:
        read = [(ours.get(name), theirs.get(name)) for ours, theirs in steps]
        is_same = all(ours is not None and ours == theirs for ours, theirs in read)
        if is_same and len({ours for ours, _ in read}) == len(read) > 1:  # else all data are read in each step
            moved = f"nothing that {name.partition(' ')[0]} reads in the first {len(read)} steps"
            return Finding(ORDER, "finding", "the seed", f"{moved}; draw the order from `config.seed`", 0.0)
    return Finding(ORDER)


def of_checkpoints(one: Any, other: Any, promised: Promises) -> Finding:
    """Whether first checkpoints differ between two seeds, where first steps were not seen.

    Args:
        one, other: as `torch.load` gives them; None: there is none.
    """
    if promised.same_start:
        return unchecked(WEIGHTS, f"it is not promised (same_start={promised.same_start!r})")
    ours, theirs = (
        {name: values for name, values in matrices(arrays(state)) if values.std() > 0} for state in (one, other)
    )
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


def arrays(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of torch in a checkpoint, by their path, but for an optimiser's."""
    if isinstance(state, Mapping):
        for name, value in state.items():
            if not str(name).startswith("optim"):
                yield from arrays(value, f"{path}.{name}".lstrip("."))
    elif isinstance(state, list | tuple):
        for number, value in enumerate(state):
            yield from arrays(value, f"{path}.{number}".lstrip("."))
    elif hasattr(state, "detach"):
        yield path, state
