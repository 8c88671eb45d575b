"""No file grows past 400 lines, and no function past 80: then it holds two things."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("benchmarks", "evidence", "examples", "orchestrator", "ponderay", "search_spaces", "tests", "trainables")
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


def test_files_have_400_lines_at_most_and_functions_80():
    long = [str(file.relative_to(ROOT)) for file in FILES if len(file.read_text().splitlines()) > 400]
    for file in FILES:
        for one in ast.walk(ast.parse(file.read_text())):
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.end_lineno - one.lineno >= 80:
                long.append(f"{file.relative_to(ROOT)}:{one.lineno} {one.name}")
    assert len(FILES) > 500 and not long
