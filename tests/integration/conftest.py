"""A tracking store whose tables are made."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def workplace(workplace: Path, store: Callable[[Path], None]) -> Path:
    """The same with an empty store, for making one takes seconds."""
    store(workplace)
    return workplace
