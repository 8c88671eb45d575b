"""What of MLflow's server is served: the tracking of experiments, and the pages that show it.

MLflow 3.17 has much else behind the same door, for whoever may come in: an assistant that runs shell commands for
whoever seems to come from this machine, a gateway that signs with the server's keys, traces whose tags name files.
"""

import json
from http import HTTPStatus
from typing import Any, Final

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


class OnlyTracking:
    """An app of ASGI around `app` that answers itself what is not served."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handles one request."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_served(scope["method"], scope["path"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            said = {"error_code": "ENDPOINT_NOT_FOUND", "message": "This server tracks experiments, and nothing else."}
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": int(HTTPStatus.NOT_FOUND), "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(said).encode()})
        else:
            await send({"type": "websocket.close"})
