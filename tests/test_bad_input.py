"""Generated bad input in this process: a small part of `benchmarks/bad_input.py`, which tries more, from outside."""

import os
import sys
import warnings
from dataclasses import replace

import pytest

from benchmarks.bad.cases import BAD_OPTIONS, READS_SETTINGS, Case, cases, edge_cases, variable_cases
from benchmarks.bad.commands import commands
from benchmarks.bad.places import environment, make, record
from benchmarks.bad_input import Ended, fault
from orchestrator.cli.main import main

READ_ONLY = {
    "sweeps", "sources", "show", "plan", "doctor", "status", "pareto", "curve", "compare", "report", "verify",
    "analyse", "data check", "importance", "export", "checkpoint", "import",
}  # fmt: skip
NUM_CASES = 2 * 42


def test_every_command_is_known_to_start_something_or_not():
    """A new command is added to one of these, so that its cases are generated safely."""
    names = {one.name for one in commands()}
    assert names == READ_ONLY | READS_SETTINGS | set(BAD_OPTIONS)
    assert READ_ONLY.isdisjoint(READS_SETTINGS | set(BAD_OPTIONS))


@pytest.fixture
def nothing_starts(monkeypatch):
    """What would take seconds, or go on after the test, fails it."""

    def started(*_: object, **__: object) -> None:
        pytest.fail("something was started")

    for name in ("orchestrator.run.before_ray", "orchestrator.run.check_places", "os.execve", "os.fork"):
        monkeypatch.setattr(name, started)


def call(case: Case, place, monkeypatch, capsys) -> Ended:
    """The case in this process, whose environment and folder are put back."""
    with monkeypatch.context() as patched:
        before = dict(os.environ)
        try:
            os.environ.clear()
            os.environ.update(environment(place) | case.environment)
            patched.chdir(place)
            patched.setattr(sys, "argv", ["ponderay", *case.command.words, *case.arguments])
            patched.setattr(sys, "path", [*sys.path])
            patched.setattr(warnings, "showwarning", warnings.showwarning)
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            os.environ.clear()
            os.environ.update(before)
            for name in ("toy", "edges", "loud", "number", "raising", "leaving", "broken"):
                sys.modules.pop(name, None)
    said = capsys.readouterr()
    return Ended(int(ended.value.code or 0), 0.0, said.out, said.err)


def test_a_documented_variable_that_holds_junk_is_answered_or_refused_in_one_sentence(
    tmp_path, monkeypatch, capsys, nothing_starts
):
    """Few of them here, each variable once or twice."""
    chosen = [case for case in variable_cases() if case.command.name == "show"]
    assert len({name for case in chosen for name in case.environment}) >= 20
    faults = []
    for number, case in enumerate(replace(one, stored="nothing") for one in chosen):
        place = tmp_path / f"case{number}"
        make(case, place, None)
        if found := fault(case, call(case, place, monkeypatch, capsys), limit_s=1.0):
            faults.append((found, case))
    assert faults == []


def test_bad_input_is_answered_or_refused_in_one_sentence(tmp_path, monkeypatch, capsys, nothing_starts):
    faults = []
    for number, case in enumerate(cases(NUM_CASES, seed=7, kinds=("nothing",))):
        if case.command.name == "doctor":
            continue  # which asks the whole machine
        place = tmp_path / f"case{number}"
        make(case, place, None)
        if found := fault(case, call(case, place, monkeypatch, capsys), limit_s=1.0):
            faults.append((found, case))
    assert faults == []


@pytest.mark.slow
def test_numbers_at_the_edges_of_float64_have_an_answer_everywhere(tmp_path, monkeypatch, capsys, nothing_starts):
    recorded, faults = record(tmp_path / "recorded"), []
    for number, case in enumerate(edge_cases()):
        place = tmp_path / f"case{number}"
        make(case, place, recorded)
        ended = call(case, place, monkeypatch, capsys)
        if found := fault(case, ended, limit_s=1.0):
            faults.append((found, case.arguments, ended.err[-300:]))
    assert faults == []
