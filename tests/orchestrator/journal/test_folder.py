"""What a replicate's folder keeps, drops and survives."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.machine.process_lock import Lease


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(workplace):
    folder = ReplicateFolder(Path("replicate"), {"best": "loss"})
    source = Path("source")
    for step, loss in enumerate([5.0, 1.0, 3.0, 2.0], start=1):
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss": loss}})
        source.write_text(f"state {step}")
        folder.keep(source, step)
    assert list(folder.checkpoints()) == [2, 3, 4]
    assert folder.best("best").read_text() == "state 2"
    assert folder.newest().read_text() == "state 4"
    folder.newest().write_text("garbage")
    assert folder.newest().read_text() == "state 3"


def trained(*losses: float) -> ReplicateFolder:
    """A folder with a step of each loss, kept as training does."""
    folder, source = ReplicateFolder(Path("replicate"), {"best": "loss"}), Path("source")
    for step, loss in enumerate(losses, start=1):
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss": loss}, "kept": True})
        source.write_text(f"state {step}")
        folder.keep(source, step)
    return folder


def test_a_damaged_best_checkpoint_is_made_again_from_one_before_it(workplace):
    folder = trained(5.0, 3.0, 1.0, 2.0, 4.0)
    assert list(folder.checkpoints()) == [3, 4, 5]
    assert folder.is_trained(5)
    folder.best("best").write_text("garbage")
    assert folder.best("best") is None
    assert not folder.is_trained(5)
    assert folder.newest() is None
    folder.remove_behind(None)
    assert folder.checkpoints() == {}


def test_training_goes_back_no_further_than_it_must(workplace):
    folder = trained(3.0, 2.0, 1.0)
    assert list(folder.checkpoints()) == [2, 3]
    folder.best("best").write_text("garbage")
    newest = folder.newest()
    assert newest.read_text() == "state 2"
    folder.remove_behind(newest)
    assert list(folder.checkpoints()) == [2]
    Path("source").write_text("state 3")
    folder.keep(Path("source"), 3)
    assert folder.best("best").read_text() == "state 3"
    assert folder.is_trained(3)


def test_a_folder_is_trained_once_the_last_step_is_there_with_its_best_checkpoint(workplace):
    folder = trained(2.0, 1.0)
    assert not folder.is_trained(3)
    assert folder.is_trained(2)
    folder.append({"kind": "metrics", "step": 3, "metrics": {"loss": 0.5}, "kept": True})
    assert not folder.is_trained(3)
    folder.append({"kind": "metrics", "step": 4, "metrics": {"loss": 0.1}, "kept": False})
    Path("source").write_text("state 3")
    folder.keep(Path("source"), 3)
    assert folder.is_trained(4)


def test_after_completion_the_best_alone_is_kept(workplace):
    folder = trained(5.0, 1.0, 3.0, 2.0)
    folder.keep_best()
    assert list(folder.checkpoints()) == [2]
    unselected = ReplicateFolder(Path("replicate"), {})
    Path("source").write_text("state 4")
    unselected.keep(Path("source"), 4)
    unselected.keep_best()
    assert list(unselected.checkpoints()) == [4]


def test_new_lines_of_the_journal_are_read_once_and_torn_ones_later(workplace):
    folder = trained(2.0)
    records, offset = folder.records_after(0)
    assert [record["step"] for record in records] == [1]
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('{"kind": "me')
    assert folder.records_after(offset) == ([], offset)
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('trics", "time_ms": 1, "step": 2, "metrics": {}}\n')
    records, end = folder.records_after(offset)
    assert [record["step"] for record in records] == [2]
    assert folder.records_after(end) == ([], end)


def test_artifacts_are_bounded_and_one_that_is_replaced_counts_once(workplace, monkeypatch):
    monkeypatch.setattr("orchestrator.journal.artifacts.LIMIT_BYTES", 100)
    folder = ReplicateFolder(Path("replicate"), {})
    folder.keep_artifacts({"a": b"x" * 60})
    folder.keep_artifacts({"a": b"y" * 90})
    with pytest.raises(ValueError, match="but these take"):
        folder.keep_artifacts({"b": b"z" * 11})
    assert [file.name for file in folder.artifacts.iterdir()] == ["a"]


def test_nothing_half_written_is_left_where_the_disk_is_full(workplace, monkeypatch):
    def full(source, target, num_bytes):
        target.write(b"half")
        raise OSError(28, "No space left on device")

    folder = trained(2.0)
    monkeypatch.setattr("orchestrator.journal.folder.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        folder.keep(Path("source"), 2)
    assert sorted(file.name[:11] for file in folder.path.iterdir()) == ["journal.jso", "step_000001"]


def test_checkpoints_are_in_the_order_of_steps_whatever_the_number_of_digits(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    source = Path("source")
    for step in (980_000, 990_000, 1_000_000, 1_010_000):
        source.write_text(f"state {step}")
        folder.append({"kind": "metrics", "step": step, "metrics": {}})
        folder.keep(source, step)
        assert folder.newest().read_text() == f"state {step}"
    assert list(folder.checkpoints()) == [1_000_000, 1_010_000]


def test_a_line_torn_by_a_crash_is_dropped_and_written_over(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    folder.append({"kind": "metrics", "step": 1, "metrics": {}})
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('{"kind": "metr')
    assert folder.last_step() == 1
    folder.append({"kind": "metrics", "step": 2, "metrics": {}})
    assert [record["step"] for record in folder.records()] == [1, 2]


def test_each_evaluation_keeps_its_own_best_beside_the_last_two(workplace):
    folder = ReplicateFolder(Path("replicate"), {"a": "loss@a", "b": "loss@b"})
    source = Path("source")
    source.write_text("state")
    for step, (a, b) in enumerate([(1.0, 9.0), (2.0, 3.0), (4.0, 3.0), (5.0, 5.0), (6.0, 6.0)], start=1):
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss@a": a, "loss@b": b}})
        folder.keep(source, step)
    assert list(folder.checkpoints()) == [1, 2, 4, 5]
    assert folder.best("a").name.startswith("step_000001.")
    assert folder.best("b").name.startswith("step_000002.")


def test_no_number_is_never_the_best(workplace):
    """Whenever it is reported; comparisons with it are false, so that it would stay where it came first."""
    folder = ReplicateFolder(Path("replicate"), {"best": "loss"})
    source = Path("source")
    source.write_text("state")
    for step, loss in enumerate([math.nan, 0.5, 0.2, math.nan, 0.4], start=1):
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss": loss}})
        folder.keep(source, step)
    assert folder.best("best").name.startswith("step_000003.") and list(folder.checkpoints()) == [3, 4, 5]


def test_a_folder_that_does_not_exist_is_new(workplace):
    folder = ReplicateFolder(Path("nothing"), {"best": "loss"})
    assert (folder.state(), folder.last_step(), folder.newest(), folder.best("best")) == (
        {"state": "new"},
        -1,
        None,
        None,
    )


def test_a_lease_is_held_by_one_and_free_after(workplace):
    first, second = Lease(Path("x.lock")), Lease(Path("x.lock"))
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    assert "process" in second.holder()
    first.release()
    assert second.acquire()


def test_a_holder_that_hangs_can_be_ended(workplace):
    hangs = "import time; from pathlib import Path; from orchestrator.machine.process_lock import Lease\n"
    hangs += "lease = Lease(Path('x.lock')); lease.acquire(); print('held', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", hangs], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout.readline() == "held\n"
    lease = Lease(Path("x.lock"))
    with pytest.raises(TimeoutError, match=f"process {process.pid} on "):
        lease.wait(0.3)
    lease.end_holder()
    lease.wait(10)
    assert process.wait(10) == -9
