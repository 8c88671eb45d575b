"""Standard output that is closed, full, without a reader or of another encoding: a sentence, and never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.door import PLAIN, ROOT

SENTENCE = "ponderay: Standard output takes no more ({}); the rest is not shown.\n"
CLOSED = "ponderay: Standard output is closed, where the answer goes; redirect it, to /dev/null if it may be lost.\n"
SHOWN = PLAIN.replace("A loss that falls", "Größe: a loss \\u20ac that falls")


def say(folder: Path, redirected: str, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, redirected as a shell does it."""
    (folder / "toy.py").write_text(SHOWN)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PONDERAY_RUNS": str(folder / "runs")} | variables
    words = ["bash", "-c", f'"$@" {redirected}; exit ${{PIPESTATUS[0]}}', "-", sys.executable, "-m", "orchestrator"]
    done = subprocess.run([*words, *arguments], cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S603
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        (">&-", (2, "", CLOSED)),
        (">&- 2>&-", (2, "", "")),
        (">/dev/full", (1, "", SENTENCE.format("No space left on device"))),
        (">/dev/full 2>/dev/full", (1, "", "")),
        ("| true", (1, "", SENTENCE.format("Broken pipe"))),
    ],
)
def test_an_answer_that_goes_nowhere_is_told(tmp_path, redirected, said):
    assert say(tmp_path, redirected, "show", "toy.py:toy") == said


@pytest.mark.parametrize("arguments", [("--help",), ("sweeps", "toy.py", "--format", "json")])
def test_whatever_is_printed_ends_so(tmp_path, arguments):
    assert say(tmp_path, ">/dev/full", *arguments) == (1, "", SENTENCE.format("No space left on device"))


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "<&-"])
def test_what_is_not_needed_for_the_answer_may_be_closed(tmp_path, redirected):
    code, out, err = say(tmp_path, redirected, "show", "toy.py:toy")
    assert (code, err) == (0, "") and "Größe: a loss € that falls" in out


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (("show", "toy.py:toy"), {"PYTHONIOENCODING": "ascii"}),
        (("sweeps", "toy.py", "--format", "csv"), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_what_the_encoding_lacks_is_an_escape(tmp_path, arguments, variables):
    code, out, err = say(tmp_path, "", *arguments, **variables)
    assert (code, err) == (0, "") and r"Gr\xf6\xdfe: a loss \u20ac that falls" in out


@pytest.mark.slow
def test_a_replicate_trains_to_its_end_though_nobody_reads_its_progress(tmp_path):
    train = say(tmp_path, "| true", "train", "toy.py:toy", "--condition", "width=4")
    assert train == (1, "", SENTENCE.format("Broken pipe"))
    assert "complete" in say(tmp_path, "", "status", "toy.py:toy", "--format", "csv")[1]
