"""What of MLflow's server is served: the tracking of experiments, and the pages that show it.

MLflow 3.17 has much else behind the same door, for whoever may come in: an assistant that runs shell commands for
whoever seems to come from this machine, a gateway that signs with the server's keys, traces whose tags name files.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any, Final

from orchestrator.tracking.mlflow_internals import is_user

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

UPLOADS: Final = tuple(f"/{api}/2.0/mlflow-artifacts/artifacts/" for api in ("api", "ajax-api"))
"""Where a PUT goes whose body MLflow writes into the store of artifacts while it comes in."""

BODY_MIB: Final = 16
"""Of every other body, which MLflow holds in memory. Its own limits are 1 MB of metrics, 10 MB of an artifact."""

DRAINED: Final = 1 << 20
"""Bytes of a refused body that are read and thrown away, so that a client which sends before it listens is answered."""

ASKS: Final = ((b"www-authenticate", b'Basic realm="mlflow"'),)
"""The header by which a browser asks for a password, as MLflow sends it."""


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
            await _answer(scope, send, HTTPStatus.NOT_FOUND, "ENDPOINT_NOT_FOUND", sentence)
        else:
            await send({"type": "websocket.close"})


class OnlyUsers:
    """An app of ASGI around `app`, which MLflow has put behind passwords: nothing of a stranger's body is kept.

    MLflow asks for the password too, but holds the whole body in memory by then, and fails on some headers.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] == "http" and scope["path"] != LIVES and not _is_preflight(scope):
            named = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            if not await asyncio.to_thread(is_user, named):
                sentence = "This server answers its users; send a name and a password."
                await _answer(scope, send, HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED", sentence, ASKS)
                return
        await self._app(scope, receive, send)


class OnlySound:
    """An app of ASGI around `app` that refuses by its headers what MLflow would fail on or fill the memory with."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        refused = _refusal(scope) if scope["type"] == "http" else None
        if refused:
            await _answer(scope, send, *refused)
        else:
            await self._app(scope, receive, send)


def _refusal(scope: dict[str, Any]) -> tuple[HTTPStatus, str, str] | None:
    headers, length = dict(scope["headers"]), _length(scope)
    if headers.get(b"x-mlflow-workspace", b"").strip():
        sentence = "This server has no workspaces; leave out the header X-MLFLOW-WORKSPACE."
    elif any(not headers.get(name, b"").isascii() for name in (b"host", b"origin")):
        sentence = "The headers Host and Origin must be ASCII."
    elif length != 0 and (scope["path"] == LIVES or scope["method"] == "OPTIONS"):
        sentence = f"{scope['method']} {scope['path']} takes no body."
    elif scope["method"] == "PUT" and scope["path"].startswith(UPLOADS):
        return None
    elif length is None:
        sentence = "A request with a body must say how long it is, by Content-Length."
        return HTTPStatus.LENGTH_REQUIRED, "INVALID_PARAMETER_VALUE", sentence
    elif length > BODY_MIB << 20:
        sentence = f"A body may have {BODY_MIB} MiB at most, not {length:,} bytes; upload artifacts by PUT."
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "INVALID_PARAMETER_VALUE", sentence
    else:
        return None
    return HTTPStatus.BAD_REQUEST, "INVALID_PARAMETER_VALUE", sentence


def _length(scope: dict[str, Any]) -> int | None:
    """How many bytes of a body are announced; None where they come without a number."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    return int(headers.get(b"content-length", b"0"))  # digits: a server of ASGI has refused all else


def _is_preflight(scope: dict[str, Any]) -> bool:
    """Whether a browser asks what a page of another origin may do, which it does without a password."""
    names = {name for name, _ in scope["headers"]}
    return scope["method"] == "OPTIONS" and {b"origin", b"access-control-request-method"} <= names


async def _answer(
    scope: dict[str, Any],
    send: Any,
    status: HTTPStatus,
    code: str,
    sentence: str,
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Answers in the form of MLflow's errors, and closes the connection where much of a body would follow."""
    length = _length(scope)
    closed = ((b"connection", b"close"),) if length is None or length > DRAINED else ()
    headers = [(b"content-type", b"application/json"), *more, *closed]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error_code": code, "message": sentence}).encode()})
