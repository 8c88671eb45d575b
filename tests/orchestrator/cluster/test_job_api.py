"""The job API over HTTP, as a cluster answers it: tokens first, then jobs, errors in one line."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster import job_api
from orchestrator.cluster.jobs import ClusterAwayError
from orchestrator.cluster.submission import Submission
from orchestrator.console.errors import RefusedError
from orchestrator.machine import waiting
from tests.orchestrator.checks.test_sweep import closed_port
from trainables.errors import InputError

VERSION = {"version": "4", "ray_version": "2.60.0", "ray_commit": "", "session_name": ""}
JOBS = [
    {"type": "DRIVER", "job_id": "01000000", "status": "RUNNING", "entrypoint": "", "start_time": 1},
    {
        "type": "SUBMISSION", "submission_id": "asr.demo-1", "status": "FAILED", "entrypoint": "python x",
        "start_time": 2, "end_time": 7, "metadata": {"ponderay.sweep": "asr.demo", "ponderay.named": ""},
        "message": "failed with exit code 3, last lines:\nfirst\nponderay: the password=sesame is wrong\n",
    },
    {
        "type": "SUBMISSION", "submission_id": "asr.demo-2", "status": "PENDING", "entrypoint": "python x",
        "start_time": 3, "metadata": {"ponderay.sweep": "asr.demo", "ponderay.named": ""},
        "runtime_env": {"env_vars": {"A": "b c", "RAY_JOB_STOP_WAIT_TIME_S": "60"}},
    },
]  # fmt: skip
TAKEN = "Traceback (most recent call last):\n  ...\nValueError: Job with submission_id {} already exists. Please use\n."


class Dashboard(ThreadingHTTPServer):
    """Answers who has no token with `to_strangers`, and who has one with `to_users` or as a cluster would."""

    def __init__(self, to_strangers: int = 401, to_users: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.to_strangers, self.to_users = to_strangers, to_users
        self.submitted: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Dashboard

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        is_stranger = self.headers["User-Agent"].startswith("Python-urllib")
        self.answer(self.server.to_strangers if is_stranger else self.server.to_users)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_POST(self) -> None:
        self.server.submitted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(200, self.server.submitted[-1])

    def answer(self, status: int, submitted: dict[str, Any] | None = None) -> None:
        found: Any = JOBS if self.path == "/api/jobs/" else VERSION
        if submitted:
            found = {"job_id": submitted["submission_id"], "submission_id": submitted["submission_id"]}
            status = 500 if submitted["submission_id"] == "asr.demo-2" else 200
        text = TAKEN.format("asr.demo-2") if status == 500 else json.dumps(found)
        self.send_response(404 if "packages" in self.path and self.command == "GET" else status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch) -> None:
    """A token of the test's own; what the client sets is undone."""
    (tmp_path / "token").write_text("sesame" * 10)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts a dashboard."""
    started = []

    def start(**answers: int) -> Dashboard:
        started.append(Dashboard(**answers))
        threading.Thread(target=started[-1].serve_forever, kwargs={"poll_interval": 0.01}).start()
        return started[-1]

    yield start
    for dashboard in started:
        dashboard.shutdown()
        dashboard.server_close()


def test_a_cluster_that_answers_without_a_token_is_refused(serve):
    with pytest.raises(RefusedError, match=r"lists its jobs to anybody\. Start it with RAY_AUTH_MODE=token"):
        job_api.connect(serve(to_strangers=200).address)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_token_is_one_line_without_it(serve, status):
    with pytest.raises(InputError, match=r"does not accept the token in .*token") as raised:
        job_api.connect(serve(to_users=status).address)
    assert "\n" not in str(raised.value) and "sesame" not in str(raised.value)


def test_whoever_does_without_a_token_is_refused(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(RefusedError, match="RAY_AUTH_MODE is disabled; unset it"):
        job_api.connect(serve().address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="nothing holds none"):
        job_api.connect(serve().address)


def test_what_is_no_cluster_is_said_with_the_remedy(serve):
    with pytest.raises(
        ClusterAwayError, match=r"No Ray cluster answers at http://127\.0\.0\.1:\d+ .*`ray dashboard cluster\.yaml`"
    ):
        job_api.connect(f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(InputError, match="is not a Ray dashboard: its /api/jobs/ answers 404"):
        job_api.connect(serve(to_strangers=404).address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1:8265", "ray://head:10001", "file:///etc", "http://", "http://h:1/path", "http://[::1", "http://h:x"],
)
def test_an_address_is_of_a_dashboard(address):
    with pytest.raises(InputError, match="--address must be http://HOST:PORT or https://HOST:PORT"):
        job_api.connect(address)


def test_a_token_goes_to_no_other_machine_unencrypted(monkeypatch):
    asked = []
    monkeypatch.setattr(job_api, "_refuse_open", asked.append)
    monkeypatch.setattr(job_api, "RayJobs", asked.append)
    with pytest.raises(
        RefusedError,
        match=r"travel to head unencrypted\. .*`ssh -o ExitOnForwardFailure=yes -N -L 8265:127\.0\.0\.1:8265 head`",
    ):
        job_api.connect("http://head:8265")
    assert not asked
    for address in ("https://head:8265", "http://localhost:8265", "http://[::1]:8265"):
        job_api.connect(address)
        assert asked.pop() == asked.pop() == address


def test_an_address_holds_no_password():
    with pytest.raises(InputError, match="no user or password") as raised:
        job_api.connect("http://me:sesame@head:8265")
    assert "sesame" not in str(raised.value)


def test_the_address_is_the_option_then_the_variable(serve, monkeypatch):
    open_one, closed_one = serve(to_strangers=200), serve()
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", open_one.address)
    with pytest.raises(RefusedError):
        job_api.connect(None)
    job_api.connect(closed_one.address + "/").jobs()


def test_jobs_come_newest_first_with_one_line_each(serve):
    found = job_api.connect(serve().address).jobs()
    assert [(job.name, job.sweep, job.state) for job in found] == [
        ("asr.demo-2", "asr.demo", "PENDING"), ("asr.demo-1", "asr.demo", "FAILED"), ("01000000", "", "RUNNING"),
    ]  # fmt: skip
    assert (found[1].started_ms, found[1].ended_ms, found[0].ended_ms) == (2, 7, None)
    assert found[1].message == "ponderay: the password=*** is wrong"
    assert [job.variables for job in found] == [{"A": "b c"}, {}, {}]


def test_a_job_is_sent_whole_and_a_name_that_is_taken_meanwhile_is_refused(serve, tmp_path):
    dashboard = serve()
    api = job_api.connect(dashboard.address)
    (tmp_path / "sources.zip").write_bytes(b"PK")
    submission = Submission("asr.demo", "python -m orchestrator run asr.demo", {"A": "b"})
    api.submit(submission, "asr.demo-3", tmp_path / "sources.zip")
    (sent,) = dashboard.submitted
    assert sent["entrypoint"] == submission.entrypoint
    assert sent["metadata"] == {"ponderay.sweep": "asr.demo", "ponderay.named": ""}
    assert sent["runtime_env"]["working_dir"].startswith("gcs://_ray_pkg_")
    variables = sent["runtime_env"]["env_vars"]
    assert variables == {"A": "b", "RAY_JOB_STOP_WAIT_TIME_S": "60", "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1"}
    with pytest.raises(RefusedError, match=r"already run by the job asr\.demo-2"):
        api.submit(submission, "asr.demo-2", tmp_path / "sources.zip")


def test_a_cluster_that_has_just_come_up_is_asked_again_but_not_for_ever(serve, tmp_path, monkeypatch):
    api = job_api.connect(serve().address)
    submission, answers = Submission("asr.demo", "python -m orchestrator run asr.demo", {}), ["not yet", "not yet"]

    def answer(**_: object) -> None:
        if answers.pop():
            raise RuntimeError("No available agent to submit job, please try again later.")

    monkeypatch.setattr(api._client, "submit_job", answer)
    monkeypatch.setattr(waiting.time, "sleep", lambda _s: None)
    answers.insert(0, "")
    api.submit(submission, "asr.demo-3", tmp_path)
    assert not answers
    answers.append("not yet")
    monkeypatch.setattr(job_api, "READY_S", -1.0)
    with pytest.raises(InputError, match="No available agent"):
        api.submit(submission, "asr.demo-3", tmp_path)


def test_a_job_that_says_nothing_for_long_ends_the_connection_in_order(serve, monkeypatch):
    """Whether the cluster is away or the job is silent, who follows then asks."""
    monkeypatch.setattr(job_api, "SILENT_S", 0.05)
    api = job_api.connect(serve().address)

    async def silent(_: str) -> AsyncIterator[str]:
        yield "first"
        await asyncio.sleep(60)

    monkeypatch.setattr(api._client, "tail_job_logs", silent)
    assert list(api.follow("a-1")) == ["first"]
