"""Readers that have only a tracking server: they read the copy of the study file; a silent server stops no answer."""

import json
import warnings
from pathlib import Path

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.curves import load_curves
from orchestrator.tracking.load import load_directions, load_holder, load_study, open_tracking
from orchestrator.tracking.study_copy import read_copy
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_curves import only_by
from tests.orchestrator.cli.test_main import call
from tests.servers import Server
from trainables.errors import DataWarning, InputError

CONDITIONS = {"b": {"x": 0.25}, "a": {}}
SHOWN = """
from tests.integration.sweeps import tiny
def shown():
    return tiny({"b": {"x": 0.25}, "a": {}}, name="tiny.shown", seeds=(1, 2, 3))
"""


@pytest.fixture
def read_no_runs(monkeypatch):
    """Nothing is read from MLflow's runs."""
    monkeypatch.setattr(Tracking, "read_study", lambda *_: pytest.fail("MLflow's runs were read"))
    monkeypatch.setattr(Tracking, "read_origins", lambda *_: pytest.fail("MLflow's runs were read"))


def test_a_laptop_with_nothing_but_the_servers_address_reads_the_copy(client: Server, monkeypatch, request):
    """Curves come from the copy as well, and from the runs where it is damaged."""
    sweep = tiny(CONDITIONS, name="tiny.copied")
    run_quietly(sweep)
    study = load_study(sweep.name)
    curves = load_curves(sweep.name, study.replicates, read_settings())
    monkeypatch.setenv("PONDERAY_RUNS", "laptop")
    request.getfixturevalue("read_no_runs")
    found = load_study(sweep.name)
    assert (found, found.configs, found.origins) == (study, study.configs, study.origins)
    assert len(found.replicates) == 4 and found.origins
    with monkeypatch.context() as patch:
        only_by(patch, "_of_copy")
        assert load_curves(sweep.name, found.replicates, read_settings()) == curves
    (folder := Path("copies")).mkdir()
    (folder / "curves.jsonl.gz").write_bytes(b"half of it")
    Tracking(read_settings()).store_copy(sweep.name, folder, {})
    assert load_curves(sweep.name, found.replicates, read_settings()) == curves


def test_the_last_driver_counts_wherever_it_ran(client: Server, monkeypatch):
    """The second one has a runs folder of its own, and knows from the server what the first one did."""
    run_quietly(tiny(CONDITIONS, name="tiny.moved"))
    first = load_study("tiny.moved")
    monkeypatch.setenv("PONDERAY_RUNS", "elsewhere")
    run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}, name="tiny.moved"))
    there = load_study("tiny.moved")
    assert there.conditions == ("b", "a", "c") and there.of("a") == first.of("a")
    monkeypatch.setenv("PONDERAY_RUNS", "runs")
    assert load_study("tiny.moved") == there


def test_of_a_silent_server_this_machine_answers_and_says_as_of_when(client: Server, monkeypatch):
    sweep = tiny(CONDITIONS, name="tiny.silent")
    run_quietly(sweep)
    study = load_study(sweep.name)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")  # five seconds of pauses between its tries
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.warns(DataWarning, match=r"cannot be opened: .*; the answer is as of \d{4}-\d\d-\d\d \d\d:\d\d on"):
        assert load_study(sweep.name) == study
    assert load_directions(sweep, read_settings())["error"] == "minimize"
    assert open_tracking(sweep.name, read_settings()) is None
    with pytest.raises(InputError, match="cannot be opened"):
        load_study("tiny.elsewhere")


def test_without_a_copy_the_runs_are_read_and_say_the_same(client: Server, monkeypatch):
    sweep = tiny(CONDITIONS, name="tiny.older")
    monkeypatch.setattr("orchestrator.tracking.study_copy.StudyCopy.put_now", lambda _: None)
    run_quietly(sweep)
    study, settings = load_study(sweep.name), read_settings()
    assert read_copy(Tracking(settings).runs(sweep.name), load_holder(sweep.name, settings)) is None
    monkeypatch.setenv("PONDERAY_RUNS", "laptop")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = load_study(sweep.name)
    assert sorted(map(repr, found.replicates)) == sorted(map(repr, study.replicates))
    assert found.configs == study.configs


@pytest.mark.slow
def test_front_and_comparison_are_the_same_from_folder_copy_and_runs_and_of_a_silent_server(
    client: Server, monkeypatch, capsys
):
    Path("shown.py").write_text(SHOWN)
    run_quietly(tiny(CONDITIONS, name="tiny.shown", seeds=(1, 2, 3)))

    said = []

    def answers(runs: str) -> list[object]:
        monkeypatch.setenv("PONDERAY_RUNS", runs)
        found = []
        for command in (["pareto", "shown.py:shown"], ["compare", "shown.py:shown", "a", "b"]):
            assert call(monkeypatch, *command, "--format", "json") == 0
            printed = capsys.readouterr()
            found.append(json.loads(printed.out))
            said.extend(printed.err.splitlines())
        return found

    here, copied = answers("runs"), answers("laptop")
    tracking = Tracking(read_settings())
    tracking.log(tracking.sweep_run("tiny.shown"), tags={"ponderay.study": ""})
    assert here == copied == answers("laptop")
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr("orchestrator.cli.main._shown_warnings", set())
    said.clear()
    assert answers("runs") == here
    (line,) = (one for one in said if "the answer is as of" in one)
    assert line.startswith("ponderay: The tracking store http://127.0.0.1:9 cannot be opened: Connection refused; the")
