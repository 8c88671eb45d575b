"""What PostgreSQL adds: four drivers at once, a server that crashes, connections that are cut, and wrong addresses."""

import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import optuna
import psycopg2
import pytest
from optuna.storages import RDBStorage
from rich.console import Console

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.machine.network import free_port
from orchestrator.results.outcome import Outcome
from orchestrator.results.study import Replicate
from orchestrator.run import run_here
from orchestrator.scheduler.optuna_search import SearchedConditions
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.store import fault
from search_spaces.sweep import Sweep
from tests.integration import tiny as trainable
from tests.integration.postgres_writer import NUM_WRITERS
from tests.integration.sweeps import REFUSED, run_quietly, searched, tiny
from tests.integration.test_without_ray import ROOT, RUNS_OF_A_AND_B, starts, statuses
from tests.postgres import PostgresStore, execute
from tests.waiting import LIMIT_S, until
from trainables.errors import InputError


@pytest.fixture
def databases(workplace: Path, postgres_store: PostgresStore, monkeypatch) -> PostgresStore:
    """In force for tracking and for searches."""
    monkeypatch.setenv("PONDERAY_TRACKING_URI", postgres_store.tracking_uri)
    monkeypatch.setenv("PONDERAY_SEARCH_URI", postgres_store.search_uri)
    return postgres_store


def recorded(name: str) -> Sequence[Replicate]:
    return Tracking(read_settings()).read_study(name).replicates


def metrics(replicates: Sequence[Replicate]) -> dict[tuple[float, int], dict[str, float]]:
    """Of each by its setting, which the cost tells, and its seed."""
    assert {r.state for r in replicates} == {"complete"}
    return {(r.metrics["cost@plain"], r.seed): dict(r.metrics) for r in replicates}


def alone(replicates: Sequence[Replicate], monkeypatch) -> dict[tuple[float, int], dict[str, float]]:
    """What they come to in a driver and a store of their own."""
    with monkeypatch.context() as patch:
        patch.setenv("PONDERAY_RUNS", str(Path("alone").absolute()))
        for name in ("PONDERAY_TRACKING_URI", "PONDERAY_SEARCH_URI"):
            patch.delenv(name)
        return metrics(run_quietly(tiny({f"{x}": {"x": x} for x, _ in metrics(replicates)})).replicates)


def writers(kind: str, go: Path) -> "subprocess.Popen[str]":
    """Four drivers; what they say goes to the file `said`."""
    command = [sys.executable, "-m", "tests.integration.postgres_writer", kind, str(go)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PONDERAY_RUNS": str(Path("runs").absolute())}
    with Path("said").open("w") as said:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True)  # noqa: S603


@pytest.mark.slow
def test_four_drivers_on_empty_databases_make_the_tables_once_the_prerequisite_once_and_lose_nothing(
    databases, monkeypatch
):
    number = databases.number
    empty = [f"{name}_{number}" for name in ("mlflow", "optuna")]
    execute(databases.server, *(f"DROP DATABASE {name} WITH (FORCE)" for name in empty))
    execute(databases.server, *(f"CREATE DATABASE {name}" for name in empty))
    codes, _ = writers("own", Path("go")).communicate(timeout=LIMIT_S)
    assert codes.split() == ["0"] * NUM_WRITERS, Path("said").read_text()
    assert len(starts()) == 1 + NUM_WRITERS * 2 * 2
    assert set(starts().values()) == {1}
    assert set(statuses("prerequisites").values()) == {"FINISHED"} and len(statuses("prerequisites")) == 1
    found: list[Replicate] = []
    for number in range(NUM_WRITERS):
        found += recorded(f"tiny.{number}")
        assert set(statuses(f"tiny.{number}").values()) == {"FINISHED"}
        assert len(statuses(f"tiny.{number}")) == 2 + 2 * 2
    assert metrics(found) == alone(found, monkeypatch)


@pytest.mark.slow
def test_of_four_drivers_of_one_sweep_one_runs_it_and_when_it_is_killed_the_next_goes_on(databases, monkeypatch):
    together = writers("same", Path("never").absolute())
    refused = re.compile(r"tiny.sweep is already run by process (\d+) on ")
    until(lambda: len(refused.findall(Path("said").read_text())) == NUM_WRITERS - 1)
    (winner,) = map(int, set(refused.findall(Path("said").read_text())))
    until(lambda: any(path.name.startswith("step_000003") for path in Path("runs/replicates").rglob("*.pt")))
    until(lambda: "RUNNING" in statuses("tiny.sweep").values())  # the store hears of it later
    os.kill(winner, signal.SIGKILL)
    codes, _ = together.communicate(timeout=LIMIT_S)
    assert sorted(codes.split()) == sorted(["-9", *[str(REFUSED)] * (NUM_WRITERS - 1)])
    assert "RUNNING" in statuses("tiny.sweep").values()
    outcome = run_quietly(tiny({"a": {}, "b": {"x": 0.25}}))
    assert statuses("tiny.sweep") == dict.fromkeys(["a", "b", *RUNS_OF_A_AND_B], "FINISHED")
    assert sorted(starts(Path("runs/replicates")).values()) == [1, 1, 1, 2]
    assert metrics(outcome.replicates) == metrics(recorded("tiny.sweep")) == alone(outcome.replicates, monkeypatch)


def during(epoch: int, happen, monkeypatch) -> list[int]:
    """Lets something happen at this epoch of every replicate; the list says how often it has."""
    times, strike = [], trainable._strike

    def striking(config, now):
        if now == epoch:
            times.append(1)
            happen()
        strike(config, now)

    monkeypatch.setattr(trainable, "_strike", striking)
    return times


def told_of(sweep: Sweep) -> tuple[Outcome, str]:
    """Runs it; also what a log would hold."""
    console = Console(file=io.StringIO(), width=300)
    return run_here(sweep, read_settings(), console, accept_code=False), console.file.getvalue()


def check_search(outcome: Outcome, monkeypatch) -> None:
    """All of it is there once, and Optuna has the means."""
    assert (outcome.num_failed, outcome.num_unwritten) == (0, 0)
    assert set(starts().values()) == {1}
    assert set(statuses("tiny.search").values()) == {"FINISHED"}
    assert metrics(outcome.replicates) == metrics(recorded("tiny.search")) == alone(outcome.replicates, monkeypatch)
    store = RDBStorage(read_settings().search_store)
    (name,) = optuna.get_all_study_names(store)
    trials = [t for t in optuna.load_study(study_name=name, storage=store).trials if t.params]
    means = {t.params["x"]: t.values[0] for t in trials}
    found = metrics(outcome.replicates)
    assert means == {x: (found[x, 1]["error@plain"] + found[x, 2]["error@plain"]) / 2 for x, _ in found}


def check_through_a_crash(databases, away_s: float, monkeypatch) -> None:
    """A search during which the database crashes, and starts again `away_s` later."""

    def crash():
        if len(times) == 2:
            databases.crash()
            threading.Timer(away_s, databases.server.start).start()

    times = during(2, crash, monkeypatch)
    outcome, log = told_of(searched(3))
    assert "The tracking store is unavailable" in log and "The tracking store is available again" in log
    check_search(outcome, monkeypatch)


@pytest.mark.slow
def test_a_database_that_crashes_and_comes_back_gets_everything(databases, monkeypatch):
    """For tracking and for the search; while it is away the work goes on."""
    check_through_a_crash(databases, 2.0, monkeypatch)


@pytest.mark.slow
def test_connections_that_are_cut_again_and_again_lose_and_double_nothing(databases, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.01,))
    is_over = threading.Event()

    def cut():
        while not is_over.wait(0.1):
            databases.cut_connections()

    cutting = threading.Thread(target=cut)
    during(1, lambda: cutting.ident or cutting.start(), monkeypatch)
    try:
        outcome, _ = told_of(searched(3))
    finally:
        is_over.set()
        cutting.join()
    check_search(outcome, monkeypatch)


@pytest.mark.slow
@pytest.mark.long
def test_a_database_that_crashes_behind_a_tracking_server_gets_everything(databases, tmp_path, monkeypatch):
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    known = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_BACKEND_STORE_URI": databases.tracking_uri}
    places = ["--artifacts-destination", str(tmp_path / "files")]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(  # noqa: S603
            [*command, *places], env=os.environ | known, stdout=log, stderr=log, start_new_session=True
        )
    try:
        monkeypatch.setenv("PONDERAY_TRACKING_URI", f"http://127.0.0.1:{port}")
        until(lambda: not fault(read_settings().tracking_uri))
        check_through_a_crash(databases, 12.0, monkeypatch)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wrong_addresses(uri: str) -> dict[str, str]:
    """By what must be told of each."""
    password = urlsplit(uri).password
    return {
        "password authentication failed": uri.replace(password, "sesame"),
        "does not exist": uri + "_not_there",
        "Connection refused": uri.replace(str(urlsplit(uri).port), "1"),
        "could not translate host name": uri.replace(password, "open@sesame"),
        "not a valid address": uri.replace(str(urlsplit(uri).port), "port"),
    }


def test_a_wrong_address_is_tried_once_and_told_in_a_line_without_passwords(databases, monkeypatch):
    opened = [(track, uri) for uri in wrong_addresses(databases.tracking_uri).items()]
    opened += [(search, uri) for uri in wrong_addresses(databases.search_uri).items()]
    tried, connect = [], psycopg2.connect
    monkeypatch.setattr(psycopg2, "connect", lambda *place, **o: tried.append(o) or connect(*place, **o))
    for open_store, (told, uri) in opened:
        tried.clear()
        with pytest.raises(InputError, match=told) as raised:
            open_store(uri)
        assert len(tried) <= 1
        for secret in ("sesame", urlsplit(databases.tracking_uri).password, "\n"):
            assert secret not in str(raised.value)


def track(uri: str) -> None:
    Tracking(Settings(Path("runs").absolute(), uri))


def search(uri: str) -> None:
    SearchedConditions(searched(1), "tiny", "@plain", uri, Path("runs/optuna.lock"), 1, lambda _: None)


def test_mlflows_own_database_is_refused_for_searches(databases):
    with pytest.raises(InputError, match="needs its own database"):
        search(databases.tracking_uri)


def test_the_password_is_in_no_file_and_artifacts_lie_with_the_runs(databases):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    recorded("tiny.sweep")
    password = urlsplit(databases.tracking_uri).password.encode()
    assert [path for path in Path().rglob("*") if path.is_file() and password in path.read_bytes()] == []
    experiment = Tracking(read_settings()).find_experiment("tiny.sweep")
    assert experiment.artifact_location == Path("runs/artifacts/tiny.sweep").absolute().as_uri()
