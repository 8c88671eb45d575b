"""MLflow's server for tracking alone, with all artifacts in its own store: nobody can name another place.

Whoever makes an experiment or a model's version may tell MLflow where its files lie, and MLflow would make, write and
read them there as the server's user. MLflow 3.17 has much else behind the same door, for whoever may come in: an
assistant that runs shell commands for whoever seems to come from this machine, a gateway that signs with the server's
keys, traces whose tags name files. `mlflow server --app-name` finds what is here by the package's metadata.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from flask import Response, jsonify, request

from orchestrator.tracking.mlflow_internals import (
    app_with_passwords,
    flask_app,
    is_user,
    named_place,
    open_app,
    query_error,
)

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
"""First parts that are only read, and what POST requests of them end with that only read."""


LIVES: Final = "/health"
"""What answers everybody, and with nothing but that the server lives."""

UPLOADS: Final = tuple(f"/{api}/2.0/mlflow-artifacts/artifacts/" for api in ("api", "ajax-api"))
"""Where a PUT goes whose body MLflow writes into the store of artifacts while it comes in."""

BODY_MIB: Final = 16
"""The limit of every other body, which MLflow holds in memory. MLflow allows 1 MB of metrics, 10 MB of an artifact."""

DRAINED: Final = 1 << 20
"""Bytes of a refused body that are read and thrown away, so that a client which sends before it listens is answered."""

PASSWORD_HEADER: Final = ((b"www-authenticate", b'Basic realm="mlflow"'),)
"""The header by which a browser asks for a password, as MLflow sends it."""

PLACES: Final = {
    "/mlflow/experiments/create": ("CreateExperiment", "artifact_location", {"mlflow-artifacts"}),
    "/mlflow/model-versions/create": ("CreateModelVersion", "source", {"mlflow-artifacts", "models", "runs"}),
}
"""Request, field that names a place, and schemes that lead to the server's own store, by the end of a rule.

A `source` without a scheme is the text of a prompt, or a path, which MLflow itself refuses outside of its run's folder.
"""

QUERIES: Final = "/graphql"

FIRST_LOOK: Final = b"""<script>
for (const [key, value] of [
  ["mlflow.workflowType_v1", '"machine_learning"'],
  ["mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true"],
  ["mlflow.telemetry.info.alert.dismissed_v1", "true"],
]) if (localStorage.getItem(key) === null) localStorage.setItem(key, value);
if (["", "#/"].includes(location.hash)) location.replace("#/experiments?workflowType=machine_learning");
</script></head>"""
"""What MLflow's page does before all else: it shows experiments, where it would show its home for language models.

Its assistant is not served and its telemetry is off, so that neither asks for attention. The keys are those of MLflow
3.17, whose numbers of a version stand behind `_v`; a key that another version does not know changes nothing there.
"""


def create_app() -> Any:
    """The server of `ponderay serve`, behind passwords, as FastAPI's app."""
    app = app_with_passwords()
    _refuse_what_mlflow_would_not()  # after MLflow's own, so that strangers learn nothing
    app.add_middleware(FirstLook)  # the last added comes first
    app.add_middleware(OnlySound)
    app.add_middleware(OnlyUsers)
    app.add_middleware(OnlyTracking)
    return app


def create_open_app() -> Any:
    """The server of `ponderay ui`, which whoever has an account on this machine can reach."""
    app = open_app()
    _refuse_what_mlflow_would_not()
    app.add_middleware(FirstLook)
    app.add_middleware(OnlySound)
    app.add_middleware(OnlyTracking)
    return app


def _refuse_what_mlflow_would_not() -> None:
    app = flask_app()
    app.before_request(_refuse_other_places)
    app.before_request(_refuse_what_is_no_query)
    app.register_error_handler(
        query_error(),
        lambda error: _bad_request(f"The query must be GraphQL, but: {str(error).partition(chr(10))[0]}"),
    )


def _refuse_what_is_no_query() -> Response | None:
    """MLflow takes whatever is sent to /graphql for a query, and fails where it is none."""
    if request.path != QUERIES:
        return None
    sent = request.get_json(silent=True)
    fields = ("query", str), ("variables", dict | None), ("operationName", str | None)
    if isinstance(sent, dict) and all(isinstance(sent.get(name), kind) for name, kind in fields):
        return None
    return _bad_request(f"{QUERIES} takes a JSON object with `query`, the text of a query, as MLflow's pages send.")


def _refuse_other_places() -> Response | None:
    rule = request.url_rule.rule if request.url_rule else ""
    for ending, (message, field, schemes) in PLACES.items():
        if rule.endswith(ending):
            place = named_place(message, field)
            if place and not _is_own(place, schemes):
                return _bad_request(
                    f"{field} must be left out or begin with mlflow-artifacts:/, this server's own store, "
                    f"not {place!r}."
                )
            return None
    return None


def _is_own(place: str, schemes: set[str]) -> bool:
    """Whether a place lies in the server's own store."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return False
    if not parts.scheme:
        return "models" in schemes
    if parts.scheme == "mlflow-artifacts":
        return not parts.netloc and not any(sign in place for sign in ("..", "%"))  # another server; a way out of it
    return parts.scheme in schemes


def _bad_request(sentence: str) -> Response:
    answer: Response = jsonify({"error_code": "INVALID_PARAMETER_VALUE", "message": sentence})
    answer.status_code = HTTPStatus.BAD_REQUEST
    return answer


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


class FirstLook:
    """An app of ASGI around `app` whose page at / begins with FIRST_LOOK."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        # the file is sent whole: with a range or a known date, a part of it or nothing would come
        asked = [pair for pair in scope["headers"] if not pair[0].startswith((b"if-", b"range"))]
        start: dict[str, Any] = {}
        body = b""

        async def collect(message: dict[str, Any]) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            page = body.replace(b"</head>", FIRST_LOOK, 1) if start["status"] == HTTPStatus.OK else body
            kept = [pair for pair in start["headers"] if pair[0] not in (b"content-length", b"etag", b"last-modified")]
            await send(start | {"headers": [*kept, (b"content-length", str(len(page)).encode())]})
            await send({"type": "http.response.body", "body": page})

        await self._app(scope | {"headers": asked}, receive, collect)


class OnlyUsers:
    """An app of ASGI around `app`, which MLflow has put behind passwords: nothing of a stranger's body is kept.

    MLflow asks for the password too, but holds the whole body in memory by then, and fails on some headers.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] == "http" and scope["path"] != LIVES:
            headers = dict(scope["headers"])
            # a browser asks without a password what a page of another origin may do
            is_preflight = scope["method"] == "OPTIONS" and {b"origin", b"access-control-request-method"} <= set(
                headers
            )
            authorization = headers.get(b"authorization", b"").decode("latin-1")
            if not is_preflight and not await asyncio.to_thread(is_user, authorization):
                sentence = "This server answers its users; send a name and a password."
                await _answer(scope, send, HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED", sentence, PASSWORD_HEADER)
                return
        await self._app(scope, receive, send)


class OnlySound:
    """An app of ASGI around `app` that refuses by its headers what MLflow would fail on or fill the memory with."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        refusal = _refusal(scope) if scope["type"] == "http" else None
        if refusal:
            await _answer(scope, send, *refusal)
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
