"""What of MLflow's server is served: the tracking of experiments, and the pages that show it.

MLflow 3.17 has much else behind the same door, for whoever may come in: an assistant that runs shell commands for
whoever seems to come from this machine, a gateway that signs with the server's keys, traces whose tags name files.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any, Final

from orchestrator.tracking.mlflow_internals import is_open, is_user

PAGES: Final = ("", "graphql", "get-artifact", "health", "model-versions", "signup", "static-files", "version")
"""First parts of paths beside those of the API."""

SERVED: Final = {
    "artifacts", "experiments", "logged-models", "metrics", "model-versions", "registered-models", "roles", "runs",
    "server-info", "ui-telemetry", "upload-artifact", "users",
}  # fmt: skip
"""First parts after `/api/2.0/mlflow/`, or the like, that are served whole."""

READ: Final = {
    "datasets": {"search"}, "issues": {"search"}, "label-schemas": set(), "review-queues": set(), "scorers": set(),
    "traces": {"search", "metrics", "batchGetInfos", "calculate-filter-correlation"},
}  # fmt: skip
"""Those that are only read, and what POST requests of them end with that only read."""


def is_served(method: str, path: str) -> bool:
    """Whether a request goes on to MLflow."""
    first, *rest = path.lstrip("/").split("/")
    if first not in ("api", "ajax-api"):
        return first in PAGES
    match rest:
        case [_, "mlflow-artifacts", *_]:
            return True
        case [_, "mlflow", family, *_] if family in SERVED:
            return True
        case [_, "mlflow", family, *inside] if family in READ:
            return method in ("GET", "HEAD") or (method == "POST" and "".join(inside) in READ[family])
    return False


LIVES: Final = "/health"
"""What answers everybody, and with nothing but that the server lives."""


ASKS: Final = ((b"www-authenticate", b'Basic realm="mlflow"'),)
"""The header by which a browser asks for a password, as MLflow sends it."""


class OnlyUsers:
    """An app of ASGI around `app`, which MLflow has put behind passwords, that closes what MLflow leaves open."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] == "http" and scope["path"] != LIVES and is_open(scope["path"]):
            named = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            if not await asyncio.to_thread(is_user, named):
                sentence = "This server answers its users; send a name and a password."
                await _answer(send, HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED", sentence, ASKS)
                return
        await self._app(scope, receive, send)


class OnlyTracking:
    """An app of ASGI around `app` that answers itself what is not served."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_served(scope["method"], scope["path"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            sentence = "This server tracks experiments, and nothing else."
            await _answer(send, HTTPStatus.NOT_FOUND, "ENDPOINT_NOT_FOUND", sentence)
        else:
            await send({"type": "websocket.close"})


async def _answer(
    send: Any, status: HTTPStatus, code: str, sentence: str, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Answers in the form of MLflow's errors."""
    headers = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error_code": code, "message": sentence}).encode()})
