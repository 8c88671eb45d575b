"""What lets one process at a time through."""

import pytest

from orchestrator.machine import process_lock
from orchestrator.machine.process_lock import Lease, held
from trainables.errors import InputError


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
