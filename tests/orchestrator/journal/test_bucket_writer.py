"""What a session sends to its shared folder, in which order, what it finds there, and when it has to stop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from orchestrator.journal import bucket_writer
from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.bucket_writer import SupersededError
from orchestrator.journal.folder import ReplicateFolder, looked_at
from orchestrator.journal.lines import LostLinesError

URL = "memory://bucket/replicates/sweep/key"
LOSSES = (5.0, 1.0, 3.0, 2.0, 4.0)
STARTED = {"kind": "started", "attempt": "driver.1", "code_version": "v", "host": "h", "device": "d"}


@pytest.fixture(autouse=True)
def memory(workplace) -> Iterator[None]:
    fsspec.filesystem("memory").store.clear()
    yield
    fsspec.filesystem("memory").store.clear()


def session(machine: str, attempt: str = "driver.1") -> ReplicateFolder:
    """One that has begun to write on a machine of that name."""
    folder = ReplicateFolder(Path(machine), {"best": "loss"}, URL)
    folder.begin(attempt)
    return folder


def reader(machine: str = "reader") -> ReplicateFolder:
    return ReplicateFolder(Path(machine), {"best": "loss"}, URL)


def train(folder: ReplicateFolder, losses: tuple[float, ...] = LOSSES) -> None:
    """Reports what is missing, as training does, from what can be restored."""
    restored, last = folder.newest(), folder.last_step()
    folder.remove_behind(restored)
    first = int(restored.read_text().split()[-1]) + 1 if restored else 1
    source = folder.path / "source"
    for step, loss in list(enumerate(losses, start=1))[first - 1 :]:
        folder.keep_artifacts({f"figure {step}": f"of {step}".encode()})
        if step > last:
            folder.append({"kind": "metrics", "step": step, "metrics": {"loss": loss}, "kept": True})
        source.write_text(f"state {step}")
        folder.keep(source, step)


@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """What was done in the shared folder, in order."""
    done: list[str] = []
    put, remove = SharedFolder._put, SharedFolder.remove

    def noted_put(folder, name, call):
        put(folder, name, call)
        done.append(name.partition(".")[0])

    def noted_remove(folder, name):
        remove(folder, name)
        done.append("without " + name.partition(".")[0])

    monkeypatch.setattr(SharedFolder, "_put", noted_put)
    monkeypatch.setattr(SharedFolder, "remove", noted_remove)
    return done


def test_artifacts_are_sent_before_the_journal_it_before_the_checkpoint_and_removals_come_last(sent):
    folder = session("a")
    train(folder, (5.0, 1.0, 3.0, 2.0))
    assert sent == [
        "writer",
        *("artifacts/figure 1", "journal", "step_000001"),
        *("artifacts/figure 2", "journal", "step_000002"),
        *("artifacts/figure 3", "journal", "step_000003", "without step_000001"),
        *("artifacts/figure 4", "journal", "step_000004"),
    ]
    assert sorted(reader().checkpoints()) == [2, 3, 4]
    folder.keep_best()
    assert sorted(reader().checkpoints()) == [2]


def test_what_an_earlier_session_left_here_goes_and_what_is_whole_is_not_fetched_again(monkeypatch):
    train(session("a"))
    fetched = []
    monkeypatch.setattr(SharedFolder, "fetch", lambda folder, name, target: fetched.append(name))
    (whole,) = Path("a").glob("step_000005*")
    (Path("a") / "step_000009.0123456789abcdef.pt").write_text("left over")
    (Path("a") / "artifacts" / "left over").touch()
    with Path("a/journal.jsonl").open("a") as journal:
        journal.write('{"kind": "metrics", "step": 9, "metrics": {}}\n{"kind"')
    again = session("a", "driver.2")
    assert whole.exists()
    assert again.last_step() == 5
    assert list(again.checkpoints()) == [2, 4, 5]
    assert not (Path("a") / "artifacts" / "left over").exists()
    assert {name.split("/")[0] for name in fetched} == {"artifacts"}


def test_a_damaged_checkpoint_is_passed_over_and_replaced():
    train(session("a"), (5.0, 3.0, 4.0))
    (newest,) = (name for name in SharedFolder(URL).sizes() if name.startswith("step_000003"))
    SharedFolder(URL).write(newest, b"garbage")
    assert reader().newest().read_text() == "state 2"
    assert not list(Path("reader").glob("step_000003*"))
    assert reader().product(newest) is None
    train(session("b", "driver.2"), (5.0, 3.0, 4.0, 2.0))
    assert sorted(reader().checkpoints()) == [3, 4]
    assert {step: path.read_text() for step, path in reader("other").whole().items()} == {3: "state 3", 4: "state 4"}


def test_a_session_that_another_has_followed_writes_nothing_more(sent):
    first = session("a")
    train(first, (5.0, 1.0))
    session("b", "driver.2")
    before = SharedFolder(URL).sizes()
    Path("source").write_text("state 3")
    del sent[:]
    for write in (
        lambda: first.append({"kind": "metrics", "step": 3, "metrics": {}, "kept": False}),
        lambda: first.append({"kind": "state", "state": "complete"}),
        lambda: first.keep(Path("source"), 3),
        lambda: first.keep_artifacts({"figure": b""}),
        first.keep_best,
        first.close,
    ):
        first._writer._sent_s = float("-inf")
        with pytest.raises(SupersededError, match=r"by another session, process \d+ on .*, attempt driver\.2"):
            write()
    assert (sent, SharedFolder(URL).sizes()) == ([], before)


def test_an_earlier_try_of_a_driver_that_comes_late_does_not_take_the_folder_back():
    session("b", "driver.2")
    with pytest.raises(SupersededError):
        session("a", "driver.1")
    session("b", "driver.10")
    session("c", "another.1")


def test_what_another_process_of_the_session_said_last_is_taken_into_the_journal_by_the_next_writer():
    """Ray Train starts all processes again, and they see that the attempt has ended."""
    session("a", "driver.1").append(STARTED)
    beside = reader("b")
    beside.append({"kind": "state", "state": "failed", "attempt": "driver.1", "error": "of rank 1"})
    assert reader().state() == {"state": "new"}
    again = session("a", "driver.1")
    assert (again.state()["attempt"], again.state()["error"]) == ("driver.1", "of rank 1")
    assert [record["kind"] for record in reader().records()] == ["started", "state"]
    assert [record["kind"] for record in session("c", "driver.2").records()] == ["started", "state"]
    with pytest.raises(SupersededError):
        beside.append({"kind": "state", "state": "failed", "attempt": "driver.1"})
    assert not (Path("b") / "journal.jsonl").exists()


def test_a_session_that_could_not_begin_leaves_the_journal_as_it_is(monkeypatch):
    """Though an older one lies in its own folder."""
    train(session("a"), (5.0, 1.0))
    train(session("b", "driver.2"), (5.0, 1.0, 3.0))
    before = SharedFolder(URL).read("journal.jsonl")

    def full(folder, name, target):
        raise OSError(28, "No space left on device")

    folder = ReplicateFolder(Path("a"), {"best": "loss"}, URL)
    with monkeypatch.context() as patch:
        patch.setattr(SharedFolder, "fetch", full)
        with pytest.raises(OSError, match="No space"):
            folder.begin("driver.3")
    folder.append({"kind": "state", "state": "failed", "attempt": "driver.3"})
    folder.close()
    assert SharedFolder(URL).read("journal.jsonl") == before
    assert session("a", "driver.4").last_step() == 3


def test_metrics_without_a_checkpoint_are_sent_together_and_soon(sent, monkeypatch):
    later: list[Callable[[], None]] = []
    timer = SimpleNamespace(start=lambda: None, cancel=lambda: None)
    monkeypatch.setattr(bucket_writer.threading, "Timer", lambda wait_s, call: later.append(call) or timer)
    monkeypatch.setattr(bucket_writer, "INTERVAL_S", 600.0)
    folder = session("a")
    folder._writer._sent_s = float("-inf")
    del sent[:]
    for step in range(1, 30):
        folder.append({"kind": "system", "step": step, "values": {}})
        folder.append({"kind": "metrics", "step": step, "metrics": {"loss": 1.0}, "kept": False})
    assert sent == ["journal"] and reader().last_step() == 1
    (send,) = later
    send()
    assert sent == ["journal", "journal"] and reader().last_step() == 29
    folder.append({"kind": "metrics", "step": 30, "metrics": {"loss": 1.0}, "kept": False})
    folder.append({"kind": "evaluation", "id": "plain", "step": 30, "metrics": {}})
    assert reader().evaluations() == {"plain"}
    assert sent == ["journal"] * 3
    folder.append({"kind": "metrics", "step": 31, "metrics": {"loss": 1.0}, "kept": False})
    folder.close()
    assert reader().last_step() == 31


def test_many_folders_are_looked_at_with_few_requests(monkeypatch):
    folders = []
    for number in range(7):
        url = f"memory://bucket/replicates/sweep/key{number}"
        folders.append(ReplicateFolder(Path(f"there/{number}"), {}, url))
        if number:
            writer = ReplicateFolder(Path(f"here/{number}"), {}, url)
            writer.begin("driver.1")
            writer.append({"kind": "state", "state": "complete", "number": number})
    asked = []
    ask = SharedFolder._ask
    monkeypatch.setattr(
        SharedFolder,
        "_ask",
        lambda folder, call, *rest, **named: asked.append(call) or ask(folder, call, *rest, **named),
    )
    monkeypatch.setattr("orchestrator.journal.bucket_reader.AT_ONCE", 4)
    states = [folder.state().get("number") for folder in looked_at(folders)]
    assert states == [None, 1, 2, 3, 4, 5, 6]
    assert len(asked) == 1 + 2  # one listing, two batches of journals
    assert folders[6].size_bytes() > 0
    assert len(asked) == 3


def test_artifacts_are_fetched_for_as_long_as_they_are_needed():
    train(session("a"), (5.0, 1.0))
    with reader().fetched_artifacts() as files:
        assert {file.name: file.read_text() for file in files.iterdir()} == {"figure 1": "of 1", "figure 2": "of 2"}
    assert not files.exists()
    with ReplicateFolder(Path("a"), {}).fetched_artifacts() as files:
        assert files == Path("a/artifacts")


@pytest.mark.parametrize("name", ["artifacts/../../escaped", "artifacts/inner/escaped", "artifacts/.."])
def test_an_artifact_of_the_bucket_cannot_lie_elsewhere(name):
    """The names there are given by whoever may write into the bucket."""
    train(session("a"), (5.0,))
    fsspec.filesystem("memory").store[f"/{URL.partition('://')[2]}/{name}"] = fsspec.filesystem("memory").store.pop(
        f"/{URL.partition('://')[2]}/artifacts/figure 1"
    )
    session("b")
    with reader().fetched_artifacts() as files:
        assert list(files.iterdir()) == []
    assert list(Path().rglob("escaped")) == []


def test_links_in_the_local_folder_lead_nothing_out_of_it():
    train(session("a"), (5.0, 1.0))
    Path("outside").mkdir()
    for name in ("figure 1", "file"):
        Path("outside", name).write_text("not ours")
    local = Path("b")
    local.mkdir()
    for name, target in {
        "artifacts": "outside",
        "fetched.partial": "outside/file",
        "journal.partial": "outside/file",
    }.items():
        (local / name).symlink_to(Path(target).absolute())
    train(session("b"))
    assert {path.name: path.read_text() for path in Path("outside").iterdir()} == {
        "figure 1": "not ours",
        "file": "not ours",
    }
    assert reader().last_step() == 5 and not (local / "artifacts").is_symlink()


@pytest.mark.parametrize("name", ["../../x", "journal.jsonl", "step_000001.0123456789abcdef.pt/../x"])
def test_a_product_that_a_journal_names_cannot_lie_elsewhere(name):
    session("a")
    assert reader().product(name) is None


def test_a_session_that_was_followed_while_no_answer_came_does_not_try_again(monkeypatch):
    monkeypatch.setattr("orchestrator.journal.bucket.WAITS_S", (0.0,))
    first = session("a", "driver.1")
    first.append(STARTED)
    move, lost = SharedFolder._put_and_move, []

    def without_answer(folder, put, path):
        if path.endswith("journal.jsonl") and not lost:
            lost.append(path)
            session("b", "driver.2").append({"kind": "state", "state": "complete"})
            raise ConnectionError("no answer")
        move(folder, put, path)

    monkeypatch.setattr(SharedFolder, "_put_and_move", without_answer)
    with pytest.raises(SupersededError):
        first.append({"kind": "state", "state": "failed"})
    assert [record["kind"] for record in reader().records()] == ["started", "state"]
    assert reader().state()["state"] == "complete"


def test_of_a_journal_that_was_cut_off_in_its_first_line_nothing_is_brought():
    Path("a").mkdir()
    Path("a/journal.jsonl").write_text('{"kind": "sta')
    folder = session("a")
    assert list(SharedFolder(URL).sizes()) == ["writer"]
    train(folder)
    assert reader().last_step() == len(LOSSES)


def test_a_session_waits_for_a_bucket_that_one_before_it_had_given_up(monkeypatch):
    monkeypatch.setattr("orchestrator.journal.bucket.WAITS_S", (0.0,))
    monkeypatch.setattr("orchestrator.journal.bucket._given_up", {"memory://bucket"})
    read, failed = SharedFolder._read_from, []

    def away_once(folder, path, start):
        if not failed:
            failed.append(path)
            raise ConnectionError("no answer")
        return read(folder, path, start)

    monkeypatch.setattr(SharedFolder, "_read_from", away_once)
    assert session("a", "driver.2").records() == []


def test_work_of_runs_without_a_bucket_is_brought_there():
    local = ReplicateFolder(Path("a"), {"best": "loss"})
    train(local, (5.0, 1.0))
    folder = session("a")
    assert folder.records() == local.records() == reader().records()
    assert [path.read_text() for path in folder.checkpoints().values()] == ["state 1", "state 2"]
    assert reader().best("best").read_text() == "state 2"
    assert {"artifacts/figure 1", "artifacts/figure 2"} <= set(SharedFolder(URL).sizes())
    train(folder)
    assert reader("other").best("best").read_text() == "state 2"
    assert session("b", "driver.2").last_step() == len(LOSSES)


def test_a_folder_in_the_place_of_the_local_journal_costs_no_try():
    train(session("a"), (5.0, 1.0))
    Path("a/journal.jsonl").unlink()
    Path("a/journal.jsonl/inner").mkdir(parents=True)
    assert session("a", "driver.2").last_step() == 2
    assert Path("a/journal.jsonl").is_file() and Path("a/journal.damaged-1.jsonl/inner").is_dir()


def test_a_local_journal_that_lost_lines_does_not_replace_the_shared_one():
    folder = session("a")
    train(folder)
    folder.append({"kind": "metrics", "step": 6, "metrics": {"loss": 9.0}, "kept": False})  # is sent with what follows
    before = SharedFolder(URL).read("journal.jsonl")
    Path("a/journal.jsonl").write_bytes(before[:100])
    with pytest.raises(
        LostLinesError, match=r"^The journal .*a/journal\.jsonl was changed while it was written: it has"
    ):
        folder.close()
    with pytest.raises(LostLinesError, match=r"No checkpoint was removed$"):
        folder.keep_best()
    assert SharedFolder(URL).read("journal.jsonl") == before
