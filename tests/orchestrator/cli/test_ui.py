"""The command that opens MLflow: what it prints before, and when it does not start."""

import os
import socket
import sys

import pytest

from orchestrator.cli import main as cli
from orchestrator.machine.network import free_port
from orchestrator.tracking.pages import FILTERS
from tests.orchestrator.driven import driven
from tests.orchestrator.recorded import Store, replicate


@pytest.fixture
def started(monkeypatch) -> list[tuple[list[str], dict[str, str]]]:
    """The command lines with which this process would have gone on, each with its variables."""
    lines: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda path, arguments, variables: lines.append((arguments, variables)))
    return lines


def call(monkeypatch, *arguments: str) -> int:
    """The exit code of `ponderay ui ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["ponderay", "ui", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return int(raised.value.code or 0)


def test_it_prints_the_pages_of_each_sweep_and_the_searches_then_starts(workplace, monkeypatch, capsys, started):
    study, port = driven(), free_port()
    monkeypatch.setenv("PONDERAY_TRACKING_URI", study.settings.tracking_uri)
    assert call(monkeypatch, "--port", str(port)) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines.pop(0).startswith(f"MLflow: http://127.0.0.1:{port} ") and lines[0] == "tiny.driven"
    page = f"http://127.0.0.1:{port}/#/experiments/{study.experiment_id}/runs?workflowType=machine_learning"
    assert lines[1].split("  ")[1] == "Conditions: means and intervals"
    assert lines[1].endswith(f" {page}&viewStateShareKey=ponderay-conditions")
    assert lines[3].endswith(f" {page}&viewStateShareKey=ponderay-curves&compareRunsMode=CHART")
    assert all(one.text in said for one in FILTERS)
    (((_, *arguments), variables),) = started
    assert arguments[:5] == ["-m", "mlflow", "server", "--app-name", "ponderay-ui"]
    options = dict(zip(arguments[3::2], arguments[4::2], strict=True))
    assert options["--host"] == "127.0.0.1" and options["--port"] == str(port)
    assert variables["MLFLOW_BACKEND_STORE_URI"] == study.settings.tracking_uri
    assert study.settings.tracking_uri not in " ".join(arguments)


def test_who_listens_beyond_this_machine_is_warned_and_reached_by_the_printed_link(
    workplace, monkeypatch, capsys, started
):
    monkeypatch.setattr("orchestrator.cli.ui.check_free", lambda *_: None)
    assert call(monkeypatch, "--host", "192.0.2.2", "--port", "5996") == 0
    said = capsys.readouterr()
    assert "MLflow: http://192.0.2.2:5996 " in said.out
    assert said.err.startswith("Warning: whoever reaches 192.0.2.2 can read, change and delete everything")
    (((_, *arguments), _),) = started
    options = dict(zip(arguments[3::2], arguments[4::2], strict=True))
    assert "192.0.2.2:5996" in options["--allowed-hosts"].split(",")
    assert options["--cors-allowed-origins"] == "http://192.0.2.2:5996"


def test_a_sweep_that_ran_before_there_were_views_has_its_conditions(workplace, monkeypatch, capsys, started):
    store = Store(workplace / "old.db", "old.sweep")
    store.write([replicate("a", 1)], revision=5)
    monkeypatch.setenv("PONDERAY_TRACKING_URI", store.uri)
    assert call(monkeypatch, "--port", str(free_port())) == 0
    said = capsys.readouterr().out.splitlines()[1:]
    assert said[0] == "old.sweep"
    assert f"/#/experiments/{store.experiment_id}/runs?" in said[1]
    assert "searchFilter=tags.%22ponderay.kind%22%20%3D%20%27condition%27" in said[1]
    assert not said[2].strip()


def test_without_a_store_it_says_so_and_starts(workplace, monkeypatch, capsys, started):
    assert call(monkeypatch, "--port", str(free_port())) == 0
    assert "No sweep has run here yet; `ponderay run asr.demo` runs one." in capsys.readouterr().out
    assert len(started) == 1
    assert not (workplace / "runs").exists()


def test_a_port_that_is_taken_is_refused_with_another(workplace, monkeypatch, capsys, started):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert call(monkeypatch, "--port", str(port)) == 2
    message = capsys.readouterr().err
    assert f"Port {port} of 127.0.0.1 is in use" in message and "--port" in message.partition("another")[2]
    assert message.count("\n") == 1
    assert not started


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_an_address_of_another_machine_is_refused(workplace, monkeypatch, capsys, started, host):
    assert call(monkeypatch, "--port", str(free_port()), "--host", host) == 2
    assert host in capsys.readouterr().err
    assert not started


def test_with_a_server_the_links_lead_there_and_nothing_starts(workplace, monkeypatch, capsys, started):
    import orchestrator.tracking.client
    from orchestrator.tracking.mlflow_reader import RecordedSweep

    class Server:
        def __init__(self, settings) -> None:
            assert settings.tracking_uri == "https://me:sesame@lab.example:8443/mlflow"

        def sweeps(self):
            return (RecordedSweep("<b>[red]", "7", {"mlflow.sharedViewState.ponderay-failures": "{}"}),)

    monkeypatch.setattr(orchestrator.tracking.client, "Tracking", Server)
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "https://me:sesame@lab.example:8443/mlflow")
    assert call(monkeypatch) == 0
    said = capsys.readouterr().out
    assert "https://lab.example:8443/mlflow/#/experiments/7/runs?" in said
    assert "viewStateShareKey=ponderay-failures" in said and "ponderay-conditions" not in said
    assert "<b>[red]" in said
    assert "sesame" not in said
    assert not started
