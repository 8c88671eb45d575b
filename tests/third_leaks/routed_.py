"""`examples/routed_bytes` with one fault each."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any
from unittest.mock import patch

import ponderay
from trainables.conditional.top_k import TopKRouter

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from routed_bytes import text
from routed_bytes import train as routed
from routed_bytes.config import Always, Controller, RoutedBytes, TopK
from routed_bytes.sweeps import SMOKE

metrics, reads, selection, num_steps = routed.metrics, routed.reads, routed.selection, routed.num_steps
_documentation, _choose = text._documentation, TopKRouter.forward


class Changed(RoutedBytes):
    """A config of the package, and what is changed in it."""

    change: str = ""


def _highest(self: TopKRouter, x: Any, k: int) -> Any:
    """The choice for each byte."""
    was, self.training = self.training, True
    # WRONG: in tests too the highest of the whole sequence are chosen, for which its later bytes must be known
    choice = _choose(self, x, k)
    self.training = was
    return choice


def _all_topics() -> dict[str, bytes]:
    """The documentation in three parts."""
    # WRONG: training reads all topics, and those of validation and test are among them
    return _documentation() | {"train": "\n".join(topics[name] for name in sorted(topics)).encode()}


CHANGES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "highest_in_tests": lambda: patch.object(TopKRouter, "forward", _highest),
    "all_topics": lambda: patch.object(text, "_documentation", _all_topics),
}


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(config: Changed, *rest: Any) -> Any:
        with CHANGES[config.change]():
            return function(config, *rest)

    return run


# the text is kept by whoever reads it first, so the fingerprint must read the changed one too
train, evaluate, fingerprint = _changed(routed.train), _changed(routed.evaluate), _changed(routed.fingerprint)
examples, predict, promises = _changed(routed.examples), _changed(routed.predict), _changed(routed.promises)


def _sweep(change: str, controller: Controller) -> ponderay.Sweep:
    model = SMOKE.model.model_copy(update={"context": 96})
    return ponderay.Sweep(
        name=change, description="A changed transformer.", trainable=__name__,
        base=Changed(**(dict(SMOKE) | {"model": model}), change=change),
        conditions=(ponderay.Condition("only", {"controller": controller}),),
        objectives=(ponderay.Objective("bits_per_byte"), ponderay.Objective("macs_per_token")),
    )  # fmt: skip


highest_in_tests = _sweep("highest_in_tests", TopK(rate=0.25))
all_topics = _sweep("all_topics", Always(kind="always_big"))
