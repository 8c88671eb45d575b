"""Each door made to stand open and closed, and what is said of it."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator.checks import exposure
from orchestrator.checks.exposure import EXPERIMENTS, JOBS, ListeningSocket, check_listening_socket, program, status_of
from orchestrator.checks.exposure import listeners as real_listeners
from orchestrator.cluster import address as cluster_address
from orchestrator.cluster import token as ray_token
from tests.orchestrator.checks.test_sweep import closed_port

TOKEN = "a1b2" * 16
pytestmark = pytest.mark.usefixtures("bare_home")


class Answering(BaseHTTPRequestHandler):
    """Answers every request as the server is told to."""

    def do_GET(self) -> None:
        status, kind = self.server.answer
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Location", "/api/elsewhere")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def serving(status: int) -> Iterator[HTTPServer]:
    """A server on loopback that gives one answer to all."""
    server = HTTPServer(("127.0.0.1", 0), Answering)
    server.answer, server.asked = (status, "application/json"), []
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_a_plain_laptop_is_one_row(settings):
    assert [(check.name, check.state) for check in exposure.check_exposure(settings)] == [("exposure", "ok")]
    assert exposure.before_run(settings) == []


# Servers


def test_a_node_of_an_open_cluster_is_named(monkeypatch):
    monkeypatch.setattr(cluster_address, "other_instances", lambda: ["10.0.0.1:6379", "127.0.0.1:1"])
    monkeypatch.setattr(ray_token, "ask", lambda address: "let in")
    (check,) = exposure.check_nodes()
    assert check.state == "warning" and "10.0.0.1:6379" in check.found
    monkeypatch.setattr(ray_token, "ask", lambda address: "turned away")
    assert list(exposure.check_nodes()) == []


def test_a_stranger_shows_nothing_and_follows_nothing(monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    with serving(200) as server:
        port = server.server_address[1]
        assert status_of(f"http://me:hunter2@127.0.0.1:{port}/base/?a=b", JOBS) == 200
        assert server.asked == [(f"/base{JOBS}", None)]
        server.answer = (302, "text/html")
        assert status_of(f"http://127.0.0.1:{port}", EXPERIMENTS) == 302
        assert server.asked[1:] == [(EXPERIMENTS, None)]
        server.answer = (200, "text/html")
        assert status_of(f"http://127.0.0.1:{port}", EXPERIMENTS) == 0
    assert status_of(f"http://127.0.0.1:{closed_port()}", JOBS) == 0
    assert status_of("http://127.0.0.1:nonsense", JOBS) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["/x/python", "-u", "/x/ray/dashboard/dashboard.py", "--host=0.0.0.0"], "Ray dashboard"),
        (["/x/python", "-m", "uvicorn", "--host", "0.0.0.0", "mlflow.server.fastapi_app:app"], "MLflow"),
        (["/x/python", "/x/bin/mlflow", "ui"], "MLflow"),
        (["/x/python", "-m", "uvicorn", "--factory", "orchestrator.server.app:create_app"], "MLflow"),
        (["/x/python", "-m", "http.server"], ""),
    ],
)
def test_servers_are_known_by_their_arguments(arguments, expected):
    assert program("python", arguments) == expected
    assert program("postgres", ["postgres", "-D", "/x"]) == "PostgreSQL"


@pytest.mark.parametrize(
    ("name", "status", "state"),
    [
        ("Ray dashboard", 200, "failed"),
        ("Ray dashboard", 401, "warning"),
        ("Ray dashboard", 404, None),
        ("MLflow", 200, "failed"),
        ("MLflow", 401, "warning"),
    ],
)
def test_a_server_beyond_this_machine_is_judged_by_what_it_gives_to_strangers(name, status, state):
    with serving(status) as server:
        check = check_listening_socket(ListeningSocket(name, "0.0.0.0", server.server_address[1]))
        assert (check.state if check else None) == state
        assert check is None or f"0.0.0.0:{server.server_address[1]}" in check.found


def test_only_sockets_beyond_loopback_are_looked_at(monkeypatch):
    def socket(pid: int | None, host: str, status: str = "LISTEN") -> SimpleNamespace:
        return SimpleNamespace(pid=pid, laddr=(host, 5000), status=status)

    seen = [socket(1, "0.0.0.0"), socket(2, "127.0.0.1"), socket(3, "::1"), socket(None, "::"), socket(4, "::", "NONE")]
    monkeypatch.setattr(psutil, "net_connections", lambda kind: seen)
    monkeypatch.setattr(exposure, "_program_of", lambda pid: f"program {pid}")
    assert list(real_listeners()) == [ListeningSocket("program 1", "0.0.0.0", 5000)]


def test_postgresql_beyond_this_machine_is_a_warning():
    check = check_listening_socket(ListeningSocket("PostgreSQL", "::", 5432))
    assert check.state == "warning" and "[::]:5432" in check.found


@pytest.mark.parametrize(("status", "state"), [(200, "failed"), (401, None)])
def test_an_api_for_jobs_must_ask_for_a_token(status, state):
    with serving(status) as server:
        found = list(exposure.check_job_api(f"127.0.0.1:{server.server_address[1]}"))
    assert [check.state for check in found] == ([state] if state else [])


def test_a_token_that_goes_to_another_machine_unencrypted_is_a_warning(monkeypatch):
    monkeypatch.setattr(exposure, "status_of", lambda address, path: 401)
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    (check,) = exposure.check_job_api("http://head:8265")
    assert check.state == "warning" and "ssh -o ExitOnForwardFailure=yes -N -L 8265:127.0.0.1:8265 head" in check.remedy
    assert list(exposure.check_job_api("https://head:8265")) == []


@pytest.mark.parametrize("address", ["http://[::1", "head:nonsense"])
def test_an_address_of_jobs_that_is_no_url_fails(address):
    assert [check.state for check in exposure.check_job_api(address)] == ["failed"]


# Stores


@pytest.mark.parametrize(
    ("uri", "status", "state"),
    [
        ("sqlite:////srv/mlflow.db", 200, "ok"),
        ("http://127.0.0.1:5000", 200, "warning"),
        ("http://127.0.0.1:5000", 401, "ok"),
        ("http://server:5000", 200, "failed"),
        ("https://server", 200, "failed"),
        ("https://me:hunter2@server", 401, "ok"),
        ("http://me:hunter2@server:5000", 401, "warning"),
        ("http://server:5000", 401, "ok"),
        ("http://[", 401, "failed"),
        ("http://me:hun/ter2@server:5000", 0, "failed"),
        ("postgresql://me:hunter2@127.0.0.1/db", 0, "ok"),
        ("postgresql://me@127.0.0.1/db", 0, "warning"),
        ("postgresql://me:hunter2@server/db", 0, "warning"),
        ("postgresql://me:hunter2@server/db?sslmode=prefer", 0, "warning"),
        ("postgresql+psycopg2://me:hunter2@server/db?sslmode=verify-full", 0, "ok"),
        ("postgresql://server/db?user=me&password=hunter2&sslmode=require", 0, "ok"),
        ("postgresql:///db?host=/run/postgresql", 0, "ok"),
        ("mysql://me:hunter2@server/db", 0, "warning"),
        ("mysql+pymysql://me:hunter2@server/db?ssl_ca=ca.pem", 0, "ok"),
    ],
)
def test_stores_must_ask_for_a_password_that_none_can_overhear(monkeypatch, uri, status, state):
    monkeypatch.setattr(exposure, "status_of", lambda address, path: status)
    check = exposure.check_store("tracking access", uri)
    assert check.state == state
    assert "hunter2" not in str(check)
    assert bool(check.remedy) == (state != "ok")


def test_a_password_of_the_environment_counts(monkeypatch, bare_home):
    monkeypatch.setattr(exposure, "status_of", lambda address, path: 401)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hunter2")
    assert exposure.check_store("x", "http://server:5000").state == "warning"
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("PGSSLMODE", "require")
    assert exposure.check_store("x", "postgresql://me@server/db").state == "ok"


def test_a_closed_home_holds_no_secrets_that_could_be_shown(bare_home, settings, monkeypatch):
    monkeypatch.setattr(exposure, "status_of", lambda address, path: 401)
    stat_of = os.stat

    def refuse(file: str | Path, *rest: object, **options: object) -> os.stat_result:
        if Path(str(file)).is_relative_to(bare_home):
            raise PermissionError(13, "Permission denied", str(file))
        return stat_of(file, *rest, **options)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(PermissionError):
        (bare_home / ".pgpass").exists()
    assert exposure.check_exposure(settings)[0].state == "ok"
    assert exposure.check_store("x", "http://server:5000").state == "ok"
    assert exposure.check_store("x", "postgresql://me@server/db").state == "warning"


def test_both_stores_are_looked_at(settings):
    open_stores = replace(settings, tracking_uri="postgresql://me@db/a", search_uri="postgresql://me@db/b")
    found = exposure.before_run(open_stores)
    assert [(check.name, check.state) for check in found] == [
        ("tracking access", "warning"),
        ("search access", "warning"),
    ]


# Files


def test_files_with_secrets_are_for_their_owner_alone(bare_home, workplace):
    (bare_home / ".mlflow").mkdir()
    files = [bare_home / ".mlflow" / "credentials", workplace / "ponderay.toml"]
    files[0].write_text("[mlflow]\n")
    files[1].write_text('tracking_uri = "http://me:hunter2@server"\n')
    for file in files:
        file.chmod(0o640)
    checks = list(exposure.check_secret_files())
    assert [check.remedy for check in checks] == [f"`chmod 600 {files[0]}`", "`chmod 600 ponderay.toml`"]
    assert "hunter2" not in str(checks)
    for file in files:
        file.chmod(0o600)
    assert list(exposure.check_secret_files()) == []
    files[1].chmod(0o644)
    files[1].write_text('tracking_uri = "http://server"\n')
    assert list(exposure.check_secret_files()) == []
