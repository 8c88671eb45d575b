"""Sweeps whose journals and checkpoints are kept in a bucket, while each machine has a folder of its own."""

import gzip
import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer
from rich.console import Console

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.forecast.remaining_work import look
from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.curve_file import CURVE_FILE, curves_in
from orchestrator.journal.lines import line_of
from orchestrator.journal.study_file import read_study_file
from orchestrator.machine.network import free_port
from orchestrator.run import run
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.curves import load_curves
from orchestrator.tracking.load import load_study
from search_spaces.resources import Resources
from search_spaces.sweep import Condition
from tests.integration.put_away import put_away_and_bring_back
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import statuses
from tests.integration.tiny import TinyEvaluation
from trainables.errors import DataWarning, InputError

ROOT = Path(__file__).parents[2]
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "for-tests",
    "AWS_SECRET_ACCESS_KEY": "for-tests",
    "AWS_DEFAULT_REGION": "us-east-1",
}


moto_at: dict[int, ThreadedMotoServer] = {}


def start(port: int) -> None:
    """Serves S3 at a port of loopback; what was stored stays when it is stopped."""
    moto = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    moto.start()
    moto_at[port] = moto


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server."""
    start(port := free_port())
    yield f"http://127.0.0.1:{port}"
    moto_at.pop(port).stop()


@pytest.fixture
def bucket(server, workplace, monkeypatch):
    """An empty bucket, which the settings name."""
    for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": server, "PONDERAY_STORAGE": "s3://runs/shared"}).items():
        monkeypatch.setenv(name, value)
    made = boto3.resource("s3").create_bucket(Bucket="runs")
    yield made
    made.objects.delete()
    made.delete()


@pytest.fixture
def requests(bucket, monkeypatch) -> Counter[str]:
    """How often each operation was asked of the server from here on."""
    from s3fs import S3FileSystem

    counts: Counter[str] = Counter()
    ask = S3FileSystem._call_s3

    async def counted(self, operation, *arguments, **named):
        counts[operation] += 1
        return await ask(self, operation, *arguments, **named)

    monkeypatch.setattr(S3FileSystem, "_call_s3", counted)
    return counts


TWO = {"a": {}, "b": {"x": 0.25}}


def on_another_machine(monkeypatch) -> Path:
    """Moves to a machine with an empty folder of its own; the tracking store is the one of before."""
    monkeypatch.setenv("PONDERAY_TRACKING_URI", f"sqlite:///{Path('runs/mlflow.db').absolute()}")
    runs = Path("machine 2").absolute()
    monkeypatch.setenv("PONDERAY_RUNS", str(runs))
    return runs


def journals(bucket) -> dict[str, list[dict]]:
    """Of each replicate and prerequisite by key, as the bucket has them."""
    return {
        entry.key.split("/")[-2]: [json.loads(line) for line in entry.get()["Body"].read().splitlines()]
        for entry in bucket.objects.all()
        if entry.key.endswith("journal.jsonl")
    }


def starts(bucket) -> dict[str, int]:
    return {key: sum(r["kind"] == "started" for r in records) for key, records in journals(bucket).items()}


def digits(outcome) -> list:
    return [(r.condition, r.seed, r.state, dict(r.metrics)) for r in outcome.replicates]


def without_bucket(monkeypatch, sweep) -> list:
    with monkeypatch.context() as patch:
        patch.delenv("PONDERAY_STORAGE", raising=False)
        return digits(run_quietly(sweep))


def test_a_sweep_has_the_same_digits_and_another_machine_finds_it_done(bucket, monkeypatch):
    sweep = tiny(TWO)
    first = run_quietly(sweep)
    assert digits(first) == without_bucket(monkeypatch, tiny(TWO, name="tiny.alone"))
    kinds = Counter(Path(entry.key).name.partition(".")[0] for entry in bucket.objects.all())
    assert kinds == {"journal": 5, "writer": 5, "step_000001": 1, "step_000004": 4, "study": 1, "curves": 1}
    runs = on_another_machine(monkeypatch)
    assert digits(run_quietly(sweep)) == digits(first)
    assert set(starts(bucket).values()) == {1}
    assert not list(runs.rglob("*.pt"))
    snapshot = look(sweep, read_settings(), 2, 0, False)
    assert [one.state for one in (*snapshot.replicates, *snapshot.prerequisites)] == ["complete"] * 5
    stored = sum(entry.size for entry in bucket.objects.filter(Prefix="shared/replicates/") if entry.key[-3:] != ".gz")
    assert sum(one.size_bytes for one in snapshot.replicates) == stored


def test_an_empty_runs_folder_answers_from_the_copy_in_the_bucket_and_the_next_driver_takes_it_back(
    bucket, monkeypatch
):
    run_quietly(tiny(TWO))
    study = load_study("tiny.sweep")
    curves = load_curves("tiny.sweep", study.replicates, read_settings())
    folder = on_another_machine(monkeypatch) / "replicates" / "tiny.sweep"
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.tracking.load._asked", lambda *_: pytest.fail("MLflow was asked"))
        assert load_study("tiny.sweep") == study and load_study("tiny.sweep").unmirrored == ()
    run_quietly(tiny(TWO))
    assert read_study_file(folder).generation == 2 and load_study("tiny.sweep") == study
    assert curves_in((folder / CURVE_FILE).read_bytes(), study.replicates) == curves
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")  # five seconds of pauses between its tries
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("PONDERAY_RUNS", "machine 3")
    with pytest.warns(DataWarning, match="the answer is as of"):
        assert load_study("tiny.sweep").replicates == study.replicates


def test_a_copy_of_a_driver_that_was_killed_is_not_believed_over_mlflow(bucket, monkeypatch):
    run_quietly(tiny(TWO))
    study, folder = load_study("tiny.sweep"), SharedFolder("s3://runs/shared/replicates/tiny.sweep")
    content = gzip.decompress(folder.read("study.jsonl.gz"))
    running = {"kind": "replicate", "name": "a seed 1", "time_ms": 1, "key": "k", "condition": "a", "seed": 1}
    folder.write("study.jsonl.gz", gzip.compress(content + line_of(running | {"state": "running"})))
    on_another_machine(monkeypatch)
    assert sorted(map(repr, load_study("tiny.sweep").replicates)) == sorted(map(repr, study.replicates))


def test_an_evaluation_added_on_another_machine_fetches_the_best_checkpoint_and_no_name_that_leads_out(
    bucket, monkeypatch
):
    (replicate,) = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates
    folder = f"shared/replicates/tiny.sweep/{replicate.key}"
    for name in ("../../x", "artifacts/../../../x", "step_000009.0123456789abcdef.pt/../../x", "/x", "artifacts/.."):
        bucket.put_object(Key=f"{folder}/{name}", Body=b"hostile")
    runs = on_another_machine(monkeypatch)
    added = (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))
    (replicate,) = run_quietly(tiny({"a": {"evaluations": added}}, seeds=(1,))).replicates
    assert replicate.metrics["error@double"] == pytest.approx(2 * replicate.metrics["error@plain"])
    steps = [record["step"] for record in journals(bucket)[replicate.key] if record["kind"] == "metrics"]
    assert steps == [1, 2, 3, 4]
    assert [path.name[:11] for path in (runs / "replicates").rglob("*.pt")] == ["step_000004"]
    assert not list(Path().absolute().rglob("x"))


def test_a_prerequisite_whose_product_is_damaged_is_made_again(bucket, monkeypatch):
    first = run_quietly(tiny({"a": {}}, seeds=(1,)))
    (product,) = (e for e in bucket.objects.filter(Prefix="shared/prerequisites/") if e.key.endswith(".pt"))
    good = product.get()["Body"].read()
    product.put(Body=b"garbage")
    on_another_machine(monkeypatch)
    outcome = run_quietly(tiny({"a": {}}, seeds=(1, 2)))
    assert digits(outcome)[0] == digits(first)[0]
    assert [r.state for r in outcome.replicates] == ["complete"] * 2
    (again,) = (e for e in bucket.objects.filter(Prefix="shared/prerequisites/") if e.key.endswith(".pt"))
    assert (again.key, again.get()["Body"].read()) == (product.key, good)


@pytest.mark.slow
def test_results_are_put_away_brought_back_and_renamed_where_journals_are_in_a_bucket(bucket, monkeypatch):
    sweep = tiny({"a": {}, "b": {"x": 0.25}})
    run_quietly(sweep)
    put_away_and_bring_back(sweep)
    keys = {file.key.split("/")[2] for file in bucket.objects.all() if file.key.startswith("shared/replicates/")}
    assert keys == {"tiny.renamed"}
    on_another_machine(monkeypatch)
    before = starts(bucket)
    outcome = run_quietly(replace(sweep, name="tiny.renamed"))
    assert {one.state for one in outcome.replicates} == {"complete"} and starts(bucket) == before


def test_a_bucket_that_is_away_for_a_while_changes_nothing(bucket, server, monkeypatch):
    """Its port is closed from the second epoch on, for a second."""
    expected = without_bucket(monkeypatch, tiny({"a": {}}, name="tiny.whole", seeds=(1,)))
    port, was_away = int(server.rpartition(":")[2]), []

    def away(config, epoch):
        if epoch == 2 and not was_away:
            was_away.append(moto_at[port])
            moto_at[port].stop()
            threading.Timer(1.0, start, [port]).start()

    monkeypatch.setattr("tests.integration.tiny._strike", away)
    assert digits(run_quietly(tiny({"a": {}}, seeds=(1,)))) == expected
    assert was_away


@pytest.mark.slow
@pytest.mark.usefixtures("ray_instance")
def test_trials_and_train_workers_of_ray_give_the_same_digits_though_one_is_killed(workplace, monkeypatch):
    """Behind a file:// URL, which needs no keys in workers that were started before."""
    mark = Path("killed").absolute()
    killed = {"x": 0.25, "kill_at": 3, "fault_file": mark}
    conditions = (Condition("here", {}), Condition("in two", killed, Resources(num_workers=2)))
    expected = without_bucket(monkeypatch, tiny({"here": {}, "in two": {"x": 0.25, "kill_at": 3}}, seeds=(1,)))
    shutil.rmtree("runs/replicates")
    monkeypatch.setenv("PONDERAY_STORAGE", (workplace / "bucket").as_uri())
    sweep = tiny(conditions, name="tiny.ray", seeds=(1,))
    outcome = run(sweep, read_settings(), Console(quiet=True), None, accept_code=False)
    assert digits(outcome) == expected
    assert mark.exists()
    kinds = Counter(file.name.partition(".")[0] for file in (workplace / "bucket").rglob("*") if file.is_file())
    assert kinds == {"journal": 3, "writer": 3, "step_000001": 1, "step_000004": 2, "study": 1, "curves": 1}
    for journal in Path("runs").rglob("journal.jsonl"):
        steps = [record["step"] for record in map(json.loads, journal.open()) if record["kind"] == "metrics"]
        assert steps == sorted(set(steps))
    recorded = Tracking(read_settings()).read_study("tiny.ray").replicates
    assert [dict(one.metrics) for one in recorded] == [dict(one.metrics) for one in outcome.replicates]
    assert "RUNNING" not in statuses("tiny.ray").values()


def test_a_bucket_that_is_not_there_is_the_users_mistake(bucket, monkeypatch):
    monkeypatch.setenv("PONDERAY_STORAGE", "s3://misspelt/shared")
    with pytest.raises(RefusedError, match=r"s3://misspelt/shared cannot be written: .*Create the bucket"):
        run_quietly(tiny({"a": {}}, seeds=(1,)))
    monkeypatch.setattr("orchestrator.run.check_places", lambda settings: [])  # it went away after the look
    (error,) = run_quietly(tiny({"a": {}}, seeds=(1,))).input_errors
    assert re.match(r"s3://misspelt/shared/prerequisites/\w+ cannot be written: .*Create the bucket", error)


def test_a_finished_sweep_asks_for_little(bucket, monkeypatch, requests):
    sweep = tiny({"a": {"num_epochs": 1}, "b": {"num_epochs": 1, "x": 0.25}}, seeds=(1, 2, 3))
    run_quietly(sweep)
    assert requests.total() <= 35 * 7
    requests.clear()
    run_quietly(sweep)
    place = Counter(put_object=1, get_object=1, delete_object=1)  # whether it can be written, before anything begins
    copies = requests["put_object"] - place["put_object"]
    assert copies in (2, 3)  # curves once, the study file at the end and, where there is time for it, before
    place["put_object"] += copies
    assert requests - place == LOOKED  # each journal once, all of a kind together
    requests.clear()
    look(sweep, read_settings(), 2, 0, False)
    assert requests == LOOKED


LOOKED = {"list_objects_v2": 2, "get_object": 8}
"""Six replicates, their prerequisite, and the name that a renamed sweep had first."""


def test_what_was_done_before_there_was_a_bucket_is_brought_there_and_not_done_again(bucket, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("PONDERAY_STORAGE")
        run_quietly(tiny({"a": {}}, seeds=(1,)))
    added = {"evaluations": (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))}
    (replicate,) = run_quietly(tiny({"a": added}, seeds=(1,))).replicates
    assert replicate.state == "complete" and "error@double" in replicate.metrics
    (records,) = [records for records in journals(bucket).values() if records[0]["config"].get("first")]
    assert [record["step"] for record in records if record["kind"] == "metrics"] == [1, 2, 3, 4]


def test_a_file_without_content_is_read_as_such(bucket):
    """S3 calls every range of it invalid, as it does a bucket's name."""
    folder = SharedFolder("s3://runs/shared")
    folder.write("empty", b"")
    folder.write("full", b"1")
    assert (folder.read("empty"), folder.read("empty", 3), folder.read("full", 1)) == (b"", b"", b"")
    assert folder.read_many(["empty", "full", "none"]) == {"empty": b"", "full": b"1"}
    with pytest.raises(InputError, match="Correct the URL"):
        SharedFolder("s3://No Bucket/shared").read_many(["a"])


def test_a_sweep_goes_on_where_a_journal_has_no_content(bucket):
    first = run_quietly(tiny({"a": {}}, seeds=(1,)))
    folder = SharedFolder(f"s3://runs/shared/replicates/tiny.sweep/{first.replicates[0].key}")
    for name in folder.sizes():
        folder.remove(name)
    folder.write("journal.jsonl", b"")
    assert digits(run_quietly(tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1,))))[0] == digits(first)[0]
