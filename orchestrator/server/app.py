"""MLflow's server for tracking alone, with all artifacts in its own store: nobody can name another place.

Whoever makes an experiment or a model's version may tell MLflow where its files lie, and MLflow would make, write and
read them there as the server's user. `mlflow server --app-name` finds what is here by the package's metadata.
"""

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from flask import Response, jsonify, request

from orchestrator.server.routes import OnlySound, OnlyTracking, OnlyUsers
from orchestrator.tracking.mlflow_internals import app_with_passwords, flask_app, named_place, open_app, query_error

PLACES: Final = {
    "/mlflow/experiments/create": ("CreateExperiment", "artifact_location", {"mlflow-artifacts"}),
    "/mlflow/model-versions/create": ("CreateModelVersion", "source", {"mlflow-artifacts", "models", "runs"}),
}
"""By the end of a rule: the request, the field that names a place, and the schemes that lead to the server's own store.

A `source` without a scheme is the text of a prompt, or a path, which MLflow itself refuses outside of its run's folder.
"""


QUERIES: Final = "/graphql"


def create_app() -> Any:
    """The server of `ponderay serve`, behind passwords, as FastAPI's app."""
    made = app_with_passwords()
    _refuse_what_mlflow_would_not()  # after MLflow's own, so that strangers learn nothing
    made.add_middleware(OnlySound)  # the one added last is asked first
    made.add_middleware(OnlyUsers)
    made.add_middleware(OnlyTracking)
    return made


def create_open_app() -> Any:
    """The server of `ponderay ui`, which whoever has an account on this machine can reach."""
    made = open_app()
    _refuse_what_mlflow_would_not()
    made.add_middleware(OnlySound)
    made.add_middleware(OnlyTracking)
    return made


def _refuse_what_mlflow_would_not() -> None:
    app = flask_app()
    app.before_request(_refuse_other_places)
    app.before_request(_refuse_no_query)
    app.register_error_handler(query_error(), _unreadable_query)


def _refuse_no_query() -> Response | None:
    """MLflow takes whatever is sent to /graphql for a query, and fails where it is none."""
    if request.path != QUERIES:
        return None
    sent = request.get_json(silent=True)
    fields = ("query", str), ("variables", dict | None), ("operationName", str | None)
    if isinstance(sent, dict) and all(isinstance(sent.get(name), kind) for name, kind in fields):
        return None
    return _bad_request(f"{QUERIES} takes a JSON object with `query`, the text of a query, as MLflow's pages send.")


def _unreadable_query(error: Exception) -> Response:
    return _bad_request(f"The query must be GraphQL, but: {str(error).partition(chr(10))[0]}")


def _refuse_other_places() -> Response | None:
    rule = request.url_rule.rule if request.url_rule else ""
    for ending, (message, field, schemes) in PLACES.items():
        if rule.endswith(ending):
            place = named_place(message, field)
            return None if not place or _is_own(place, schemes) else _refusal(field, place)
    return None


def _is_own(place: str, schemes: set[str]) -> bool:
    """Whether it lies in the server's own store."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return False
    if not parts.scheme:
        return "models" in schemes
    if parts.scheme == "mlflow-artifacts":
        return not parts.netloc and not any(sign in place for sign in ("..", "%"))  # another server; a way out of it
    return parts.scheme in schemes


def _refusal(field: str, place: str) -> Response:
    return _bad_request(
        f"{field} must be left out or begin with mlflow-artifacts:/, this server's own store, not {place!r}."
    )


def _bad_request(sentence: str) -> Response:
    answer: Response = jsonify({"error_code": "INVALID_PARAMETER_VALUE", "message": sentence})
    answer.status_code = HTTPStatus.BAD_REQUEST
    return answer
