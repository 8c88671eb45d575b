"""A tracking server on PostgreSQL: whom it lets in, what leaves its folder, and sweeps recorded on it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.cli.status_of_all import show_studies
from orchestrator.console.printing import Format
from orchestrator.environment.credentials import Credentials
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.put_away import archive
from orchestrator.server.app import is_served
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_study
from orchestrator.tracking.store import fault
from tests.integration.put_away import put_away_and_bring_back
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import RUNS_OF_A_AND_B, starts, statuses
from trainables.errors import InputError

API = "/api/2.0/mlflow"
PROXY = "/api/2.0/mlflow-artifacts/artifacts"
PROTECTED = (
    ("GET", "/"),
    ("GET", "/signup"),
    ("GET", "/version"),
    ("GET", "/graphql"),
    ("GET", "/api/3.0/mlflow/server-info"),
    ("GET", f"{API}/experiments/search?max_results=1"),
    ("POST", f"{API}/runs/create"),
    ("POST", f"{API}/users/create"),
    ("GET", "/get-artifact?path=x&run_uuid=y"),
    ("GET", f"{PROXY}?path="),
    ("GET", f"{PROXY}/x"),
    ("PUT", f"{PROXY}/x"),
    ("DELETE", f"{PROXY}/x"),
    ("GET", f"/ajax-api/{PROXY.removeprefix('/api/')}/x"),
)
ALL_ROUTES = """
import json, os, re, sys
from pathlib import Path
from orchestrator.server.environment import environment

folder = Path(sys.argv[1])
stores = (f"sqlite:///{folder}/mlflow.db", f"sqlite:///{folder}/users.db", str(folder / "artifacts"))
os.environ |= {**environment(folder, *stores, []), "_MLFLOW_SGI_NAME": "uvicorn"}
from orchestrator.server.app import create_app
from orchestrator.tracking.mlflow_internals import flask_app

paths = create_app().openapi()["paths"]
own = {(method.upper(), path) for path, methods in paths.items() for method in methods}
flask = {(method, one.rule) for one in flask_app().url_map.iter_rules() for method in one.methods - {"OPTIONS", "HEAD"}}
print(json.dumps(sorted({(method, re.sub("<[^>]*>|{[^}]*}", "x", path)) for method, path in own | flask})))
"""
STRANGERS = {
    "wrong password": Credentials("ponderay", "wrong"),
    "admin password1234": Credentials("admin", "password1234"),
    "ponderay password1234": Credentials("ponderay", "password1234"),
}
OUTSIDE = (
    "../credentials", "..%2fcredentials", "%2e%2e/credentials", "%252e%252e%252fcredentials", "a/../../credentials",
    "/etc/passwd", "%2fetc%2fpasswd", "..%5ccredentials", "..%00/credentials", "file:///etc/passwd",
)  # fmt: skip
ELSEWHERE = (
    "/etc", "etc", "file:///etc", "s3://another-bucket/x", "mlflow-artifacts://other.example/x",
    "mlflow-artifacts:/../..", "mlflow-artifacts:/%2e%2e",
)  # fmt: skip


def test_strangers_learn_that_it_lives_and_nothing_else(tracking_server):
    found = {path: tracking_server.ask(method, path, {} if method == "POST" else None)[0] for method, path in PROTECTED}
    assert found == {path: 401 for _, path in PROTECTED}
    assert tracking_server.ask("GET", "/health")[0] == 200


@pytest.mark.slow
def test_of_all_routes_of_mlflow_a_stranger_is_let_in_to_none(tracking_server, tmp_path):
    """What a later MLflow adds is asked too."""
    command = [sys.executable, "-c", ALL_ROUTES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    routes = [(method, path) for method, path in json.loads(done.stdout.splitlines()[-1]) if path != "/health"]
    known = {path for _, path in routes}
    assert len(routes) > 400 and {"/graphql", "/api/3.0/mlflow/server-info", "/static-files/x"} <= known
    found = {(method, path): tracking_server.ask(method, path)[0] for method, path in routes}
    assert set(found.values()) == {401, 404}
    assert all(status == 401 for (method, path), status in found.items() if is_served(method, path))
    user = tracking_server.user
    assert tracking_server.ask("GET", "/api/3.0/mlflow/server-info", user=user)[0] == 200


def test_the_queries_of_mlflows_pages_are_answered_and_what_is_none_is_refused(tracking_server):
    user = tracking_server.user
    made = tracking_server.ask("POST", f"{API}/runs/create", {"experiment_id": "0", "run_name": "asked"}, user)[1]
    query = "query GetRun($data: MlflowGetRunInput!) { mlflowGetRun(input: $data) { run { info { runName } } } }"
    asked = {"operationName": "GetRun", "variables": {"data": {"runId": json.loads(made)["run"]["info"]["run_id"]}}}
    status, answer = tracking_server.ask("POST", "/graphql", {"query": query, **asked}, user)
    assert (status, json.loads(answer)["data"]["mlflowGetRun"]["run"]) == (200, {"info": {"runName": "asked"}})
    for body in ({}, "no object", {"query": 3}, {"query": "{"}, {"query": query, "variables": 3}):
        status, answer = tracking_server.ask("POST", "/graphql", body, user)
        assert status == 400 and "query" in json.loads(answer)["message"], body
    assert tracking_server.ask("GET", "/graphql", user=user)[0] == 400


def test_of_a_stranger_no_body_is_taken_and_of_a_user_none_that_fills_the_memory(tracking_server):
    """Announced alone, and answered at once: nothing of the body is ever sent."""
    sent = "Content-Type: application/json\r\nContent-Length: 2300000000\r\n"
    user = f"Authorization: {tracking_server.authorization}\r\n"
    batch, artifact = f"POST {API}/runs/log-batch", f"PUT {PROXY}/1/x/artifacts/model.pt"
    found = {line: tracking_server.status(line, sent) for line in (batch, artifact, "POST /health", "POST /graphql")}
    assert found == {batch: 401, artifact: 401, "POST /health": 400, "POST /graphql": 401}
    assert tracking_server.status(batch, sent + user) == 413
    assert tracking_server.status(batch, f"Transfer-Encoding: chunked\r\n{user}") == 411


@pytest.mark.parametrize("line", ["GET /", f"GET {API}/experiments/search?max_results=1", f"GET {PROXY}/x"])
def test_headers_that_are_none_are_refused_in_a_sentence_and_leave_nothing_in_the_log(tracking_server, line):
    log = tracking_server.kept / "server.log"
    before = log.stat().st_size
    for header in ("Bearer x", "Basic %%%", "Basic \xa4\xa4", "Basic //8=", "Basic AGE6Yg=="):
        assert tracking_server.status(line, f"Authorization: {header}\r\n") == 401, header
    user = f"Authorization: {tracking_server.authorization}\r\n"
    assert tracking_server.status(line, "X-MLFLOW-WORKSPACE: x\r\n") == 401
    assert tracking_server.status(line, f"X-MLFLOW-WORKSPACE: x\r\n{user}") == 400
    assert tracking_server.status(line, f"Origin: https://m\xfcller\r\n{user}") == 400
    assert log.read_bytes()[before:] == b""


def test_an_artifact_may_be_larger_than_any_other_body_and_may_be_empty(client, tmp_path):
    large, empty = tmp_path / "large", tmp_path / "empty"
    large.write_bytes(bytes(17 << 20))
    empty.write_bytes(b"")
    server = MlflowClient(client.uri)
    run_id = server.create_run("0").info.run_id
    for path in (large, empty):
        server.log_artifact(run_id, str(path))
    assert [(file.path, file.file_size or 0) for file in server.list_artifacts(run_id)] == [
        ("empty", 0),
        ("large", 17 << 20),
    ]


@pytest.mark.parametrize("user", STRANGERS.values(), ids=STRANGERS)
def test_a_wrong_password_opens_nothing(tracking_server, user):
    paths = ("/", f"{API}/experiments/search?max_results=1", f"{PROXY}/x")
    assert [tracking_server.ask("GET", path, user=user)[0] for path in paths] == [401] * 3


def test_its_own_user_is_let_in_and_a_page_of_a_stranger_is_not(tracking_server):
    assert tracking_server.ask("GET", "/", user=tracking_server.user)[0] == 200
    hosts = {
        f"127.0.0.1:{tracking_server.port}": 200,
        "localhost:6000": 200,
        "evil.example": 403,
        "127.0.0.1.evil": 403,
    }
    path = f"{API}/experiments/search?max_results=1"
    found = {host: tracking_server.ask("GET", path, user=tracking_server.user, host=host)[0] for host in hosts}
    assert found == hosts


def test_its_own_pages_may_change_what_is_recorded_and_a_strangers_may_not(tracking_server):
    own = f"lab.example:{tracking_server.port}"
    expected = {
        (own, f"http://{own}"): 200,
        ("lab.example", "https://lab.example"): 200,
        ("lab.example", "http://lab.example"): 403,
        (own, "http://evil.example"): 403,
    }
    path = "/ajax-api/2.0/mlflow/experiments/search"
    asked = {pair: {"body": {"max_results": 1}, "host": pair[0], "origin": pair[1]} for pair in expected}
    found = {pair: tracking_server.ask("POST", path, user=tracking_server.user, **asked[pair])[0] for pair in expected}
    assert found == expected


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_folder_of_artifacts(tracking_server, path):
    user, kept = tracking_server.user, tracking_server.kept
    status, body = tracking_server.ask("GET", f"{PROXY}/{path}", user=user)
    assert status >= 400 and user.password.encode() not in body and b"root:" not in body
    tracking_server.ask("PUT", f"{PROXY}/{path}.planted", b"planted", user)
    outside = [file for file in kept.rglob("*.planted") if kept / "artifacts" not in file.parents]
    assert outside == [] and not Path("/etc/passwd.planted").exists()
    assert kept.joinpath("credentials").is_file()


@pytest.mark.parametrize("place", ELSEWHERE)
def test_nobody_names_another_place_for_artifacts(tracking_server, place):
    """MLflow would read and write there as the server's user, and with the server's keys."""
    made = {"name": f"at {place}", "artifact_location": place}
    doubled = json.dumps({"name": made["name"], "artifactLocation": place})  # JSON in JSON: MLflow reads that too
    version = {"name": "model", "source": place}
    tracking_server.ask("POST", f"{API}/registered-models/create", {"name": "model"}, tracking_server.user)
    for path, body in (("experiments", made), ("experiments", doubled), ("model-versions", version)):
        for prefix in (API, "/ajax-api/2.0/mlflow"):
            status, answer = tracking_server.ask("POST", f"{prefix}/{path}/create", body, tracking_server.user)
            assert status == 400, (path, prefix, answer)


def test_nothing_but_tracking_is_served_to_its_users(tracking_server):
    """The assistant would run shell commands, the gateway sign with the server's keys, a trace's tag name a file."""
    user = tracking_server.user
    model = {"selected": True, "base_url": "http://127.0.0.1:1", "model": "m", "permissions": {"full_access": True}}
    asked = {
        ("PUT", "/ajax-api/3.0/mlflow/assistant/config"): {"providers": {"ollama": model}},
        ("POST", "/ajax-api/3.0/mlflow/assistant/message"): {"message": "hello"},
        ("POST", "/api/3.0/mlflow/gateway/secrets/create"): {"secret_name": "x"},
        ("POST", "/api/3.0/mlflow/traces"): {"trace": {}},
        ("POST", "/v1/traces"): {},
    }
    found = {one: tracking_server.ask(*one, body, user)[0] for one, body in asked.items()}
    assert found == dict.fromkeys(asked, 404)


def test_what_lies_in_the_servers_own_store_may_be_named(tracking_server):
    user = tracking_server.user
    inside = {"name": "inside", "artifact_location": "mlflow-artifacts:/inside"}
    status, answer = tracking_server.ask("POST", f"{API}/experiments/create", inside, user)
    assert status == 200, answer
    run = json.loads(tracking_server.ask("POST", f"{API}/runs/create", json.loads(answer), user)[1])["run"]["info"]
    assert tracking_server.ask("POST", f"{API}/registered-models/create", {"name": "own"}, user)[0] == 200
    version = {"name": "own", "source": f"{run['artifact_uri']}/model", "run_id": run["run_id"]}
    status, answer = tracking_server.ask("POST", f"{API}/model-versions/create", version, user)
    assert status == 200, answer


@pytest.mark.slow
def test_only_the_owner_can_read_what_is_secret_and_nothing_secret_is_in_arguments(tracking_server):
    kept = tracking_server.kept
    secrets = [
        tracking_server.user.password,
        *(kept.joinpath(n).read_text() for n in ("secret_key", "postgres/password")),
    ]
    assert all(len(secret) > 30 for secret in secrets)
    home = tracking_server.folder / "home"
    holders = {p for p in [*kept.rglob("*"), *home.rglob("*")] if p.is_file() and any(s in _text(p) for s in secrets)}
    names = {"credentials", "secret_key", "authentication.ini", "postgres/password"}
    assert holders == {kept / name for name in names} | {home / ".mlflow" / "credentials"}
    assert {file.stat().st_mode & 0o777 for file in holders} == {0o600}
    processes = tracking_server.processes()
    assert len(processes) >= 4  # the one above, PostgreSQL, and MLflow's two
    arguments = " ".join(argument for process in processes for argument in process.cmdline())
    assert "orchestrator.server.app" in arguments and not any(secret in arguments for secret in secrets)


@pytest.mark.slow
def test_a_sweep_is_recorded_once_with_its_artifacts_and_read_back(client, tmp_path):
    sweep = tiny({"a": {}, "b": {"x": 0.25}}, name="tiny.served")
    for _ in range(2):
        outcome = run_quietly(sweep)
        assert (outcome.num_failed, outcome.num_unwritten) == (0, 0)
    assert statuses("tiny.served") == dict.fromkeys(["a", "b", *RUNS_OF_A_AND_B], "FINISHED")
    assert set(starts().values()) == {1}
    tracking = Tracking(read_settings())
    assert [dict(r.metrics) for r in tracking.read_study("tiny.served").replicates] == [
        dict(r.metrics) for r in outcome.replicates
    ]
    note = tmp_path / "note.txt"
    note.write_text("kept")
    tracking.store_figures("tiny.served", [note])
    run_id = tracking.sweep_run("tiny.served")
    fetched = MlflowClient(client.uri).download_artifacts(run_id, "figures/note.txt", str(tmp_path))
    assert Path(fetched).read_text() == "kept"
    assert [file.read_text() for file in (client.kept / "artifacts").rglob("note.txt")] == ["kept"]
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 5 and not any(client.user.password in _text(file) for file in written)


@pytest.mark.slow
def test_results_are_put_away_brought_back_and_renamed_on_a_server(client, tmp_path, monkeypatch):
    sweep = tiny({"a": {}, "b": {"x": 0.25}}, name="tiny.kept")
    run_quietly(sweep)
    put_away_and_bring_back(sweep)
    before = starts()
    monkeypatch.setenv("PONDERAY_RUNS", str(tmp_path / "another_machine"))
    assert len(load_study("tiny.renamed", read_settings()).replicates) == 4  # by the server's copy
    monkeypatch.delenv("PONDERAY_RUNS")
    assert run_quietly(replace(sweep, name="tiny.renamed")).num_failed == 0 and starts() == before


def test_a_wrong_password_is_one_line_at_the_start(client, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "wrong")
    assert "401" in fault(client.uri) or "password" in fault(client.uri)
    with pytest.raises(InputError) as raised:
        run_quietly(tiny({"a": {}}, name="tiny.refused"))
    assert "\n" not in str(raised.value) and not list(tmp_path.rglob("journal.jsonl"))
    assert "does not know this user with this password" in str(raised.value)
    with pytest.raises(InputError, match="does not know this user with this password"):
        show_studies(read_settings(), Format.table)  # of which nobody may say that there is no study


@pytest.mark.slow
def test_a_further_user_reads_and_changes_nothing_of_others(client, workplace, monkeypatch):
    reader = Credentials("reader", "only reads here")
    made = {"username": reader.user, "password": reader.password}
    assert client.ask("POST", f"{API}/users/create", made, client.user)[0] == 200
    experiment = json.loads(client.ask("POST", f"{API}/experiments/create", {"name": "shown"}, client.user)[1])
    new_run = {**experiment, "start_time": 1}
    run = json.loads(client.ask("POST", f"{API}/runs/create", new_run, client.user)[1])["run"]["info"]["run_id"]
    assert client.ask("GET", f"{API}/runs/get?run_id={run}", user=reader)[0] == 200
    metric = {"run_id": run, "key": "x", "value": 1, "timestamp": 1, "step": 0}
    refused = {
        f"{API}/runs/log-metric": metric,
        f"{API}/runs/create": new_run,
        f"{API}/runs/delete": {"run_id": run},
        f"{API}/users/create": {"username": "third", "password": "let in by a reader"},
    }
    assert {path: client.ask("POST", path, body, reader)[0] for path, body in refused.items()} == dict.fromkeys(
        refused, 403
    )
    run_quietly(tiny({"a": {}}, name="tiny.shown", seeds=(1,)))
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", reader.user)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", reader.password)
    assert load_study("tiny.shown", read_settings()).replicates
    for refused in (
        lambda: run_quietly(tiny({"b": {}}, name="tiny.shown")),
        lambda: archive("tiny.shown", read_settings()),
    ):
        with pytest.raises(InputError, match="this user may read here, but not change it"):
            refused()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
