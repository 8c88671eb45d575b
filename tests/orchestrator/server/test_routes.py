"""What goes on to MLflow, and what does not."""

import asyncio

import pytest

from orchestrator.server.routes import OnlyTracking, is_served

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


def answer(method: str, path: str) -> list[dict]:
    """What is sent for one request; an app behind answers with nothing but a mark."""
    sent: list[dict] = []

    async def behind(scope, receive, send):
        await send({"type": "behind"})

    async def send(message):
        sent.append(message)

    asyncio.run(OnlyTracking(behind)({"type": "http", "method": method, "path": path}, None, send))
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
