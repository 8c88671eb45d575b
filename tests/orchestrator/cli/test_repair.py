"""What `ponderay repair` moves, and what it leaves alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.repair import repair
from orchestrator.console.errors import RefusedError
from orchestrator.machine.process_lock import Lease
from orchestrator.tracking.lease_holder import Holder
from trainables.errors import InputError

SETTINGS = {"PONDERAY_TRACKING_URI": "tracking_uri", "PONDERAY_SEARCH_URI": "search_uri"}


def damaged() -> Path:
    """A tracking store that is garbage, and the journal of a replicate."""
    folder = Path("runs/replicates/toy/1a2b")
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").touch()
    Path("runs/mlflow.db").write_bytes(b"garbage" * 1000)
    return folder


@pytest.mark.parametrize(("variable", "setting"), SETTINGS.items())
@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_no_database_where_a_setting_points_stays(workplace, monkeypatch, variable, setting, is_folder):
    place = workplace / "thesis"
    if is_folder:
        place.mkdir()
    else:
        place.write_text("notes of years")
    monkeypatch.setenv(variable, f"sqlite:///{place}")
    with pytest.raises(InputError, match=rf"`{setting}` \({variable}\) names {place}, .*moves only"):
        repair(yes=True)
    assert [path.name for path in workplace.iterdir()] == ["thesis"]


@pytest.mark.parametrize(("variable", "setting"), SETTINGS.items())
def test_an_address_without_a_file_is_refused(workplace, monkeypatch, variable, setting):
    monkeypatch.setenv(variable, "sqlite:///")
    with pytest.raises(InputError, match=rf"`{setting}` \({variable}\) must name a file"):
        repair(yes=True)


def test_a_database_of_a_setting_that_is_damaged_behind_its_header_is_moved(workplace, monkeypatch):
    Path("my.db").write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{workplace / 'my.db'}")
    repair(yes=True)
    assert [path.name for path in workplace.glob("my.db*")] == ["my.db.damaged-1"]


def test_nothing_is_moved_under_a_replicate_at_work(workplace):
    folder = damaged()
    holds = "import sys; from pathlib import Path; from orchestrator.machine.process_lock import Lease\n"
    holds += "lease = Lease(Path(sys.argv[1])); lease.acquire(); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holds, str(folder / "in_use")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RefusedError, match=rf"^toy is at work \(process {process.pid} on .*\): stop it"):
            repair(yes=True)
        process.stdin.close()
    assert Path("runs/mlflow.db").exists()
    repair(yes=True)
    assert not Path("runs/mlflow.db").exists()


@pytest.mark.parametrize(
    ("is_gone", "silent_s", "is_refused"),
    [(False, None, True), (False, 9.0, True), (False, 99.0, False), (True, None, False)],
)
def test_nothing_is_moved_under_a_driver(workplace, monkeypatch, is_gone, silent_s, is_refused):
    damaged()
    holder = Holder("process 7 on there", is_gone, silent_s)
    monkeypatch.setattr("orchestrator.tracking.lease_holder.HolderFile.holder", lambda file: holder)
    if is_refused:
        with pytest.raises(RefusedError, match=r"^toy is at work \(process 7 on there\): stop it"):
            repair(yes=True)
    else:
        repair(yes=True)
    assert Path("runs/mlflow.db").exists() == is_refused


def test_whether_a_lease_is_held_is_seen_without_a_trace(workplace):
    lease = Lease(Path("in_use"))
    assert not lease.is_held() and not lease.path.exists()
    assert lease.acquire()
    said = lease.holder()
    assert Lease(lease.path).is_held() and lease.holder() == said
    lease.release()
    assert not lease.is_held() and lease.holder() == said
