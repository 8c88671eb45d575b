"""Leases in a runs folder, and the holder of a server's lease beside the study file."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.environment.settings import Settings
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import LeaseKeeper, ServerLeases, StoreLease
from orchestrator.tracking.lease_holder import FolderLeases, holder_file
from tests.orchestrator.driven import new_settings

EVERY_ASK = {"expires_s": 0.3, "poll_s": 0.0}
HOLDS = """
import sys
from pathlib import Path
from orchestrator.environment.settings import Settings
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.lease_holder import FolderLeases
lease = StoreLease(FolderLeases(Settings(Path(sys.argv[1]), f"sqlite:///{sys.argv[1]}/mlflow.db")), "sweep x")
print(lease.acquire(), not {"mlflow", "sqlalchemy"} & set(sys.modules), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(tmp_path, f"sqlite:///{tmp_path}/mlflow.db")


def taken(settings: Settings, **times: float) -> StoreLease:
    lease = StoreLease(FolderLeases(settings), "sweep x", **times)
    assert lease.acquire()
    return lease


def test_one_holds_it_until_it_is_given_back_and_a_look_from_outside_says_who(settings):
    first = taken(settings)
    found = holder_file(settings, "sweep x").holder()
    assert (found.who, found.is_gone, found.token) == (
        f"process {os.getpid()} on {os.uname().nodename}",
        False,
        first.token,
    )
    second = StoreLease(FolderLeases(settings), "sweep x", **EVERY_ASK)
    assert not second.acquire() and not second.acquire_or_wait() and second.holder() == found.who
    assert first.heartbeat()
    first.release()
    assert holder_file(settings, "sweep x").holder().is_gone
    assert second.acquire() and second.previous == first.token
    assert holder_file(settings, "sweep x").path == settings.replicates("x") / "mlflow.lease"


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_killed_driver_has_it_no_more_and_one_that_stands_still_keeps_it(settings, is_killed):
    command = [sys.executable, "-c", HOLDS, str(settings.runs)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as holder:  # noqa: S603
        try:
            assert holder.stdout.readline() == "True True\n"
            holder.send_signal(signal.SIGSTOP)
            lease = StoreLease(FolderLeases(settings), "sweep x", **EVERY_ASK)
            assert not lease.acquire()
            time.sleep(0.4)
            assert not lease.acquire()
            if is_killed:
                holder.kill()
                holder.wait()
                assert holder_file(settings, "sweep x").holder().is_gone
                assert lease.acquire()
        finally:
            holder.kill()


def test_where_machines_have_locks_of_their_own_the_holders_beat_is_waited_for(settings, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr("orchestrator.tracking.lease_holder.process_space", lambda: "another machine")
    first = taken(settings, **EVERY_ASK)
    monkeypatch.undo()
    first._lock.release()  # as if it were none that is seen here
    second = StoreLease(FolderLeases(settings), "sweep x", **EVERY_ASK)
    clock = SimpleNamespace(**vars(time) | {"monotonic": lambda: now_s[0]})
    monkeypatch.setattr("orchestrator.tracking.lease.time", clock)
    for now_s[0] in (0.0, 0.1, 0.2):
        assert first.heartbeat() and not second.acquire()
    for now_s[0] in (0.3, 0.4):
        assert not second.acquire()
    now_s[0] = 0.52
    assert second.acquire()
    assert not first.heartbeat() and first.is_lost()
    first.release()
    assert second.heartbeat()


def test_a_holder_in_another_container_of_this_machine_that_has_no_lock_is_gone(settings, monkeypatch):
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    monkeypatch.setattr("orchestrator.tracking.lease_holder.process_space", lambda: f"{boot} pid:[1]")
    first = taken(settings)
    monkeypatch.undo()
    assert not StoreLease(FolderLeases(settings), "sweep x").acquire()
    first._lock.release()
    assert StoreLease(FolderLeases(settings), "sweep x").acquire()


def test_a_keeper_writes_its_file_again_and_says_when_it_was_deposed(settings):
    lost: list[str] = []
    keeper = LeaseKeeper(FolderLeases(settings), lost.append, heartbeat_s=600.0)
    lease, file = keeper.lease("sweep x"), holder_file(settings, "sweep x")
    assert lease.acquire()
    file.path.unlink()
    keeper._beat(lease)
    assert file.holder().token == lease.token and keeper.holds_all() and not lost
    lease.note("mirrored", "1 2 3")
    assert file.read()[1]["mirrored"] == "1 2 3"
    file.enter("2", file.entries()["1"])
    keeper._beat(lease)
    assert lost == ["The lease of sweep x cannot be kept: Another driver has taken it."]
    keeper.close()


def test_runs_folders_that_share_a_store_exclude_one_another(settings, tmp_path):
    first = taken(settings)
    other = replace(settings, runs=tmp_path / "other")
    assert not StoreLease(FolderLeases(other), "sweep x").acquire()
    assert StoreLease(FolderLeases(replace(other, tracking_uri=f"sqlite:///{tmp_path}/b.db")), "sweep x").acquire()
    assert first.is_held()


@pytest.mark.parametrize("content", ["", "[1]", '{"claims": 3, "notes": {}}', "[" * 100_000, '{"claims": {"1": "x"}}'])
def test_a_damaged_file_names_nobody_and_the_lock_alone_decides(settings, content):
    file = holder_file(settings, "sweep x")
    file.path.parent.mkdir(parents=True)
    file.path.write_text(content)
    assert file.holder() is None
    taken(settings)


def test_of_a_servers_lease_the_holder_stands_here_too_and_numbers_go_on_behind_those_of_a_restored_store(tmp_path):
    def server(name: str) -> ServerLeases:
        (tmp_path / name).mkdir()
        return ServerLeases(Tracking(new_settings(tmp_path / name)), Settings(tmp_path, "http://lab"))

    before = server("before")
    for _ in range(2):
        lease = StoreLease(before, "sweep x")
        assert lease.acquire() and lease.heartbeat()
        lease.release()
    own = holder_file(before.settings, "sweep x")
    assert own.path.parent == tmp_path / "replicates" / "x" and own.path.match("server-????????.lease")
    assert own.holder() == before.tracking.read_holder("x") and own.holder().is_gone
    restored = server("restored")
    later = StoreLease(restored, "sweep x")
    assert later.acquire() and later.previous == lease.token
    assert restored.tracking.read_holder("x").generation == own.holder().generation == 3


def test_a_number_of_one_server_takes_no_lease_of_another(tmp_path):
    (tmp_path / "a").mkdir()
    first = ServerLeases(Tracking(new_settings(tmp_path / "a")), Settings(tmp_path, "http://lab-a"))
    for _ in range(3):
        lease = StoreLease(first, "sweep x")
        assert lease.acquire()
        lease.release()
    (tmp_path / "b").mkdir()
    second = Tracking(new_settings(tmp_path / "b"))
    colleague = StoreLease(ServerLeases(second, Settings(tmp_path / "theirs", "http://lab-b")), "sweep x")
    assert colleague.acquire() and colleague.heartbeat()
    mine = StoreLease(ServerLeases(second, Settings(tmp_path, "http://lab-b")), "sweep x")
    assert not mine.acquire() and colleague.heartbeat()
    colleague.release()


def test_a_store_that_is_reached_by_a_link_has_one_lock(settings, tmp_path):
    Path(settings.tracking_uri.removeprefix("sqlite:///")).touch()
    first = taken(settings)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "mlflow.db"
    link.symlink_to(settings.tracking_uri.removeprefix("sqlite:///"))
    other = Settings(tmp_path / "elsewhere", f"sqlite:///{link}")
    assert not StoreLease(FolderLeases(other), "sweep x").acquire() and first.is_held()
