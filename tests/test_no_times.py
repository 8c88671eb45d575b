"""No test asserts how long something took: the machine and what runs beside it decide that; `benchmarks/` measure."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time", "time_ns", "monotonic_ns"}


def reads_a_clock(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in CLOCKS and ast.unparse(called.value) == "time"


def asserted_times(source: str) -> list[int]:
    """Lines with an assertion on a difference of the clock; that a deadline has not passed is none."""
    if not re.search(r"\btime\b", source):  # to parse a thousand files takes seconds
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        and any(isinstance(part, ast.BinOp) and any(map(reads_a_clock, ast.walk(part))) for part in ast.walk(node.test))
    ]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("assert time.perf_counter() - began < 1", [1]),
        ("x = 1\nassert done and 0 < time.monotonic() - began_s", [2]),
        ("assert time.monotonic() < deadline", []),
        ("waited_s = time.monotonic() - began", []),
    ],
)
def test_such_an_assertion_is_seen(source, lines):
    assert asserted_times(source) == lines


def test_no_test_has_one():
    files = {path: asserted_times(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {str(path.relative_to(TESTS)): lines for path, lines in files.items() if lines} == {}
    assert len(files) > 100
