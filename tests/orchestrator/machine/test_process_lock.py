"""What lets one process at a time through."""

import errno
import os
import subprocess
import sys

import pytest

from orchestrator.machine import process_lock
from orchestrator.machine.process_lock import Lease, held
from tests.waiting import LIMIT_S
from trainables.errors import InputError


def test_a_lease_is_free_once_it_is_released_though_a_forked_child_lives_on(tmp_path):
    """Such as a worker of a data loader. Else the next who waits for it would kill the process that had it."""
    lease, other = Lease(tmp_path / "in_use"), Lease(tmp_path / "in_use")
    assert lease.acquire()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    lease.release()
    is_free = other.acquire()
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)
    assert is_free


def test_a_child_that_leaves_does_not_release_its_parents(tmp_path):
    lease = Lease(tmp_path / "in_use")
    assert lease.acquire()
    if (child := os.fork()) == 0:
        lease.leave()
        os._exit(0)
    os.waitpid(child, 0)
    assert lease.is_held()


def test_a_block_that_another_process_stays_in_is_told_in_one_sentence(tmp_path, monkeypatch):
    """Such as a driver that was stopped by Ctrl-Z while it opened the store."""
    monkeypatch.setattr(process_lock, "HELD_S", 0.1)
    lease = Lease(tmp_path / "mlflow.lock")
    assert lease.acquire()
    said = r"is still in use by process \d+ .* Let that process go on, or end it"
    with pytest.raises(InputError, match=said), held(lease.path):
        raise AssertionError
    lease.release()
    with held(lease.path):
        assert lease.is_held()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_in_one_sentence(tmp_path, monkeypatch, number):
    """As Lustre that is mounted without `-o flock`."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    lease = Lease(tmp_path / "in_use")
    lease.path.touch()
    monkeypatch.setattr(process_lock.fcntl, "flock", refuse)
    for ask in (lease.acquire, lease.is_held):
        with pytest.raises(InputError, match=r"where files can be locked, but: .*`-o flock`.*PONDERAY_STORAGE"):
            ask()


def test_a_private_lease_is_its_owners_alone_also_where_the_file_was_others(tmp_path):
    """Whoever may open the file may hold it, and so keep its owner from starting."""
    path = tmp_path / "server.lock"
    path.touch(0o644)
    lease = Lease(path, is_private=True)
    assert lease.acquire() and path.stat().st_mode & 0o777 == 0o600
    lease.release()


def test_a_lease_is_held_by_one_and_free_after(tmp_path):
    first, second = Lease(tmp_path / "x.lock"), Lease(tmp_path / "x.lock")
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    assert "process" in second.holder()
    first.release()
    assert second.acquire()


def test_a_holder_that_hangs_can_be_ended(tmp_path):
    hangs = "import sys, time; from pathlib import Path; from orchestrator.machine.process_lock import Lease\n"
    hangs += "lease = Lease(Path(sys.argv[1])); lease.acquire(); print('held', flush=True); time.sleep(3600)"
    command = [sys.executable, "-c", hangs, str(tmp_path / "x.lock")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout.readline() == "held\n"
    lease = Lease(tmp_path / "x.lock")
    with pytest.raises(TimeoutError, match=f"process {process.pid} on "):
        lease.wait(0.3)
    lease.end_holder()
    lease.wait(LIMIT_S)
    assert process.wait(LIMIT_S) == -9
