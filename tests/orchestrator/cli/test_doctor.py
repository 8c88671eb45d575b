"""The command as a user meets it: rows, exit codes."""

import csv
import io
import json
import sys

import pytest
import typer

from orchestrator.checks import exposure, sweep
from orchestrator.cli import doctor
from orchestrator.cluster import address as cluster_address
from tests.orchestrator.checks.test_sweep import closed_port

OF_THE_MACHINE = ["ray", "tracking", "storage", "disk", "gpu", "versions", "exposure"]


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path_factory) -> None:
    """Whatever else runs on the machine of the tests, and is in the user's home, is not their matter."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("RAY_AUTH_MODE", "RAY_API_SERVER_ADDRESS", "PONDERAY_SEARCH_URI", "PONDERAY_STORAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(exposure, "listeners", lambda: iter(()))
    monkeypatch.setattr(cluster_address, "other_instances", list)
    monkeypatch.setattr(sweep, "has_nvidia_driver", lambda: False)


def call(monkeypatch, *arguments: str) -> int:
    """The exit code of `ponderay doctor ARGUMENTS`."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(doctor.doctor)
    monkeypatch.setattr(sys, "argv", ["doctor", *arguments])
    with pytest.raises(SystemExit) as raised:
        app()
    return int(raised.value.code or 0)


def rows_of(text: str) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in json.loads(text)}


def test_without_a_sweep_it_looks_at_the_machine(workplace, monkeypatch, capsys):
    assert call(monkeypatch, "--format", "json") == 0
    rows = rows_of(capsys.readouterr().out)
    assert list(rows) == OF_THE_MACHINE
    assert {row["state"] for row in rows.values()} == {"ok"}
    assert all(set(row) == {"name", "state", "found", "remedy"} for row in rows.values())
    assert list(workplace.iterdir()) == []


def test_with_a_sweep_it_looks_at_its_data_and_seeds(workplace, monkeypatch, capsys):
    assert call(monkeypatch, "asr.demo", "--smoke", "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["name"] for row in rows} == {*OF_THE_MACHINE, "data", "seeds"}
    assert call(monkeypatch, "asr.demo") == 0
    assert "Welch's test" in " ".join(capsys.readouterr().out.split())


def test_a_warning_is_no_failure(workplace, monkeypatch, capsys):
    monkeypatch.setattr(cluster_address, "other_instances", lambda: ["10.0.0.1:6379"])
    assert call(monkeypatch, "--format", "json") == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["ray"]["state"] == "warning"
    assert rows["versions"]["found"] == "one machine"


def test_each_fault_is_a_row_and_exit_code_3(workplace, monkeypatch, capsys):
    (workplace / "file").touch()
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "file" / "runs"))
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "file:mlruns")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port()}")
    arguments = ("asr.laptop_librispeech", "--seeds", "1", "--set", "data.root=nowhere", "--format", "json")
    assert call(monkeypatch, *arguments) == 3
    rows = rows_of(capsys.readouterr().out)
    assert {name for name, row in rows.items() if row["state"] == "failed"} == {
        "ray", "tracking", "storage", "data",
    }  # fmt: skip
    assert "nowhere does not exist" in rows["data"]["found"]
    assert all(row["remedy"] for row in rows.values() if row["state"] == "failed")


def test_an_open_door_is_a_row(workplace, monkeypatch, capsys):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert call(monkeypatch, "--format", "json") == 0
    assert rows_of(capsys.readouterr().out)["ray token"]["state"] == "warning"
