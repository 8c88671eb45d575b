"""Generated cases of bad input for every command; the same for a seed.

Commands that would train, serve or send something get at least one thing that must be refused. Half of the cases of
those that read ask plainly, and only what is stored, or one variable, is bad. A quarter of theirs is drawn apart and
has a study to answer from, because Hypothesis varies one case a little many times.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import hypothesis
from hypothesis import strategies as st

from benchmarks.bad import values
from benchmarks.bad.commands import Command, commands

Draw = st.DrawFn
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """One call of the program.

    Attributes:
        environment: variables beside those of a bare shell; bytes that are no UTF-8 as surrogates.
        settings: content of `ponderay.toml`; None without one.
        stored: the state of the runs folder.
    """

    command: Command
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: bytes | None = None
    stored: str = "nothing"


def _of(*groups: Sequence[str]) -> st.SearchStrategy[str]:
    return st.one_of(*(st.sampled_from(group) for group in groups), values.texts())


OPTIONS: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "--set": _of(values.SETTINGS),
    "--where": _of(values.SETTINGS, ("controller.kind=surprisal",)),
    "--resource": _of(values.RESOURCES),
    "--seeds": _of(values.NUMBERS, ("2", "3:5", "5:3", ":", "1:", "1:99999999999")),
    "--seed": _of(values.NUMBERS, ("12345678901234567890123",)),
    "--cpus": _of(values.NUMBERS, ("99999999999999", "4")),
    "--gpus": _of(values.NUMBERS, ("99999999999999", "2")),
    "--max-device-hours": _of(values.NUMBERS),
    "--calibrate": _of(tuple(one for one in values.NUMBERS if one not in ("1.5", "٣", "1_000"))),
    "--port": _of(values.NUMBERS, ("65536", "70000")),
    "--host": _of(values.HOSTS),
    "--format": _of(("json", "csv", "xml", "JSON")),
    "--output": _of(values.PLACES),
    "--bundle": _of(values.PLACES),
    "--folder": _of(values.PLACES),
    "--to": _of(values.PLACES),
    "--address": _of(values.ADDRESSES),
    "--source": st.sampled_from(("http://127.0.0.1:9", "http://[::1", "http://me:sesame@127.0.0.1:9", "foo", "")),
    "--textgrids": _of(values.PLACES),
}
"""Values of options by name; of others any text."""

ARGUMENTS: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "name": _of(values.SWEEPS, ("asr.demo", "toy.py:toy", "asr.demo", "toy.py:toy")),
    "place": _of(values.SWEEPS, ("asr", "toy.py")),
    "what": _of(values.SWEEPS, ("a-file", "bad.zip", "cut.zip", "none.zip")),
    "path": _of(values.PLACES, (".", "folder.py")),
    "corpus": values.texts(),
    "source": _of(values.PLACES, ("runs.csv", "a-file", "mlflow:none")),
}

SAME: Final = st.sampled_from(
    (("PONDERAY_RUNS", "/dev/null/x"), ("PONDERAY_SEARCH_URI", "foo"), ("PONDERAY_RUNS", "a-file"))
)
"""Variables with which every command is refused that reads settings."""

HARMLESS: Final = ("COLUMNS", "TERM", "NO_COLOR", "LC_ALL", "TZ", "PONDERAY_UNKNOWN")
"""Variables that change no answer, whatever they hold."""

READS_SETTINGS: Final = frozenset(
    {"run", "train", "check", "audit", "submit", "ui", "repair", "rm", "archive", "restore", "rename", "clean"}
)
BAD_OPTIONS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "serve": (
        ("--port", "0"),
        ("--port", "65536"),
        ("--folder", "/dev/null/x"),
        ("--artifacts", "gs://b"),
        ("--host", "no such host"),
    ),
    "jobs": (("--address", "foo"), ("--address", "http://127.0.0.1:9")),
    "logs": (("--address", "foo"), ("--address", "http://127.0.0.1:9")),
    "stop": (("--address", "foo"), ("--address", "http://127.0.0.1:9")),
    "data get": (("--to", "/dev/null/x"), ("--subset", "none")),
}
"""For commands that would start or send something: options of which each is refused; they come last, so they count."""

STARTS: Final = READS_SETTINGS | set(BAD_OPTIONS)


DOCUMENTS: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
VARIABLE: Final = re.compile(r"\b(?:PONDERAY|MLFLOW|RAY|AWS)_[A-Z_]*[A-Z]\b")
# PYTHONIOENCODING as junk ends Python before a line of ours
OF_THE_SYSTEM: Final = ("TMPDIR", "LANG", "COLUMNS", "HOME")
CHEAP: Final[Mapping[str, tuple[str, ...]]] = {
    "sweeps": ("asr",),
    "show": ("asr.demo",),
    "plan": ("toy.py:toy",),
    "status": ("toy.py:toy",),
    "doctor": (),
}
"""Commands that are asked with every variable, and their arguments."""


def cases(num: int, seed: int, kinds: Sequence[str] = values.STORES) -> list[Case]:
    """`num` cases, as many of each command as of the others.

    Args:
        kinds: the states of the runs folder to choose from.
    """
    every = commands()
    found: list[Case] = []
    for index, command in enumerate(every):
        count = num // len(every) + (index < num % len(every))
        answered = _answered(command, count // 4, seed) if "study" in kinds and _reads(command) else []
        found += [*_of_command(command, count - len(answered), seed, kinds), *answered]
    return found


EDGES: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "status": ((),),
    "plan": ((),),
    "pareto": ((), ("--where", "size=1e308"), ("--where", "is_apart=true"), ("--where", "size=5e-324")),
    "compare": (
        (),
        ("near4", "near5"),
        ("apart6", "near2"),
        ("near0", "near1"),
        ("near3", "--line", "near2", "--line", "near4"),
    ),
    "curve": ((), ("--metric", "cost"), ("--where", "is_apart=true")),
    "report": ((), ("--bundle", "whole.zip"), ("--where", "size=1e155")),
    "verify": ((),),
}
"""By command, what is asked of a study of numbers at the edges of float64."""


def edge_cases() -> list[Case]:
    """Every question of `EDGES` in every format."""
    return [
        Case(command, ("edges.py:edges", *asked, "--format", format), stored="edges")
        for command in commands()
        for asked in EDGES.get(command.name, ())
        for format in ("table", "json", "csv")
    ]


def variable_cases() -> list[Case]:
    """Every variable that a document names, with every kind of junk, before the cheap commands in turn."""
    every = {one.name: one for one in commands()}
    names = sorted({name for file in DOCUMENTS for name in VARIABLE.findall(file.read_text(encoding="utf-8"))})
    turns = list(CHEAP.items())
    found = []
    for i, variable in enumerate((*names, *OF_THE_SYSTEM)):
        for j, junk in enumerate(values.JUNK):
            name, arguments = turns[(i + j) % len(turns)]
            found.append(Case(every[name], arguments, {variable: junk}, stored="study"))
    return found


def _reads(command: Command) -> bool:
    return command.name not in STARTS and command.arguments[:1] in (("name",), ("what",))


def _answered(command: Command, num: int, seed: int) -> list[Case]:
    """Plain questions about a study that is there, with one variable that may be odd and changes no answer."""
    rng = random.Random(f"{seed} {command.name}")
    return [
        Case(
            command,
            (*_named(command), *(("--format", rng.choice(("json", "csv", "table"))) if _has_format(command) else ())),
            {(name := rng.choice(HARMLESS)): rng.choice(values.VARIABLES[name])},
            stored=rng.choice(("study", "bad cache", "bad journal", "bad optuna")),
        )
        for _ in range(num)
    ]


def _named(command: Command) -> tuple[str, ...]:
    return ("toy.py:toy", *(("narrow",) if command.name == "analyse" else ()))


def _of_command(command: Command, num: int, seed: int, kinds: Sequence[str]) -> list[Case]:
    found: list[Case] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=3 * num + 10,
        database=None,
        phases=[hypothesis.Phase.generate],
        derandomize=False,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(_case(command, kinds))
    def keep(case: Case) -> None:
        if case not in found:
            found.append(case)

    keep()
    return found[-num:]  # the first ones are the simplest, and alike


@st.composite
def _case(draw: Draw, command: Command, kinds: Sequence[str]) -> Case:
    state = draw(st.sampled_from(kinds))
    if _reads(command) and draw(st.booleans()):
        chosen = draw(st.one_of(st.just([]), st.lists(st.sampled_from(sorted(values.VARIABLES)), max_size=1)))
        harmed = {name: draw(st.sampled_from(values.VARIABLES[name])) for name in chosen}
        shown = ("--format", draw(st.sampled_from(("json", "csv", "table")))) if _has_format(command) else ()
        return Case(command, (*_named(command), *shown), harmed, None, state)
    arguments = [draw(ARGUMENTS.get(name, values.texts())) for name in command.arguments if draw(st.integers(0, 9))]
    options = [one for one in command.options if one.name != "--stop"]  # it would end a server of somebody else
    for option in draw(st.lists(st.sampled_from(options), max_size=3, unique=True)) if options else ():
        arguments.append(option.name)
        if not option.is_flag:
            arguments.append(draw(OPTIONS.get(option.name, values.texts())))
    chosen = draw(st.lists(st.sampled_from(sorted(values.VARIABLES)), max_size=2, unique=True))
    environment = {name: draw(st.sampled_from(values.VARIABLES[name])) for name in chosen}
    settings = draw(st.one_of(st.none(), st.none(), st.sampled_from(values.FILES)))
    if command.name in READS_SETTINGS:
        if arguments and command.arguments and draw(st.booleans()):
            arguments[0] = draw(st.sampled_from(values.BAD_SWEEPS))
        else:
            environment |= dict([draw(SAME)])
    if command.name in BAD_OPTIONS:
        own = ("--folder", "server") if command.name == "serve" else ()
        arguments = [*own, *arguments, *draw(st.sampled_from(BAD_OPTIONS[command.name]))]
    return Case(command, tuple(arguments), environment, settings, state)


def _has_format(command: Command) -> bool:
    return any(option.name == "--format" for option in command.options)
