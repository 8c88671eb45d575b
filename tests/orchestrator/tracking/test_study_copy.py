"""The copy of the study file on a sweep's own run: when it is put, and when it counts as the study."""

import contextlib
import gzip
import json
import socket
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from mlflow.exceptions import MlflowException

from orchestrator.journal.curve_file import CURVE_FILE
from orchestrator.journal.study_file import STUDY_FILE, StudyFile, name_of, read_study_file, to_record
from orchestrator.results.study import Replicate, Study
from orchestrator.tracking import load, study_copy
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease_holder import Holder, holder_file
from orchestrator.tracking.study_copy import (
    StudyCopy,
    bring_from_bucket,
    read_bucket,
    read_copy,
    store_in_bucket,
    store_on_server,
)
from orchestrator.tracking.write_queue import WriteQueue
from tests.orchestrator.driven import new_settings
from tests.orchestrator.recorded import replicate
from tests.waiting import until
from trainables.errors import DataWarning

LIVING, GONE = Holder("somebody", False, 1.0, "mine"), Holder("somebody", True, 1.0, "mine")


class Uploads:
    """A place that takes copies; notes when, and what was in them."""

    def __init__(self):
        self.times, self.contents, self.curves = [], [], []

    def __call__(self, packed):
        self.times.append(time.monotonic())
        self.contents.append(gzip.decompress(packed.study))
        self.curves.append(gzip.decompress(packed.curves) if packed.curves else b"")


def on_server(tracking):
    return partial(store_on_server, tracking, "sweep")


@pytest.fixture
def queue():
    found = WriteQueue(print)
    yield found
    found.close()


def put(file: StudyFile, *replicates: Replicate, lease: str = "mine") -> None:
    file.put("sweep", "sweep", {"lease": lease})
    for one in replicates:
        file.put("replicate", name_of(one), {"condition": one.condition, "seed": one.seed} | to_record(one))


@pytest.fixture
def file(tmp_path):
    found = StudyFile(tmp_path / "sweep", "")
    yield found
    found.close()


@pytest.fixture
def stored(tmp_path, file, queue):
    """The tracking store, in which a replicate's state was written and then the copy was put."""
    tracking = Tracking(new_settings(tmp_path))
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "condition", "a", "a", {"ponderay.condition": "a"})
    put(file, replicate("a", 1), replicate("b", 2))
    tracking.write_replicates(experiment, run_id, {})
    StudyCopy(tmp_path / "sweep", "mine", queue, on_server(tracking)).put_now()
    assert queue.drain(30) == 0
    return SimpleNamespace(tracking=tracking, experiment=experiment, run_id=run_id, runs=tracking.runs("sweep"))


def test_it_is_read_as_the_file_is(stored):
    for holder in (LIVING, GONE):
        assert read_copy(stored.runs, holder).study("sweep").replicates == (replicate("a", 1), replicate("b", 2))


def test_it_is_not_that_of_another_driver(stored):
    assert read_copy(stored.runs, replace(GONE, token="another's")) is None
    assert read_copy(stored.runs, None) is None


def test_of_a_driver_that_was_killed_the_runs_may_say_more(stored):
    """The next copy of one that lives is due some time later, and what is newer than that was written without one."""
    stored.tracking.write_replicates(stored.experiment, stored.run_id, {})
    assert read_copy(stored.runs, LIVING)
    assert read_copy(stored.runs, GONE) is None
    assert read_copy(stored.runs, replace(LIVING, silent_s=60.0)) is None
    later = stored.runs.last_update_ms() + 3_600_000
    stored.tracking._client.log_metric(stored.run_id, "ponderay.updated", later, later)
    assert read_copy(stored.runs, LIVING) is None


@pytest.mark.parametrize("damage", ["cut", "another", "gone", "tag", "no tag"])
def test_one_that_is_damaged_or_half_replaced_counts_for_nothing(stored, tmp_path, damage):
    (place,) = tmp_path.rglob("study.jsonl.gz")
    run_id = stored.tracking.sweep_run("sweep")
    match damage:
        case "cut":
            place.write_bytes(place.read_bytes()[:-9])
        case "another":
            place.write_bytes(gzip.compress(b"another"))
        case "gone":
            place.unlink()
        case "tag":
            stored.tracking.log(run_id, tags={"ponderay.study": '{"lease": "mine"}'})
        case "no tag":
            stored.tracking._client.delete_tag(run_id, "ponderay.study")
    assert read_copy(stored.runs, GONE) is None


def test_it_is_put_when_something_changed_and_not_more_often_than_is_due(file, queue, tmp_path, monkeypatch):
    monkeypatch.setattr(study_copy, "LEAST_S", 0.5)
    monkeypatch.setattr("orchestrator.tracking.write_queue.GATHER_S", 0.0)
    uploads = Uploads()
    copy = StudyCopy(tmp_path / "sweep", "mine", queue, uploads)
    for seed in range(100):
        put(file, replicate("a", seed))
        copy.changed()
        time.sleep(0.01)
    until(lambda: uploads.contents and uploads.contents[-1] == (tmp_path / "sweep" / STUDY_FILE).read_bytes())
    assert 1 < len(uploads.times) < 100
    assert all(after - before >= 0.5 for before, after in zip(uploads.times, uploads.times[1:], strict=False))


def test_after_a_slow_upload_the_next_one_waits_twenty_times_as_long(file, queue, tmp_path, monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(study_copy.time, "monotonic", lambda: clock.now)
    copy = StudyCopy(tmp_path / "sweep", "mine", queue, lambda _: setattr(clock, "now", clock.now + 3.0))
    put(file, replicate("a", 1))
    copy._put()
    assert copy._next_s == 100.0 + 3.0 + 60.0


def test_curves_are_put_where_there_are_new_ones(file, queue, tmp_path):
    uploads, curves = Uploads(), tmp_path / "sweep" / CURVE_FILE
    copy = StudyCopy(tmp_path / "sweep", "mine", queue, uploads)
    put(file, replicate("a", 1))
    for content in (None, b"first\n", b"first\n", b"first\nsecond\n"):
        if content:
            curves.write_bytes(content)
        copy._put()
    assert uploads.curves == [b"", b"first\n", b"", b"first\nsecond\n"]


def test_a_bucket_gives_an_empty_folder_what_it_was_given(file, queue, tmp_path):
    url, folder = (tmp_path / "bucket").as_uri(), tmp_path / "sweep"
    put(file, replicate("a", 1))
    (folder / CURVE_FILE).write_bytes(b"curves\n")
    StudyCopy(folder, "mine", queue, partial(store_in_bucket, url))._put()
    assert read_bucket(url) == read_study_file(folder)
    bring_from_bucket(url, tmp_path / "other" / "sweep")
    for name in (STUDY_FILE, CURVE_FILE):
        assert (tmp_path / "other" / "sweep" / name).read_bytes() == (folder / name).read_bytes()
    put(file, replicate("a", 2))
    bring_from_bucket(url, folder)
    assert len(read_study_file(folder).replicates) == 2
    (tmp_path / "bucket" / "study.jsonl.gz").write_bytes(b"half of it")
    assert read_bucket(url) is None
    bring_from_bucket(url, tmp_path / "third")
    assert not (tmp_path / "third" / STUDY_FILE).exists()


@pytest.mark.parametrize("lease", ["mine", "that of the driver before"])
def test_a_file_that_has_not_yet_all_of_the_driver_before_is_not_put(file, queue, tmp_path, lease):
    """Its lease is noted when it has."""
    uploads = Uploads()
    put(file, replicate("a", 1), lease=lease)
    StudyCopy(tmp_path / "sweep", "mine", queue, uploads)._put()
    assert len(uploads.times) == (lease == "mine")


def test_nothing_is_put_of_a_study_without_replicates_or_without_a_file(file, queue, tmp_path):
    uploads = Uploads()
    put(file)
    StudyCopy(tmp_path / "sweep", "mine", queue, uploads).put_now()
    StudyCopy(tmp_path / "nothing", "mine", queue, uploads).put_now()
    assert queue.drain(30) == 0 and uploads.times == []


def test_a_full_disk_for_temporary_files_does_not_hold_up_what_is_written(file, queue, tmp_path, monkeypatch):
    def refuse():
        raise OSError("no space left")

    monkeypatch.setattr(study_copy.tempfile, "TemporaryDirectory", refuse)
    put(file, replicate("a", 1))
    StudyCopy(tmp_path / "sweep", "mine", queue, on_server(None)).put_now()
    assert queue.drain(30) == 0


def test_a_place_of_files_that_is_closed_leaves_the_run_without_the_tag(stored, file, queue, tmp_path, monkeypatch):
    def refuse(*_):
        raise MlflowException("no bucket of yours")

    monkeypatch.setattr(stored.tracking._client, "log_artifacts", refuse)
    before = stored.runs.client.get_run(stored.tracking.sweep_run("sweep")).data.tags["ponderay.study"]
    put(file, replicate("c", 1))
    StudyCopy(tmp_path / "sweep", "mine", queue, on_server(stored.tracking)).put_now()
    assert queue.drain(30) == 0
    run = stored.runs.client.get_run(stored.tracking._runs.find(stored.experiment, "sweep", "sweep"))
    assert (run.data.tags["ponderay.study"], run.info.status) == (before, "FINISHED")
    assert json.loads(before)["generation"] == 1


@pytest.mark.parametrize("is_here", [True, False])
def test_a_folder_that_was_brought_from_the_drivers_machine_is_not_believed_over_the_server(
    tmp_path, monkeypatch, is_here
):
    """It may have been brought in the middle of a run."""
    settings = replace(new_settings(tmp_path), tracking_uri="http://127.0.0.1:9")
    brought = StudyFile(settings.replicates("sweep"), "")
    put(brought, replicate("a", 1))
    brought.close()
    on_server = Study("sweep", (replicate("a", 1), replicate("a", 2)))
    holder = replace(GONE, is_here=is_here)
    server = SimpleNamespace(runs=lambda _: None, read_holder=lambda _: holder, read_study=lambda _: on_server)
    monkeypatch.setattr(load, "_asked", lambda *_: server)
    monkeypatch.setattr(study_copy, "read_copy", lambda *_: None)
    assert len(load.load_study("sweep", settings).replicates) == (1 if is_here else 2)


@pytest.mark.parametrize("has_run", [True, False])
def test_a_study_file_that_is_newer_than_a_restored_server_answers_and_says_so(tmp_path, monkeypatch, has_run):
    settings = replace(new_settings(tmp_path), tracking_uri="http://127.0.0.1:9")
    file = StudyFile(settings.replicates("sweep"), "")
    put(file, replicate("a", 1), replicate("a", 2))
    file.close()
    own = holder_file(settings, "sweep sweep")
    own.enter("7", json.dumps({"who": "somebody", "token": "mine"}))
    own.note("beat.7", "released")
    holder = replace(GONE, token="an earlier one's", generation=6) if has_run else None
    server = SimpleNamespace(read_holder=lambda _: holder)
    monkeypatch.setattr(load, "_asked", lambda *_: server)
    with pytest.warns(DataWarning, match=r"^The tracking store http.* is older than the study file of sweep on this"):
        assert len(load.load_study("sweep", settings).replicates) == 2
    assert load.load_holder("sweep", settings).generation == 7


def test_a_server_that_accepts_and_never_answers_is_asked_for_moments_where_this_machine_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "PATIENCE_S", 0.2)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = replace(new_settings(tmp_path), tracking_uri=uri)
        file = StudyFile(settings.replicates("sweep"), "")
        put(file, replicate("a", 1))
        file.close()
        with pytest.warns(DataWarning, match=rf"{uri} cannot be opened: no answer within 0\.2 s; the answer is as of"):
            assert len(load.load_study("sweep", settings).replicates) == 1
        monkeypatch.setattr(load, "fault", lambda *_: pytest.fail("it was asked again"))
        assert load.load_holder("sweep", settings) is None
        assert load.load_declaration("sweep", settings) is None
