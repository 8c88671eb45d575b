"""What a folder behind a URL promises: whole files, names that stay inside, patience, and plain words where it ends."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import fsspec
import pytest

from orchestrator.journal import bucket as shared_folder
from orchestrator.journal.bucket import SharedFolder, UnavailableError, ask_once, write_fault
from trainables.errors import InputError


@pytest.fixture
def memory():
    """fsspec's files in memory, none at first."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


@pytest.fixture
def folder(memory) -> SharedFolder:
    return SharedFolder("memory://bucket/folder")


@pytest.fixture(params=["memory", "file"])
def any_folder(request, memory, tmp_path) -> SharedFolder:
    """In memory, and on a disk, where what is half written could be seen."""
    return SharedFolder("memory://bucket/folder" if request.param == "memory" else (tmp_path / "bucket").as_uri())


def test_what_is_written_is_read_fetched_listed_and_removed(any_folder, tmp_path):
    assert (any_folder.sizes(), any_folder.read("a"), any_folder.read_many(["a"])) == ({}, b"", {})
    with pytest.raises(FileNotFoundError):
        any_folder.fetch("a", tmp_path / "fetched")
    any_folder.write("a", b"first")
    any_folder.write("a", b"in its place")
    (tmp_path / "source").write_bytes(b"sent")
    any_folder.send("inner/b", tmp_path / "source")
    assert any_folder.sizes() == {"a": 12, "inner/b": 4}
    assert (any_folder.read("a", 7), any_folder.read("a", 12)) == (b"place", b"")
    assert any_folder.read_many(["a", "inner/b", "c"]) == {"a": b"in its place", "inner/b": b"sent"}
    any_folder.fetch("inner/b", tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == b"sent"
    any_folder.remove("a")
    any_folder.remove("a")
    assert any_folder.sizes() == {"inner/b": 4}


def test_a_file_that_is_cut_off_while_it_is_written_leaves_the_one_before(any_folder, monkeypatch):
    any_folder.write("a", b"first")

    def cut_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(any_folder._files), "mv", cut_off)
        with pytest.raises(KeyboardInterrupt):
            any_folder.write("a", b"second")
    assert any_folder.read("a") == b"first"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "a//b", "a\\b", "a\0"])
def test_a_name_that_leads_out_of_the_folder_is_refused(folder, tmp_path, name):
    for call in (folder.read, folder.remove, lambda n: folder.write(n, b""), lambda n: folder.fetch(n, tmp_path / "f")):
        with pytest.raises(ValueError, match="must not lead out of"):
            call(name)


def test_names_that_lead_out_of_the_folder_are_not_seen(folder, memory):
    folder.write("a", b"1")
    for path in ("/bucket/folder/../../x", "/bucket/folder/inner/../x", "/bucket/folder//x", "/bucket/other"):
        memory.store[path] = memory.store["/bucket/folder/a"]
    assert folder.sizes() == {"a": 1}


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """Seconds that were waited for, of a clock that goes no further."""
    waited: list[float] = []
    monkeypatch.setattr(shared_folder.time, "sleep", waited.append)
    monkeypatch.setattr(shared_folder.time, "monotonic", lambda: sum(waited))
    return waited


def failing(folder: SharedFolder, monkeypatch, error: Exception, times: float) -> Counter[str]:
    """Has reads fail so many times; counts them."""
    files, calls = folder._files, Counter[str]()
    read = files.cat_file

    def fail(*arguments, **named):
        calls["read"] += 1
        if calls["read"] <= times:
            raise error
        return read(*arguments, **named)

    monkeypatch.setattr(files, "cat_file", fail)
    return calls


def test_where_no_answer_comes_it_is_asked_again_with_growing_waits(folder, monkeypatch, waits):
    folder.write("a", b"1")
    calls = failing(folder, monkeypatch, ConnectionResetError("gone"), times=4)
    assert folder.read("a") == b"1"
    assert (calls["read"], waits) == (5, [0.5, 1.0, 2.0, 4.0])


def test_after_two_minutes_it_is_given_up_as_a_fault_that_is_not_the_works(folder, monkeypatch, waits):
    calls = failing(folder, monkeypatch, RuntimeError("no\nanswer"), times=float("inf"))
    with pytest.raises(
        UnavailableError, match=r"^memory://bucket/folder cannot be reached: RuntimeError: no$"
    ) as raised:
        folder.read("a")
    assert isinstance(raised.value, OSError) and not isinstance(raised.value, ConnectionError)
    assert 90 < sum(waits) <= 120
    before = calls["read"]
    with pytest.raises(UnavailableError):
        folder.read("a")
    assert calls["read"] == before + 1


def test_of_a_bucket_that_was_given_up_only_the_first_request_waits_until_one_is_answered(memory, monkeypatch, waits):
    first, beside, other = (SharedFolder(f"memory://{name}") for name in ("bucket/1", "bucket/2", "other/1"))

    def waited_s(folder: SharedFolder) -> float:
        before = sum(waits)
        with pytest.raises(UnavailableError):
            folder.read("a")
        return sum(waits) - before

    with monkeypatch.context() as patch:
        failing(first, patch, ConnectionResetError("gone"), times=float("inf"))
        assert [waited_s(folder) > 90 for folder in (first, beside, first, other)] == [True, False, False, True]
        assert sum(waits) <= 240
        beside.be_patient()
        assert waited_s(first) > 90
    assert beside.read("is not there") == b""
    failing(first, monkeypatch, ConnectionResetError("gone"), times=4)
    assert first.read("a") == b""


def test_whoever_asks_only_once_gives_nothing_up_for_others(folder, monkeypatch, waits):
    failing(folder, monkeypatch, ConnectionResetError("gone"), times=2)
    with pytest.raises(UnavailableError):
        SharedFolder(folder.url, is_patient=False).read("a")
    assert (folder.read("a"), waits) == (b"", [0.5])


def test_what_must_end_soon_does_not_wait(folder, monkeypatch, waits):
    ask_once(f"{folder.url}/replicates")
    failing(folder, monkeypatch, ConnectionResetError("gone"), times=1)
    with pytest.raises(UnavailableError):
        folder.read("a")
    assert waits == []
    assert folder.read("a") == b""


@pytest.mark.parametrize("error", [PermissionError("Access Denied"), OSError(22, "The bucket name is not valid")])
def test_what_asking_again_would_not_mend_is_said_at_once(folder, monkeypatch, waits, error):
    failing(folder, monkeypatch, error, times=float("inf"))
    with pytest.raises(InputError, match=r"refuses: .*Correct the URL or the credentials"):
        folder.read("a")
    assert waits == []


def test_a_full_disk_here_is_no_absence_there(folder, monkeypatch, waits):
    failing(folder, monkeypatch, OSError(28, "No space left on device"), times=1)
    with pytest.raises(OSError, match="No space"):
        folder.read("a")
    assert waits == []


def test_whether_it_can_be_written_is_found_out_at_once(any_folder, folder, monkeypatch, waits):
    assert write_fault(any_folder.url) == ""
    assert any_folder.sizes() == {}

    def away(*_):
        raise ConnectionResetError("gone")

    monkeypatch.setattr(folder._files, "pipe_file", away)
    assert write_fault(folder.url) == f"{folder.url} cannot be reached: ConnectionResetError: gone"
    assert waits == []


def test_a_library_that_is_missing_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(InputError, match=r"`pip install -e '\.\[cluster\]'` in the checkout"):
        SharedFolder("s3://bucket/folder").read("a")


def test_a_url_of_no_known_kind_is_refused():
    with pytest.raises(InputError, match="must be a URL like s3://BUCKET/FOLDER, but got nothing://here"):
        SharedFolder("nothing://here").read("a")


def test_nothing_of_fsspec_is_loaded_without_a_url():
    check = "import sys, orchestrator.journal.folder; print(sorted({'fsspec', 's3fs', 'botocore'} & set(sys.modules)))"
    said = subprocess.run(  # noqa: S603
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert said.stdout.strip() == "[]"
