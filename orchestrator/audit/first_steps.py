"""What training begins with: the weights before its first step, and what modules read in its first steps.

Two seeds are compared by it. A checkpoint comes too late: by then weights have moved, and an order leaves no trace.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

NUM_STEPS: Final = 3
"""Steps of an optimiser that are looked at."""

LEAST_WEIGHTS: Final = 32
"""Smaller matrices of weights are not looked at."""

LEAST_READ: Final = 4
"""Smaller arrays are no data: the number of a step, a rate."""

MOST_VALUES: Final = 100_000
"""So many of the weights tell whether they were drawn."""

LEAST_OTHER: Final = 0.9
"""Share of values that were drawn that no other one equals; a mask or an identity has few."""

MOST_SMOOTH: Final = 0.5
"""Correlation of values that were drawn with their neighbours; a table of positions has more."""

FILE: Final = "first_steps.json"


@dataclass(frozen=True)
class FirstSteps:
    """Digests of arrays.

    Attributes:
        weights: matrices that look as if they were drawn, by name, before the first step.
        read: what modules were given, by module and place; for each step.
    """

    weights: Mapping[str, str]
    read: list[Mapping[str, str]]


def first_steps(folder: Path) -> FirstSteps | None:
    """What `watch` wrote; None where no optimiser of torch made a step."""
    if not (folder / FILE).exists():
        return None
    return FirstSteps(**json.loads((folder / FILE).read_text()))


def watch(folder: Path) -> "list[RemovableHandle]":
    """From now on, modules and optimisers of torch in this process leave in `folder` what they begin with.

    Returns:
        What ends it.
    """
    from torch import is_grad_enabled, strided
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    weights: dict[str, str] = {}
    read: list[dict[str, str]] = [{}]
    seen, kinds, depth = set[int](), Counter[str](), 0

    def before(module: Any, given: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > 1 or len(read) > NUM_STEPS or not is_grad_enabled():  # within another one, or a validation
            return
        kind = type(module).__name__
        if len(read) == 1 and id(module) not in seen:
            seen.update(map(id, module.modules()))
            kinds[kind] += 1
            name = kind if kinds[kind] == 1 else f"{kind} {kinds[kind]}"
            weights.update(digests((f"{name}.{key}", value) for key, value in module.state_dict().items()))
        place = len(read[-1])
        for number, value in enumerate(_tensors(given)):
            if value.layout == strided and value.numel() >= LEAST_READ:
                exact = value.double() if value.is_floating_point() else value  # numpy has no bfloat16
                read[-1][f"{kind} {place}.{number}"] = digest(exact.detach().cpu().numpy())

    def after(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    def step(optimiser: Any, *_: Any) -> None:
        if len(read) > NUM_STEPS:
            return
        if len(read) == 1:
            values = enumerate(value for group in optimiser.param_groups for value in group["params"])
            loose = digests((f"{type(optimiser).__name__}.{number}", value) for number, value in values)
            weights.update({name: mark for name, mark in loose.items() if mark not in weights.values()})
        (folder / FILE).write_text(json.dumps({"weights": weights, "read": read}))
        read.append({})

    return [
        register_module_forward_pre_hook(before),
        register_module_forward_hook(after, always_call=True),
        register_optimizer_step_pre_hook(step),
    ]


def digests(state: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Digests of the matrices that look as if they were drawn, by name."""
    return {name: digest(values) for name, values in matrices(state) if _is_drawn(values)}


def matrices(state: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The matrices of real numbers among arrays of torch, with their names: weights, if they are not all alike."""
    for name, value in state:
        if hasattr(value, "detach") and value.is_floating_point() and value.ndim > 1 and value.numel() >= LEAST_WEIGHTS:
            yield name, value.detach().cpu().double().numpy()


def _is_drawn(values: NDArray[np.float64]) -> bool:
    flat = values.reshape(len(values), -1)
    flat = flat[: max(1, MOST_VALUES // flat.shape[1])]
    if len(np.unique(flat)) < LEAST_OTHER * flat.size:
        return False
    pairs = [(flat[1:], flat[:-1]), (flat[:, 1:], flat[:, :-1])]
    return all(
        abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) <= MOST_SMOOTH for one, other in pairs if one.size > 1
    )


def _tensors(given: Any) -> Iterator[Any]:
    """The tensors in arguments, in containers too."""
    if hasattr(given, "detach"):
        yield given
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from _tensors(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _tensors(value)
    elif is_dataclass(given):
        for field in fields(given):
            yield from _tensors(getattr(given, field.name))


def as_array(values: Any) -> NDArray[Any]:
    """Values as an array of numpy; those of torch may be on any device."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def digest(values: NDArray[Any]) -> str:
    """The same of arrays of the same kind, shape and values."""
    kind = f"{values.dtype} {values.shape}".encode()
    return hashlib.sha256(kind + np.ascontiguousarray(values).tobytes()).hexdigest()
