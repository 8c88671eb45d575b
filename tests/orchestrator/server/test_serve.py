"""The life of a tracking server: how it starts, ends and is found again, and what outlives it."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.write_queue import WriteQueue
from tests.integration.sweeps import run_quietly, tiny
from tests.servers import Server, arguments_of_all, older_store, older_users, unmade_server
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow

say_away = WriteQueue._say_away


def be_client(server: Server, monkeypatch: pytest.MonkeyPatch) -> MlflowClient:
    for name, value in server.client().items():
        monkeypatch.setenv(name, value)
    return MlflowClient(server.uri)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Server]:
    """One whose databases are made once; each test starts it, or finds it started, and may end or kill it."""
    with unmade_server() as server:
        yield server


@contextlib.contextmanager
def in_foreground(server: Server) -> Iterator:
    """`ponderay serve`, once it has said all."""
    if server.processes():
        server.stop()
    with server.open() as process:
        try:
            while "password" not in process.stdout.readline():
                assert process.poll() is None, process.stderr.read()
            yield process
        finally:
            process.kill()


def wait_until_gone(server: Server) -> None:
    deadline = time.monotonic() + LIMIT_S
    while server.processes() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert server.processes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_in_the_foreground_it_ends_in_order_with_all_that_it_started(lasting, number):
    with in_foreground(lasting) as process:
        assert len(lasting.processes()) == 4
        os.killpg(process.pid, number)
        assert process.wait(LIMIT_S) == 0
    assert lasting.processes() == []


def test_where_mlflow_ends_by_itself_nothing_is_left_and_it_says_so(lasting):
    with in_foreground(lasting) as process:
        (mlflow,) = [p for p in lasting.processes() if "orchestrator.server.process" in p.cmdline()]
        mlflow.kill()
        assert process.wait(LIMIT_S) == 1
        assert "The server ended unexpectedly" in process.stderr.read()
    assert lasting.processes() == []


def test_where_postgresql_ends_by_itself_it_ends_too_and_serves_again_when_started(lasting):
    with in_foreground(lasting) as process:
        (first,) = [p for p in lasting.processes() if f"{lasting.kept}/postgres/data" in p.cmdline()]
        first.kill()
        assert process.wait(LIMIT_S) == 1
        assert f"PostgreSQL in {lasting.kept}/postgres has ended." in process.stdout.read().splitlines()
    assert lasting.processes() == []
    lasting.start()


@pytest.mark.parametrize("all_of_it", [False, pytest.param(True, marks=pytest.mark.long)])
def test_after_it_was_killed_the_next_start_serves_what_was_recorded(lasting, monkeypatch, all_of_it):
    lasting.start()
    experiment = be_client(lasting, monkeypatch).create_experiment(f"kept {all_of_it}")
    password, processes = lasting.user, lasting.processes()
    killed = processes if all_of_it else [p for p in processes if "serve" in p.cmdline()]
    for process in killed:
        process.kill()
    psutil.wait_procs(killed, LIMIT_S)  # on a busy machine they have their port for a moment longer
    lasting.start()
    assert MlflowClient(lasting.uri).get_experiment_by_name(f"kept {all_of_it}").experiment_id == experiment
    assert lasting.user == password
    assert len([p for p in lasting.processes() if "uvicorn" in p.cmdline()]) == 1


def test_of_two_started_in_the_background_at_once_one_serves_till_a_command_ends_it(lasting):
    """By the SIGTERM that also ends one in the foreground."""
    if lasting.processes():
        lasting.stop()
    with lasting.open("--background") as one, lasting.open("--background") as other:
        said = [process.communicate(timeout=LIMIT_S)[0] for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0]
    assert sorted("already runs" in text for text in said) == [False, True]
    assert all(f"PONDERAY_TRACKING_URI={lasting.uri}" in text for text in said)
    assert len([p for p in lasting.processes() if "serve" in p.cmdline()]) == 1
    refused = lasting.call()
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "already runs" in refused.stderr
    assert lasting.call("--stop").returncode == 0
    wait_until_gone(lasting)
    stopped = lasting.call("--stop")
    assert stopped.returncode == 0 and "No tracking server" in stopped.stdout


def test_what_keeps_it_from_starting_is_one_line(own_server, monkeypatch):
    own_server.variables["PONDERAY_SERVER_STORE"] = "postgresql://me:sesame@127.0.0.1:1/mlflow"
    refused = own_server.call("--background")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "tracking store cannot be used" in refused.stderr and "sesame" not in refused.stderr
    assert own_server.processes() == []


def test_databases_of_an_older_mlflow_are_upgraded_with_what_they_hold(own_server, monkeypatch):
    from orchestrator.server.folder import ServerFolder

    folder = ServerFolder(own_server.kept)
    folder.make()
    postgres = folder.postgres()
    postgres.start()
    revisions = older_store(postgres.uri("mlflow"), "kept"), older_users(postgres.uri("mlflow_users"))
    postgres.stop()
    own_server.start()
    log = (own_server.kept / "server.log").read_text()
    assert all(revision in log for revision in revisions) and own_server.user.password not in log
    assert be_client(own_server, monkeypatch).get_experiment_by_name("kept").experiment_id == "7"


def test_another_postgresql_serves_too_and_artifacts_lie_in_a_bucket_that_clients_know_nothing_of(
    own_server, postgres, tmp_path, monkeypatch
):
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        store = postgres.uri("mlflow").replace("+psycopg2", "")
        own_server.variables |= keys | {"MLFLOW_S3_ENDPOINT_URL": endpoint, "PONDERAY_SERVER_STORE": store}
        own_server.options += ["--artifacts", "s3://lab/of/runs"]
        refused = own_server.call("--background")
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "s3://lab/of/runs" in refused.stderr
        bucket = boto3.session.Session("key", "secret", region_name="us-east-1").client("s3", endpoint_url=endpoint)
        bucket.create_bucket(Bucket="lab")
        own_server.start()
        assert (postgres.folder / "password").read_text() not in arguments_of_all()
        assert not (own_server.kept / "postgres").exists()
        assert (own_server.kept / "users.db").stat().st_mode & 0o077 == 0
        client = be_client(own_server, monkeypatch)
        run_id = client.create_run(client.create_experiment("far")).info.run_id
        client.log_text(run_id, "kept", "figures/note.txt")
        (held,) = bucket.list_objects_v2(Bucket="lab")["Contents"]
        assert held["Key"].startswith("of/runs/") and held["Key"].endswith("figures/note.txt")
        fetched = client.download_artifacts(run_id, "figures/note.txt", str(tmp_path))
        assert Path(fetched).read_text() == "kept"
    finally:
        server.stop()


def test_a_sweep_goes_on_while_the_server_is_away_and_nothing_is_lost(lasting, tmp_path, monkeypatch):
    lasting.start()
    be_client(lasting, monkeypatch)
    monkeypatch.chdir(tmp_path)
    moments, go = [], Path("go").absolute()

    def go_away() -> None:
        """Once it trains, for as long as nobody has noticed."""
        until(lambda: any(Path("runs/replicates").rglob("step_*.pt")))
        lasting.stop()
        go.touch()
        until(lambda: moments)
        lasting.start()
        moments.append("back")

    away = threading.Thread(target=go_away)
    away.start()
    monkeypatch.setattr(WriteQueue, "_say_away", lambda self, error: (moments.append("noticed"), say_away(self, error)))
    outcome = run_quietly(tiny({"a": {"go": go}, "b": {"x": 0.25, "sleep_s": 0.5}}, name="tiny.outage"))
    away.join()
    assert moments[0] == "noticed" and "back" in moments
    assert (outcome.num_failed, outcome.num_unwritten) == (0, 0)
    client = MlflowClient(lasting.uri)
    experiment = client.get_experiment_by_name("tiny.outage").experiment_id
    runs = client.search_runs([experiment], "tags.`ponderay.kind` = 'replicate'")
    assert sorted(run.info.status for run in runs) == ["FINISHED"] * 4
    history = [len(client.get_metric_history(run.info.run_id, "total")) for run in runs]
    assert history == [4] * 4
    recorded = Tracking(read_settings()).read_study("tiny.outage").replicates
    assert [dict(r.metrics) for r in recorded] == [dict(r.metrics) for r in outcome.replicates]
