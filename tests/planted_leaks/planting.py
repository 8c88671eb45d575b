"""How a fault is put into a family that ships: something in its code is replaced while it trains or predicts."""

import sys
from contextlib import ExitStack, contextmanager
from unittest import mock


@contextmanager
def replaced(original, new):
    """`new` wherever a module of ours holds `original`, as somebody has it who edits the function itself."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("trainables", "routed_bytes"):
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        stack.enter_context(mock.patch.object(module, attribute, new))
        yield


def leaky(cls, base, **values):
    """The config `base` as one of its subclass `cls`, with some `values` more."""
    return cls(**({name: getattr(base, name) for name in type(base).model_fields} | values))
