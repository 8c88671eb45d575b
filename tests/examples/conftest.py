"""The packages of `examples/` can be imported, as for someone who works in that folder."""

import sys
from pathlib import Path

import pytest

EXAMPLES = str(Path(__file__).parents[2] / "examples")
sys.path.append(EXAMPLES)  # while tests are collected


@pytest.fixture(autouse=True)
def examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever process, and not after the test."""
    monkeypatch.syspath_prepend(EXAMPLES)
