"""What a replicate's folder keeps, drops and survives, wherever it is: one contract for all that keep it."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import fsspec
import pytest

from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import opened
from trainables.metric import Best

URL = "memory://bucket/replicates/sweep/key"
BEST: Mapping[str, str | Best] = {"best": "loss"}


class Kept:
    """A replicate whose checkpoints are files, or folders, or files in a bucket."""

    def __init__(self, kind: str) -> None:
        self.kind, self.url = kind, URL if kind == "bucket" else ""

    def writer(self, selection: Mapping[str, str | Best] = BEST) -> ReplicateFolder:
        """As a session has it that has begun."""
        folder = ReplicateFolder(Path("replicate"), selection, self.url)
        folder.begin("driver.1")
        return folder

    def reader(self, selection: Mapping[str, str | Best] = BEST) -> ReplicateFolder:
        """As another process sees it, where it can be on another machine."""
        return ReplicateFolder(Path("elsewhere" if self.url else "replicate"), selection, self.url)

    def save(self, folder: ReplicateFolder, step: int) -> None:
        """Keeps the checkpoint of a step."""
        source = Path("given") / "state" if self.kind == "folders" else Path("given")
        source.parent.mkdir(exist_ok=True)
        source.write_text(f"state {step}")
        folder.keep(Path("given"), step)

    def train(self, *losses: float) -> ReplicateFolder:
        """One with a step of each loss, kept as training does."""
        folder = self.writer()
        for step, loss in enumerate(losses, start=1):
            folder.append({"kind": "metrics", "step": step, "metrics": {"loss": loss}, "kept": True})
            self.save(folder, step)
        return folder

    def content(self, checkpoint: Path) -> str:
        """What was saved."""
        with opened(checkpoint, Path("replicate")) as found:
            return (found / "state" if found.is_dir() else found).read_text()

    def damage(self, checkpoint: Path) -> None:
        """Wherever it lies."""
        for file in Path().rglob(checkpoint.name):
            file.write_bytes(b"garbage")
        if self.url:
            SharedFolder(URL).write(checkpoint.name, b"garbage")


@pytest.fixture(params=["files", "folders", "bucket"])
def kept(request: pytest.FixtureRequest, workplace: Path) -> Iterator[Kept]:
    """An empty one."""
    fsspec.filesystem("memory").store.clear()
    yield Kept(request.param)
    fsspec.filesystem("memory").store.clear()


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(kept):
    kept.train(5.0, 1.0, 3.0, 2.0)
    folder = kept.reader()
    assert list(folder.checkpoints()) == [2, 3, 4]
    assert kept.content(folder.best("best")) == "state 2"
    assert kept.content(folder.newest()) == "state 4"
    kept.damage(folder.newest())
    assert kept.content(folder.newest()) == kept.content(kept.reader().newest()) == "state 3"


def test_a_damaged_best_checkpoint_is_made_again_from_one_before_it(kept):
    folder = kept.train(5.0, 3.0, 1.0, 2.0, 4.0)
    assert list(folder.checkpoints()) == [3, 4, 5]
    assert folder.is_trained(5)
    kept.damage(folder.best("best"))
    assert folder.best("best") is None and kept.reader().best("best") is None
    assert not folder.is_trained(5)
    assert folder.newest() is None
    folder.remove_behind(None)
    assert folder.checkpoints() == kept.reader().checkpoints() == {}


def test_training_goes_back_no_further_than_it_must(kept):
    folder = kept.train(3.0, 2.0, 1.0)
    assert list(folder.checkpoints()) == [2, 3]
    kept.damage(folder.best("best"))
    newest = folder.newest()
    assert kept.content(newest) == "state 2"
    folder.remove_behind(newest)
    assert list(folder.checkpoints()) == [2]
    kept.save(folder, 3)
    assert kept.content(kept.reader().best("best")) == "state 3"
    assert folder.is_trained(3)


def test_a_folder_is_trained_once_the_last_step_is_there_with_its_best_checkpoint(kept):
    folder = kept.train(2.0, 1.0)
    assert not kept.reader().is_trained(3)
    assert kept.reader().is_trained(2)
    folder.append({"kind": "metrics", "step": 3, "metrics": {"loss": 0.5}, "kept": True})
    assert not folder.is_trained(3)
    folder.append({"kind": "metrics", "step": 4, "metrics": {"loss": 0.1}, "kept": False})
    kept.save(folder, 3)
    assert folder.is_trained(4)


def test_after_completion_the_best_alone_is_kept(kept):
    folder = kept.train(5.0, 1.0, 3.0, 2.0)
    folder.keep_best()
    assert list(kept.reader().checkpoints()) == [2]
    unselected = kept.writer({})
    kept.save(unselected, 4)
    unselected.keep_best()
    assert list(kept.reader({}).checkpoints()) == [4]


def test_new_lines_of_the_journal_are_read_once(kept):
    folder, other = kept.writer(), kept.reader()
    assert other.records_after(0) == ([], 0)
    folder.append({"kind": "state", "state": "failed"})
    records, offset = other.records_after(0)
    assert [record["state"] for record in records] == ["failed"]
    assert other.records_after(offset) == ([], offset)
    folder.append({"kind": "state", "state": "complete"})
    records, end = other.records_after(offset)
    assert [record["state"] for record in records] == ["complete"]
    assert other.records_after(end) == ([], end)


def test_a_line_that_is_written_in_two_halves_is_read_once_it_is_whole(workplace):
    folder = Kept("files").train(2.0)
    _, offset = folder.records_after(0)
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('{"kind": "me')
    assert folder.records_after(offset) == ([], offset)
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('trics", "time_ms": 1, "step": 2, "metrics": {}}\n')
    assert [record["step"] for record in folder.records_after(offset)[0]] == [2]


def test_what_is_set_aside_is_there_by_its_new_name_alone(kept):
    folder = kept.train(5.0, 1.0)
    newest = folder.newest()
    aside = folder.set_aside(newest)
    assert list(kept.reader().checkpoints()) == [1] and folder.asides() == [aside]
    folder.put_back(aside)
    assert list(kept.reader().checkpoints()) == [1, 2] and folder.asides() == []


def test_artifacts_are_bounded_and_one_that_is_replaced_counts_once(kept, monkeypatch):
    monkeypatch.setattr("orchestrator.journal.artifacts.LIMIT_BYTES", 100)
    folder = kept.writer()
    folder.keep_artifacts({"a": b"x" * 60})
    (folder.artifacts / ".a.partial").write_bytes(b"y" * 50)  # of a process that was killed
    folder.keep_artifacts({"a": b"y" * 90})
    with pytest.raises(ValueError, match="but these take"):
        folder.keep_artifacts({"b": b"z" * 11})
    with kept.reader().fetched_artifacts() as files:
        assert {file.name: file.read_bytes() for file in files.iterdir()} == {"a": b"y" * 90}


@pytest.mark.parametrize("name", ["../x", "..", "/x", "a/b", ""])
def test_an_artifact_cannot_leave_its_folder(kept, name):
    with pytest.raises(ValueError, match="An artifact's name must be that of a file alone"):
        kept.writer().keep_artifacts({name: b"hostile"})
    assert not list(Path().rglob("x"))


def test_nothing_half_written_is_left_where_the_disk_is_full(workplace, monkeypatch):
    def full(source, target, num_bytes):
        target.write(b"half")
        raise OSError(28, "No space left on device")

    folder = Kept("files").train(2.0)
    monkeypatch.setattr("orchestrator.journal.folder.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        folder.keep(Path("given"), 2)
    assert sorted(file.name[:11] for file in folder.path.iterdir()) == ["journal.jso", "step_000001"]


def test_checkpoints_are_in_the_order_of_steps_whatever_the_number_of_digits(kept):
    folder = kept.writer({})
    for step in (980_000, 990_000, 1_000_000, 1_010_000):
        folder.append({"kind": "metrics", "step": step, "metrics": {}})
        kept.save(folder, step)
        assert kept.content(kept.reader({}).newest()) == f"state {step}"
    assert list(kept.reader({}).checkpoints()) == [1_000_000, 1_010_000]


def test_a_line_torn_by_a_crash_is_dropped_and_written_over(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    folder.append({"kind": "metrics", "step": 1, "metrics": {}})
    with Path("replicate/journal.jsonl").open("a") as journal:
        journal.write('{"kind": "metr')
    assert folder.last_step() == 1
    folder.append({"kind": "metrics", "step": 2, "metrics": {}})
    assert [record["step"] for record in folder.records()] == [1, 2]


def test_each_evaluation_keeps_its_own_best_beside_the_last_two(kept):
    selection = {"a": "loss@a", "b": "loss@b"}
    folder = kept.writer(selection)
    for step, (a, b) in enumerate([(1.0, 9.0), (2.0, 3.0), (4.0, 3.0), (5.0, 5.0), (6.0, 6.0)], start=1):
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss@a": a, "loss@b": b}})
        kept.save(folder, step)
    seen = kept.reader(selection)
    assert list(seen.checkpoints()) == [1, 2, 4, 5]
    assert [kept.content(seen.best(name)) for name in "ab"] == ["state 1", "state 2"]


def test_no_number_is_never_the_best(kept):
    """Whenever it is reported; comparisons with it are false, so that it would stay where it came first."""
    kept.train(math.nan, 0.5, 0.2, math.nan, 0.4)
    assert kept.content(kept.reader().best("best")) == "state 3" and list(kept.reader().checkpoints()) == [3, 4, 5]


def test_a_folder_that_does_not_exist_is_new(kept):
    folder = kept.reader()
    assert (folder.state(), folder.last_step(), folder.newest(), folder.best("best")) == (
        {"state": "new"},
        -1,
        None,
        None,
    )
