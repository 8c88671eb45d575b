"""What goes on to MLflow, and what does not."""

import asyncio
import json

import pytest

from orchestrator.server.app import OnlySound, OnlyTracking, OnlyUsers, is_served

SERVED = (
    ("GET", "/"),
    ("GET", "/static-files/static/js/main.js"),
    ("GET", "/health"),
    ("GET", "/get-artifact"),
    ("POST", "/graphql"),
    ("POST", "/api/2.0/mlflow/runs/log-batch"),
    ("POST", "/ajax-api/2.0/mlflow/runs/search"),
    ("GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"),
    ("PUT", "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/note.txt"),
    ("PATCH", "/api/2.0/mlflow/users/update-password"),
    ("POST", "/ajax-api/3.0/mlflow/traces/search"),
    ("GET", "/ajax-api/3.0/mlflow/datasets/d-1"),
)
NOT_SERVED = (
    ("PUT", "/ajax-api/3.0/mlflow/assistant/config"),
    ("POST", "/ajax-api/3.0/mlflow/assistant/message"),
    ("GET", "/ajax-api/3.0/mlflow/assistant/sessions/1/stream"),
    ("POST", "//ajax-api/3.0/mlflow/assistant/message"),
    ("POST", "/ajax-api/3.0/mlflow/gateway/secrets/create"),
    ("GET", "/ajax-api/2.0/mlflow/gateway-proxy"),
    ("POST", "/gateway/mine/mlflow/invocations"),
    ("POST", "/v1/traces"),
    ("POST", "/api/3.0/mlflow/traces"),
    ("PATCH", "/api/2.0/mlflow/traces/tr-1/tags"),
    ("POST", "/api/3.0/mlflow/traces/delete-traces"),
    ("POST", "/api/3.0/mlflow/traces/tr-1/search"),
    ("GET", "/ajax-api/3.0/mlflow/get-trace-artifact"),
    ("POST", "/api/2.0/mlflow/webhooks"),
    ("POST", "/ajax-api/3.0/jobs"),
    ("POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
    ("POST", "/mcp"),
    ("GET", "/api"),
)


ARTIFACT = "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/model.pt"
BATCH = "/api/2.0/mlflow/runs/log-batch"
LARGE = {"content-length": str(64 << 30)}
PREFLIGHT = {"origin": "https://lab.example", "access-control-request-method": "POST"}
REFUSED = {
    "a large body": ("POST", BATCH, LARGE, 413),
    "a little more than it may be": ("POST", BATCH, {"content-length": str((16 << 20) + 1)}, 413),
    "a body without a number": ("POST", BATCH, {"transfer-encoding": "chunked"}, 411),
    "a large body that only looks like an artifact": ("PUT", f"/api/2.0/mlflow-artifacts/x{ARTIFACT}", LARGE, 413),
    "a large body for an artifact, not put": ("POST", ARTIFACT, LARGE, 413),
    "a body for /health": ("POST", "/health", {"content-length": "1"}, 400),
    "a body of any length for /health": ("GET", "/health", {"transfer-encoding": "chunked"}, 400),
    "a preflight with a body": ("OPTIONS", BATCH, {**PREFLIGHT, "content-length": "1"}, 400),
    "a workspace": ("GET", BATCH, {"x-mlflow-workspace": "x"}, 400),
    "a host of other letters": ("GET", BATCH, {"host": "m\xfcller"}, 400),
    "an origin of other letters": ("GET", BATCH, {"origin": "https://m\xfcller"}, 400),
}
LET_IN = {
    "no body": ("GET", BATCH, {}),
    "as much as it may be": ("POST", BATCH, {"content-length": str(16 << 20)}),
    "an artifact": ("PUT", ARTIFACT, LARGE),
    "an artifact from a page": ("PUT", f"/ajax-api{ARTIFACT.removeprefix('/api')}", LARGE),
    "an empty artifact, as requests sends it": ("PUT", ARTIFACT, {"transfer-encoding": "chunked"}),
    "no workspace": ("GET", BATCH, {"x-mlflow-workspace": " "}),
    "that it lives": ("GET", "/health", {"content-length": "0"}),
}
STRANGERS = {
    "none": "", "a token": "Bearer x", "no base64": "Basic \xa4\xa4", "half of base64": "Basic YTpi\xe9=",
    "no name": "Basic Og==", "no letters": "Basic //8=", "a nul": "Basic AGE6Yg==",
    "a digest": 'Digest username="a"', "a word": "Basic",
}  # fmt: skip


def answer(method: str, path: str, headers: dict[str, str] | None = None, app=OnlyTracking) -> list[dict]:
    """What is sent for one request; an app behind answers with nothing but a mark. Nobody may ask for its body."""
    sent: list[dict] = []
    listed = [(name.encode(), text.encode("latin-1")) for name, text in (headers or {}).items()]

    async def behind(scope, receive, send):
        await send({"type": "behind"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": listed}
    asyncio.run(app(behind)(scope, None, send))
    return sent


@pytest.mark.parametrize(("method", "path"), SERVED)
def test_tracking_and_its_pages_go_on(method, path):
    assert is_served(method, path)
    assert answer(method, path) == [{"type": "behind"}]


@pytest.mark.parametrize(("method", "path"), NOT_SERVED)
def test_what_could_run_pay_or_read_more_does_not(method, path):
    assert not is_served(method, path)
    assert [one.get("status") for one in answer(method, path)] == [404, None]


def test_no_socket_is_opened():
    sent: list[dict] = []

    async def send(message):
        sent.append(message)

    asyncio.run(OnlyTracking(None)({"type": "websocket", "path": "/"}, None, send))
    assert sent == [{"type": "websocket.close"}]


@pytest.mark.parametrize(("method", "path", "headers", "status"), REFUSED.values(), ids=REFUSED)
def test_what_would_fail_or_fill_the_memory_is_refused_by_its_headers(method, path, headers, status):
    start, body = answer(method, path, headers, OnlySound)
    assert start["status"] == status
    assert json.loads(body["body"])["message"].endswith(".")
    much_follows = int(headers.get("content-length", "0")) > 1 << 20 or "transfer-encoding" in headers
    assert ((b"connection", b"close") in start["headers"]) == much_follows


@pytest.mark.parametrize(("method", "path", "headers"), LET_IN.values(), ids=LET_IN)
def test_what_clients_send_goes_on(method, path, headers):
    assert answer(method, path, headers, OnlySound) == [{"type": "behind"}]


@pytest.mark.parametrize("authorization", STRANGERS.values(), ids=STRANGERS)
def test_a_header_that_names_no_user_is_that_of_a_stranger(authorization):
    start, body = answer("POST", BATCH, {"authorization": authorization, **LARGE}, OnlyUsers)
    assert start["status"] == 401 and (b"connection", b"close") in start["headers"]
    assert "password" in json.loads(body["body"])["message"]


def test_a_strangers_short_body_does_not_close_the_connection():
    """A client with a wrong password, which sends before it listens, is to learn that the password is wrong."""
    start, _ = answer("POST", BATCH, {"content-length": "1000"}, OnlyUsers)
    assert start["status"] == 401 and (b"connection", b"close") not in start["headers"]


def test_strangers_may_ask_whether_it_lives_and_a_browser_what_it_may():
    assert answer("GET", "/health", {}, OnlyUsers) == [{"type": "behind"}]
    assert answer("OPTIONS", BATCH, PREFLIGHT, OnlyUsers) == [{"type": "behind"}]
    assert answer("OPTIONS", BATCH, {}, OnlyUsers)[0]["status"] == 401
