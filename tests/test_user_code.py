"""Whatever the user's own code raises before anything starts is one sentence that names its line, and exit code 2."""

import sys
from pathlib import Path

import pytest

from orchestrator.cli import main as cli
from orchestrator.worker import trainable

RAISED = {
    "an exit as if all were well": ("raise SystemExit(0)", "SystemExit: 0"),
    "an exit without a code": ("sys.exit()", "SystemExit"),
    "an exit with a text": ("sys.exit('no data')", "SystemExit: no data"),
    "the end of a generator": ("raise GeneratorExit", "GeneratorExit"),
    "the end of a task": ("raise asyncio.CancelledError('stopped')", "CancelledError: stopped"),
    "several at once": (
        "raise BaseExceptionGroup('two', [SystemExit(0)])",
        "BaseExceptionGroup: two (1 sub-exception)",
    ),
    "one without a text": ("raise Speechless", "Speechless: its text cannot be made (ZeroDivisionError)"),
    "one whose text ends the program": ("raise Leaving", "Leaving: its text cannot be made (SystemExit)"),
    "too deep a call": ("deep()", "RecursionError: maximum recursion depth exceeded"),
    "the end of an iterator": ("next(iter(()))", "StopIteration"),
    "half of a pair": ("raise ValueError('\\udcff')", "ValueError: ?"),
    "a megabyte": ("raise ValueError('x' * 1_000_000)", "ValueError: xxx"),
}
HEAD = """
import asyncio
import sys
from dataclasses import dataclass

import ponderay


class Speechless(Exception):
    def __str__(self):
        return str(1 / 0)


class Leaving(Exception):
    def __str__(self):
        sys.exit(0)


def deep():
    deep()


@dataclass(frozen=True)
class Setting:
    width: int = 8
    seed: int = 1

    def __post_init__(self):
        if self.width == 5:
            pass  # SET


def train(config, trial):
    trial.report({"loss": 1.0}, step=1)


def num_steps(config):
    pass  # NUM_STEPS
    return 1


def claims():
    pass  # CLAIMS
    return []


pass  # IMPORT


def toy():
    pass  # BUILD
    return ponderay.Sweep(
        name="toy",
        description="For tests.",
        trainable=__name__,
        base=Setting(),
        conditions=ponderay.grid({"width": [4, 8]}),
        objectives=(ponderay.Objective("loss"),),
        claims=f"{__name__}:claims",
    )
"""
PLACES = {
    "IMPORT": (("plan", "toy.py:toy"), "toy.py cannot be imported: "),
    "BUILD": (("plan", "toy.py:toy"), "The sweep toy.py:toy cannot be built: "),
    "NUM_STEPS": (("plan", "toy.py:toy"), "`num_steps` of toy fails: "),
    "SET": (("show", "toy.py:toy", "--set", "width=5"), "`width`"),
}


@pytest.fixture
def ended(workplace, monkeypatch, capsys):
    """Exit code, output and errors of a command in this process, on a source with `raised` at a place."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    trainable._load.cache_clear()

    def ended(place, raised, arguments):
        assert HEAD.count(f"pass  # {place}\n") == 1
        Path("toy.py").write_text(HEAD.replace(f"pass  # {place}\n", f"{raised}\n"))
        monkeypatch.setattr(sys, "argv", ["ponderay", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, *capsys.readouterr()

    return ended


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", RAISED)
def test_what_the_users_own_code_raises_is_one_sentence(ended, place, name):
    raised, said = RAISED[name]
    arguments, subject = PLACES[place]
    code, out, err = ended(place, raised, arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), (out, err[-2000:])
    assert err.startswith(f"ponderay: {subject}"), err
    is_unshown = (place, name) == ("SET", "half of a pair")  # pydantic fails at it, and Python writes it out
    assert ("'\\udcff'" if is_unshown else said.partition(": ")[2]) in err
    assert len(err) < 2500
    assert not Path("runs").exists()


def test_what_claims_raise_is_one_sentence(ended):
    from search_spaces.claim_file import claims_of
    from search_spaces.find import find_sweep
    from trainables.errors import InputError

    assert ended("CLAIMS", "sys.exit(0)", ("plan", "toy.py:toy"))[0] == 0  # which asks for none
    with pytest.raises(
        InputError, match=r"^toy: the claims of toy:claims cannot be made: SystemExit: 0 \(toy.py, line"
    ):
        claims_of(find_sweep("toy.py:toy"))


def test_an_interruption_is_none(ended):
    code, out, err = ended("BUILD", "raise KeyboardInterrupt", ("plan", "toy.py:toy"))
    assert (code, out) == (130, "") or (code, out, "Aborted" in err) == (1, "", True)


class Wordless:
    def __repr__(self):
        raise OSError("no words")


@pytest.mark.parametrize(
    ("name", "declared"), [("wordless_value", "toy = Wordless()"), ("wordless_answer", "def toy(): return Wordless()")]
)
def test_a_value_without_a_text_is_none_of_a_sweep(workplace, monkeypatch, capsys, name, declared):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["ponderay", "show", f"{name}.py:toy"])
    Path(f"{name}.py").write_text(f"from tests.test_user_code import Wordless\n\n\n{declared}\n")
    with pytest.raises(SystemExit) as end:
        cli.main()
    err = capsys.readouterr().err
    assert end.value.code == 2 and err.count("\n") == 1
    assert "a value of type Wordless without a text" in err
