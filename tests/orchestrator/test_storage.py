"""What a replicate's folder keeps, drops and survives."""

from pathlib import Path

from orchestrator.lease import Lease
from orchestrator.storage import ReplicateFolder


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


def test_checkpoints_are_in_the_order_of_steps_whatever_the_number_of_digits(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    source = Path("source")
    for step in (980_000, 990_000, 1_000_000, 1_010_000):
        source.write_text(f"state {step}")
        folder.keep(source, step)
        assert folder.newest_step() == step
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
