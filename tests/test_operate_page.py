"""The commands of docs/operate.md that copy records and put them back."""

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.tracking.client import Tracking
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings
from tests.servers import unmade_server

PAGE = (Path(__file__).parents[1] / "docs" / "operate.md").read_text(encoding="utf-8")


def commands(word: str) -> list[str]:
    """The lines of the page that begin with this word."""
    return re.findall(rf"^{word} .*$", PAGE, re.MULTILINE)


def test_a_store_of_one_file_is_copied_while_somebody_writes_and_put_back(tmp_path):
    (tmp_path / "runs").mkdir()
    settings = new_settings(tmp_path / "runs")
    drive(tiny({"a": {}}, name="tiny.kept", seeds=(1,)), settings)
    before = Tracking(settings).read_study("tiny.kept").replicates
    (copy,) = commands("python")
    writer = sqlite3.connect(tmp_path / "runs" / "mlflow.db")
    writer.execute("UPDATE runs SET name = 'half a write'")
    by_shell(copy.replace("python", sys.executable, 1), tmp_path)
    writer.rollback()
    writer.close()
    (tmp_path / "runs" / "mlflow.db").write_bytes(b"damaged")
    for line in re.findall(r"`((?:rm|cp) [^`]* runs/[^`]*)`", PAGE):
        by_shell(line, tmp_path)
    assert Tracking(new_store(settings)).read_study("tiny.kept").replicates == before


def by_shell(line: str, folder: Path) -> None:
    """Does what somebody does who pastes the line into a terminal."""
    subprocess.run(["bash", "-c", line], cwd=folder, check=True)  # noqa: S603


def new_store(settings):
    """The same settings under another address, for MLflow keeps connections to the damaged file."""
    file = settings.runs / "mlflow.db"
    again = shutil.copy(file, file.with_name("again.db"))
    return type(settings)(settings.runs, f"sqlite:///{again}")


@pytest.mark.slow
def test_a_servers_folder_is_copied_and_serves_what_was_recorded_once_it_is_put_back(monkeypatch):
    with unmade_server() as server:
        server.start()
        for name, value in server.client().items():
            monkeypatch.setenv(name, value)
        user, experiment = server.user, MlflowClient(server.uri).create_experiment("kept")
        server.stop()
        for block in (block for block in PAGE.split("```")[1::2] if "server.tar.gz" in block):
            lines = re.findall(r"^(?:FOLDER|tar|mv).*$", block, re.MULTILINE)
            by_shell("\n".join(lines).replace("~/.ponderay", str(server.folder)), server.folder)
        server.start()
        assert MlflowClient(server.uri).get_experiment_by_name("kept").experiment_id == experiment
        assert server.user == user
