"""What `ponderay clean` removes, and when it removes nothing; and how what `rm` puts away comes back."""

import shlex
from pathlib import Path

import pytest

from orchestrator.cli.clean import clean
from orchestrator.cli.put_away import restore, rm
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.machine.process_lock import Lease
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.lease_holder import FolderLeases
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings


@pytest.mark.parametrize("place", ["runs", "runs/reruns/0a1b/installed"])
def test_nothing_is_removed_under_a_driver_that_has_no_journal_yet_or_trains_a_bundle_again(workplace, place):
    runs = workplace / place
    (workplace / "runs" / "tune-left").mkdir(parents=True)
    lease = StoreLease(FolderLeases(Settings(runs, f"sqlite:///{runs}/mlflow.db")), "sweep toy")
    assert lease.acquire()
    with pytest.raises(RefusedError, match=r"^toy is at work \(process .*\): stop it"):
        clean(yes=True)
    lease.release()
    clean(yes=True)
    assert not (workplace / "runs" / "tune-left").exists() and not (workplace / "runs" / "reruns" / "0a1b").exists()


def test_nothing_is_removed_under_a_replicate_that_is_trained_again(workplace):
    lease = Lease(Path("runs/reruns/0a1b/installed/replicates/toy/1a2b/in_use"))
    assert lease.acquire()
    with pytest.raises(RefusedError, match=r"^toy is at work"):
        clean(yes=True)
    lease.release()


def test_a_folder_that_ray_tune_works_in_stays(workplace):
    lease = Lease(Path("runs/tune-live/in_use"))
    assert lease.acquire()
    clean(yes=True)
    assert lease.path.exists()
    lease.release()


def test_rm_prints_what_brings_back_also_from_a_folder_with_a_space(workplace, monkeypatch, printed):
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "my runs"))
    drive(tiny({"a": {}}, name="tiny.put", seeds=(1,)), new_settings(workplace / "my runs"))
    command = printed(rm, name="tiny.put", yes=True).split("`")[1]
    assert shlex.split(command)[:2] == ["ponderay", "restore"]
    assert "1 replicate is back" in printed(restore, name=Path(*shlex.split(command)[2:]))
