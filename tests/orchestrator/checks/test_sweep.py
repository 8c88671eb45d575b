"""Each check made to pass and to fail, and what is said of it."""

import shutil
import socket
import sqlite3
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.checks import sweep as preflight
from orchestrator.checks.check import Check, refuse_failed
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.results.study import Replicate, Study
from orchestrator.tracking import store
from search_spaces.distributions import Real
from search_spaces.redaction import redacted_uri
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Prerequisite, Search, Sweep
from tests.integration import tiny as tiny_trainable


def tiny(conditions: dict[str, dict[str, object]], **changes) -> Sweep:
    """A sweep of the tiny trainable."""
    listed = tuple(Condition(name, values) for name, values in conditions.items())
    fields = {
        "name": "tiny.sweep",
        "description": "For tests.",
        "trainable": "tests.integration.tiny",
        "base": tiny_trainable.TinyConfig(),
        "conditions": listed,
        "objectives": (Objective("error"), Objective("cost")),
        "seeds": (1, 2),
        "prerequisites": (Prerequisite("first", "tests.integration.tiny_first", "first"),),
        "resources": Resources(num_workers=0),
    }
    return Sweep(**fields | changes)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def compared(num_conditions: int, num_seeds: int, pairing: str, **changes) -> Sweep:
    """A sweep whose other conditions are compared with the first."""
    conditions = {f"c{i}": {"x": i / 100} for i in range(num_conditions)}
    seeds = tuple(range(1, num_seeds + 1))
    return tiny(conditions, seeds=seeds, reference="c0", pairing=pairing, **changes)


def study_of(*replicates: Replicate) -> Study:
    return Study("tiny.sweep", replicates)


def on_data(condition: str, fingerprint: str, size_bytes: int = 0, seed: int = 1) -> Replicate:
    return Replicate("k", condition, seed, "complete", data_fingerprint=fingerprint, size_bytes=size_bytes)


# Tracking


@pytest.mark.parametrize(
    "uri", ["mlruns", "/srv/mlruns", "file:/srv/mlruns", "sqlite://", "databricks", "nonsense://x"]
)
def test_stores_that_are_not_supported_are_refused_with_the_remedy(settings, uri):
    check = preflight.check_tracking(replace(settings, tracking_uri=uri))
    assert check.state == "failed"
    assert uri in check.found
    assert "PONDERAY_TRACKING_URI" in check.remedy


def test_a_server_that_is_away_is_asked_once(settings, monkeypatch):
    uri = f"http://me:secret@127.0.0.1:{closed_port()}"
    from urllib3.util import connection

    asked, create = [], connection.create_connection
    monkeypatch.setattr(connection, "create_connection", lambda *place, **o: asked.append(place) or create(*place, **o))
    check = preflight.check_tracking(replace(settings, tracking_uri=uri))
    assert len(asked) == 1
    assert check.state == "failed"
    assert "Connection refused" in check.found
    assert "secret" not in str(check) and "me:***@127.0.0.1" in check.found


def test_a_server_that_is_silent_is_not_waited_for(settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert store.fault(uri, limit_s=0.5) == "no answer within 0.5 s"


def test_limits_on_requests_end_with_the_check(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    store.fault(f"http://127.0.0.1:{closed_port()}")
    import os

    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def test_sqlite_that_no_run_has_made_is_left_unmade(settings):
    assert preflight.check_tracking(settings).state == "ok"
    assert not settings.runs.exists()


def test_sqlite_below_a_file_cannot_be_written(settings, workplace):
    (workplace / "file").touch()
    check = preflight.check_tracking(replace(settings, tracking_uri=f"sqlite:///{workplace}/file/mlflow.db"))
    assert check.state == "failed"
    assert "cannot be written" in check.found


def test_a_file_that_is_no_database_is_named(settings, workplace):
    (workplace / "mlflow.db").write_text("text " * 1000)
    check = preflight.check_tracking(replace(settings, tracking_uri=f"sqlite:///{workplace}/mlflow.db"))
    assert check.state == "failed"
    assert "not a database" in check.found


def test_a_database_without_tables_stays_so(settings, workplace):
    with sqlite3.connect(workplace / "mlflow.db") as database:
        database.execute("CREATE TABLE other (x)")
    assert preflight.check_tracking(replace(settings, tracking_uri=f"sqlite:///{workplace}/mlflow.db")).state == "ok"
    with sqlite3.connect(workplace / "mlflow.db") as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]


def test_sqlite_on_a_network_file_system_is_a_warning(settings, monkeypatch):
    monkeypatch.setattr(preflight, "file_system", lambda path: "nfs4")
    check = preflight.check_tracking(settings)
    assert check.state == "warning"
    assert "nfs4" in check.found and "server" in check.remedy


def test_the_file_system_is_the_one_of_the_longest_mount():
    assert preflight.file_system(Path("/proc/self/nothing/below")) == "proc"
    assert preflight.file_system(Path("/proc")) != preflight.file_system(Path("/"))


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
        ("http://host:5000/path", "http://host:5000/path"),
        ("https://me:pw@host", "https://me:***@host"),
        ("postgresql+psycopg2://me:p@s/s:w@host:5432/db", "postgresql+psycopg2://me:***@host:5432/db"),
        ("postgresql://host/db?user=me&password=pw&sslmode=require", "postgresql://host/db?user=me&password=***&sslmode=require"),
    ],
)  # fmt: skip
def test_passwords_are_masked(uri, shown):
    assert redacted_uri(uri) == shown


# Storage and disk


def test_storage_can_be_written_or_not(settings, workplace):
    assert preflight.check_storage(settings).state == "ok"
    assert list(workplace.iterdir()) == []
    (workplace / "file").touch()
    check = preflight.check_storage(replace(settings, runs=workplace / "file" / "runs"))
    assert check.state == "failed"
    assert "which is a file" in check.found and "PONDERAY_RUNS" in check.remedy


@pytest.mark.parametrize(
    ("free", "sizes", "state"),
    [
        (2_000_000_000, [], "ok"),
        (999_999_999, [], "warning"),
        (3_000_000_000, [900_000_000, 1_100_000_000], "ok"),  # 3 of 5 are left, of 1 GB each
        (2_999_999_999, [900_000_000, 1_100_000_000], "failed"),
        (999_999_999, [1, 1], "warning"),
    ],
)
def test_disk_must_hold_what_is_left(settings, monkeypatch, free, sizes, state):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(free))
    sweep = tiny({"a": {}}, seeds=(1, 2, 3, 4, 5))
    study = study_of(*(on_data("a", "tiny", size, seed) for seed, size in enumerate(sizes)))
    assert preflight.check_disk(settings, sweep, study).state == state


def test_disk_need_not_hold_seeds_that_a_search_does_not_give(settings, monkeypatch):
    """Of 3 conditions of 5 seeds one is pruned and one seed of each is there: 2 x 4 replicates of 1 GB are left."""
    usage = namedtuple("usage", "free")
    search = Search({"x": Real(0.1, 1.0)}, num_trials=3, pruned=True)
    sweep = tiny({}, search=search, seeds=(1, 2, 3, 4, 5))
    study = study_of(*(on_data(name, "tiny", 1_000_000_000, 1) for name in "abc"))
    decided = {"a": "kept", "b": "pruned: a is no worse in every objective and better in one"}
    monkeypatch.setattr("orchestrator.scheduler.search_store.decisions", lambda *_: decided)
    for free, state in ((8_000_000_000, "ok"), (7_999_999_999, "failed")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: usage(free))
        assert preflight.check_disk(settings, sweep, study).state == state


# Seeds


@pytest.mark.parametrize(("num_conditions", "enough"), [(2, 7), (3, 8), (4, 8), (5, 9), (9, 10)])
def test_a_paired_test_needs_seeds_by_the_number_of_comparisons(num_conditions, enough):
    num_comparisons = (num_conditions - 1) * 2  # objectives
    assert num_comparisons * 2 / 2**enough <= 0.05 < num_comparisons * 2 / 2 ** (enough - 1)
    few = preflight.check_seeds(compared(num_conditions, enough - 1, "seeds"))
    assert few.state == "failed"
    assert f"--seeds {enough}" in few.remedy
    assert preflight.check_seeds(compared(num_conditions, enough, "seeds")).state == "ok"


def test_a_paired_test_counts_what_each_condition_is_tested_in():
    """As the report does: a and b under the reference's evaluation and another, in two objectives."""
    plain, other = tiny_trainable.TinyEvaluation(), tiny_trainable.TinyEvaluation(name="other")
    sweep = compared(3, 8, "seeds")
    assert preflight.check_seeds(sweep).state == "ok"
    twice = replace(sweep, base=sweep.base.with_value("evaluations", (plain, other)))
    few = preflight.check_seeds(twice)
    assert few.state == "failed" and "8 comparisons" in few.found and "--seeds 9" in few.remedy


def test_welch_needs_two_seeds_where_there_is_a_reference():
    assert preflight.check_seeds(compared(3, 1, "none")).state == "warning"
    assert "fewer than 6" in preflight.check_seeds(compared(3, 5, "none")).found
    assert "fewer than" not in preflight.check_seeds(compared(3, 6, "none")).found
    assert {preflight.check_seeds(compared(3, n, "none")).state for n in (2, 5, 6)} == {"ok"}
    assert preflight.check_seeds(replace(compared(3, 1, "none"), reference=None)).state == "ok"


def test_a_smoke_sweep_promises_no_test():
    assert preflight.check_seeds(compared(3, 1, "none", name="tiny.sweep.smoke")).state == "ok"


# GPUs


@pytest.mark.parametrize(
    ("resources", "num_gpus", "state"),
    [
        (Resources(), 0, "ok"),
        (Resources(), 2, "ok"),
        (Resources(num_workers="all"), 0, "ok"),
        (Resources(num_workers=0, gpus_per_worker=1), 0, "ok"),
        (Resources(gpus_per_worker=1), 0, "failed"),
        (Resources(gpus_per_worker=0.5), 1, "ok"),
        (Resources(num_workers=4, gpus_per_worker=1), 2, "failed"),
        (Resources(num_workers=(2, 4), gpus_per_worker=1), 2, "ok"),
    ],
)
def test_gpus_that_are_asked_for_must_be_there(workplace, monkeypatch, resources, num_gpus, state):
    monkeypatch.setattr(preflight, "gpu_names", lambda: ["card"] * num_gpus)
    monkeypatch.setattr(preflight, "has_nvidia_driver", lambda: num_gpus > 0)
    assert preflight.check_gpu(tiny({"a": {}}, resources=resources)).state == state


def test_a_condition_of_its_own_resources_counts_too(workplace, monkeypatch):
    monkeypatch.setattr(preflight, "gpu_names", list)
    sweep = tiny({"a": {}, "b": {"x": 0.25}})
    own = replace(sweep.conditions[1], resources=Resources(gpus_per_worker=1))
    assert preflight.check_gpu(sweep).state == "ok"
    assert preflight.check_gpu(replace(sweep, conditions=(sweep.conditions[0], own))).state == "failed"


def test_a_driver_without_a_torch_that_suits_it_is_a_warning(workplace, monkeypatch):
    monkeypatch.setattr(preflight, "gpu_names", list)
    monkeypatch.setattr(preflight, "has_nvidia_driver", lambda: True)
    check = preflight.check_gpu()
    assert check.state == "warning"
    assert "torch" in check.remedy


# All of them


def test_a_failed_check_refuses_with_what_was_found_and_the_remedy():
    passed, warned = Check("disk", "ok", "much"), Check("ray", "warning", "two", "Pin it.")
    refuse_failed([passed, warned])
    failed = [Check("gpu", "failed", "none is there.", "Buy one."), Check("seeds", "failed", "few", "More.")]
    with pytest.raises(RefusedError, match=r"^gpu: none is there\. Buy one\. \(1 more failed"):
        refuse_failed([passed, warned, *failed])


def test_a_sweep_that_can_run_passes_everything_and_leaves_no_trace(settings, workplace):
    checks = preflight.before_ray(tiny({"a": {}, "b": {"x": 0.25}}), settings)
    assert {check.name: check.state for check in checks} == dict.fromkeys(
        ("tracking", "storage", "data", "disk", "seeds", "gpu"), "ok"
    )
    assert list(workplace.iterdir()) == []


def test_results_of_a_job_may_not_lie_in_its_copy_of_the_sources(workplace, monkeypatch):
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    check = preflight.check_storage(read_settings())
    assert check.state == "failed" and "PONDERAY_RUNS" in check.remedy
    monkeypatch.setenv("PONDERAY_STORAGE", "memory://bucket/runs")
    assert preflight.check_storage(read_settings()).state == "ok"
    monkeypatch.delenv("PONDERAY_STORAGE")
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace.parent / "shared"))
    assert preflight.check_storage(read_settings()).state == "ok"


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_no_file_in_the_place_of_the_store_is_told_with_its_remedy(workplace, is_folder):
    file = workplace / "mlflow.db"
    file.mkdir() if is_folder else file.symlink_to(file.name)
    check = preflight.check_tracking(replace(read_settings(), tracking_uri=f"sqlite:///{file}"))
    assert check.state == "failed" and ("a folder" if is_folder else "a link to itself") in check.found
    assert check.remedy.startswith("`ponderay repair`")


def test_a_file_is_given_longer_than_a_server_for_it_is_not_away(tmp_path, monkeypatch):
    """On a busy machine a new SQLite file took more than the 15 s that a server has."""
    assert store.FILE_LIMIT_S > store.TIME_LIMIT_S
    monkeypatch.setattr(store, "_ask", lambda uri, said: None)
    monkeypatch.setattr(store, "FILE_LIMIT_S", 0.25)
    monkeypatch.setattr(store, "TIME_LIMIT_S", 0.125)
    assert store.fault(f"sqlite:///{tmp_path}/mlflow.db") == "no answer within 0.25 s"
    assert store.fault("http://127.0.0.1:9") == "no answer within 0.125 s"
