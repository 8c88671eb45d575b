"""The golden outputs are the same whenever they are written; else a difference between commits would say nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import fixed_words, messages

PARTS = ("bundles:act.tau_sort_laptop", "studies:searched", "training:act.tau_sort")


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files, by their paths."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_two_runs_on_one_commit_write_the_same(tmp_path):
    for folder in (tmp_path / "a", tmp_path / "b"):
        command = [sys.executable, "-m", "tests.golden.outputs", str(folder), *PARTS]
        subprocess.run(command, cwd=fixed_words.ROOT, check=True)  # noqa: S603
    first, second = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert len(first) > 30 and first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_only_what_differs_from_run_to_run_is_replaced():
    row = {"key": "0123456789abcdef", "duration_s": 1.5, "num_devices": 1, "error": 0.1 + 0.2, "run_id": "", "host": ""}
    assert fixed_words.of("", row) == row | {"duration_s": "DURATION"}
    assert fixed_words.of("tag", '{"host": "a", "seed": 1}') == {"host": "HOST", "seed": 1}
    assert fixed_words.of_output("row,column,value\na,duration_s,2\na,loss,2\n", "csv") == (
        "row,column,value\na,duration_s,DURATION\na,loss,2\n"
    )


def test_a_sentence_is_every_text_of_three_words_but_docstrings():
    source = (
        '"""Of no use here."""\nraise E(f"{x!r} must be {y}, "\n f"not {z if a else \'what it is\'}.", "two words")'
    )
    assert messages.sentences(ast.parse(source)) == {"{} must be {}, not {}.", "what it is"}
