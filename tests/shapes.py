"""Checks of tensor shapes, at the first calls of a function in each test: checks take longer than small networks.

`jaxtyping`'s import hook decorates every function of a module, those within functions too, and there at each call.
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Final

import jaxtyping

MOST_CALLS: Final = 8
num_calls: Counter[CodeType] = Counter()
"""Calls of each function in the test that runs."""


def check_shapes(modules: Sequence[str]) -> None:
    """Has the first calls of all functions checked in modules that are imported from here on."""
    plain = jaxtyping.jaxtyped

    def at_first(fn: Any, typechecker: Callable[..., Any]) -> Any:
        if isinstance(fn, type):
            return plain(fn, typechecker=typechecker)
        checked = functools.cache(lambda: plain(fn, typechecker=typechecker))

        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            num_calls[fn.__code__] += 1
            return (checked() if num_calls[fn.__code__] <= MOST_CALLS else fn)(*args, **kwargs)

        return called

    jaxtyping.jaxtyped = lambda typechecker: functools.partial(at_first, typechecker=typechecker)
    jaxtyping.install_import_hook(modules, "beartype.beartype")
