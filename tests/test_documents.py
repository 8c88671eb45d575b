"""The documents keep what they promise: their commands parse, what they name exists, and README stays short."""

import ast
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from orchestrator.cli.main import app
from orchestrator.cli.options import find
from orchestrator.environment.settings import NAMES
from ponderay import NOTEBOOK
from search_spaces.find import find_sweep, sweep_functions

ROOT = Path(__file__).parent.parent
README, COMMANDS, RESULTS = ROOT / "README.md", ROOT / "docs/commands.md", ROOT / "RESULTS.md"
CURRENT = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
MEASURED = [*sorted((ROOT / "docs/results").glob("*.md")), ROOT / "evidence/plan.md"]
"""What was run: its commands are those of the commits that it names."""

DOCUMENTS = [*CURRENT, *MEASURED]
FOLDERS = (
    "orchestrator",
    "search_spaces",
    "trainables",
    "tests",
    "benchmarks",
    "docs",
    "deploy",
    "examples",
    "evidence",
)

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"""(?:\]\(|src=")([^)"\s]+)""")
IN_BLOCK = re.compile(r"^ *(?:\.venv/bin/)?ponderay (.+)|'ponderay ([^']+)'", re.MULTILINE)
IN_TEXT = re.compile(r"`(?:\.venv/bin/)?ponderay ([^`]+)`")
SWEEP = re.compile(r"(?<![\w./-])(?:asr|act|lm)\.(?!md\b)\w+")
TASKS = ("parity", "logic", "addition", "sort", "text")
RUNS = re.compile(rf"\bponderay\.({'|'.join(NOTEBOOK)})\(")
"""What runs something, or reads what has run."""


def blocks(document: Path, language: str = "") -> Iterator[str]:
    """The fenced blocks of that language, with continued lines in one."""
    for found in FENCED.finditer(document.read_text()):
        if found[1] == language:
            yield found[2].replace("\\\n", " ")


def prose(document: Path) -> str:
    """All but fenced blocks."""
    return FENCED.sub("", document.read_text())


def commands(document: Path) -> Iterator[list[str]]:
    """The arguments of every `ponderay ...`; what stands in brackets is given."""
    lines = [found[1] or found[2] for block in blocks(document) for found in IN_BLOCK.finditer(block)]
    lines += [re.sub(r"[\[\]]", "", found[1]) for found in IN_TEXT.finditer(prose(document))]
    for line in lines:
        words = shlex.split(line, comments=True)
        end = next((at for at, word in enumerate(words) if word in ("|", ">", "&", "&&")), len(words))
        yield words[:end]


COMMAND_LINES = [
    pytest.param(words, id=f"{path.stem}: {' '.join(words)}") for path in CURRENT for words in commands(path)
]


def test_readme_can_be_read_at_one_sitting():
    assert len(README.read_text().splitlines()) <= 170


def test_the_results_are_one_short_page_that_leads_to_each_study():
    bundles = {path.stem for path in (ROOT / "evidence").glob("*.zip")}
    linked = set(re.findall(r"^\| \[.+?\]\(docs/results/(.+?)\.md\) \|", RESULTS.read_text(), re.MULTILINE))
    assert len(RESULTS.read_bytes()) <= 12_000
    assert linked == bundles
    assert {path.stem for path in (ROOT / "docs/results").iterdir()} == {*bundles, "benchmarks"}
    assert {path.stem for path in (ROOT / "evidence").glob("*.md")} - bundles == {"benchmarks", "plan", "LOG"}


@pytest.mark.parametrize("words", COMMAND_LINES)
def test_a_command_line_parses_and_its_sweep_takes_the_values(words):
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    if len(words) == 1:  # a text speaks of the command as such
        return
    given = command.make_context("ponderay", rest).params
    if given.get("name") not in sweep_functions():
        return
    sweep = find(given["name"], given.get("smoke", False), given.get("values"), given.get("seeds"), given.get("needs"))
    if condition := given.get("condition"):
        assert condition in [one.name for one in sweep.conditions]


def anchors(document: Path) -> set[str]:
    """Its headings as GitHub makes them into addresses."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in LINK.findall(prose(document)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document):
    text = document.read_text()
    words = {word for span in SPAN.findall(text) for word in span.split()}
    words |= set(re.findall(r"\bbenchmarks/\w+\.py", text))
    named = [word for word in words if word.partition("/")[0] in FOLDERS and re.fullmatch(r"\w+/[a-z\d_./-]*", word)]
    missing = [word for word in named if not (ROOT / word).exists()]
    assert not missing


def test_the_table_of_rooms_is_complete_and_true():
    table = README.read_text().partition("## Where things are")[2].partition("\n## ")[0]
    rooms: set[Path] = set()
    for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE):
        first, *others = SPAN.findall(row)
        in_first = [(ROOT / first.rstrip("/")).parent / other for other in others]
        rooms |= {ROOT / first, *(path if path.exists() else ROOT / path.name for path in in_first)}
    assert all(room.exists() for room in rooms)
    packages = {path.parent for path in (ROOT / "orchestrator").glob("*/__init__.py")}
    assert packages <= rooms


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: path.name)
def test_sweeps_that_are_named_are_shipped(document):
    assert sweeps_of(document) <= set(sweep_functions())


def sweeps_of(document: Path) -> set[str]:
    """Those it names; `TASK` stands for every task of act."""
    found = {name for name in SWEEP.findall(document.read_text()) if f"trainables.{name}" not in document.read_text()}
    return {name.replace("TASK", task) for name in found for task in (TASKS if "TASK" in name else ("",))}


@pytest.mark.parametrize("family", ["asr", "act", "lm"])
def test_the_page_of_a_family_lists_all_its_sweeps(family):
    shipped = {name for name in sweep_functions() if name.startswith(f"{family}.")}
    assert shipped <= sweeps_of(ROOT / f"docs/{family}.md")


@pytest.mark.parametrize("family", ["asr", "act", "lm"])
def test_the_page_of_a_family_says_how_many_runs_a_sweep_has(family):
    """In the last column of the table; a line may be of several sweeps, or of all tasks but text, which has its own."""
    found = 0
    for line in (ROOT / f"docs/{family}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not cells[-1].replace(",", "").isdigit():
            continue
        for name in SWEEP.findall(cells[0]):
            for task in TASKS if "TASK" in name else ("",):
                sweep = find_sweep(name.replace("TASK", task))
                if task != "text":
                    num_runs = sweep.num_conditions() * len(sweep.seeds)
                    assert int(cells[-1].replace(",", "")) == num_runs, sweep.name
                    found += 1
    assert found >= 5


def test_every_command_and_setting_is_documented():
    text = COMMANDS.read_text()
    assert {f"ponderay {name}" for name in typer.main.get_command(app).commands} <= set(
        re.findall(r"ponderay \w+", text)
    )
    assert {f"PONDERAY_{name.upper()}" for name in NAMES} <= set(SPAN.findall(text))
    assert set(NAMES) <= set(SPAN.findall(text))


@pytest.mark.parametrize(
    "document",
    [
        # its blocks are the files that `test_own_model.py` runs to the end
        pytest.param(path, id=path.name, marks=[pytest.mark.slow, pytest.mark.long] * (path.name == "own-model.md"))
        for path in CURRENT
    ],
)
def test_examples_in_python_hold_until_they_run_something(document):
    for block in blocks(document, "python"):
        before = itertools.takewhile(lambda node: not RUNS.search(ast.unparse(node)), ast.parse(block).body)
        source = ast.unparse(ast.Module(list(before), type_ignores=[]))
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", source], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.returncode == 0, f"{document.name}:\n{source}\n{done.stderr}"
