"""Every part of MLflow that it calls its own or does not document; no other file touches one.

Read in MLflow 3.17.2 and 3.18.0. `tests/orchestrator/tracking/test_mlflow_internals.py` fails where a later MLflow has
moved one, and names it.
"""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from flask import Flask
    from sqlalchemy import Engine

PARENT: Final = "mlflow.parentRunId"
"""Tag of a nested run: the run it lies under."""

NOTE: Final = "mlflow.note.content"
"""Tag of a run or an experiment: its description."""

VIEW_PREFIX: Final = "mlflow.sharedViewState."
"""Tags of an experiment that begin so hold one saved view each."""

SYSTEM_PREFIX: Final = "system/"
"""Metrics that begin so are shown on the tab "System metrics"."""

STORE_TABLES: Final = "store/db_migrations"
USERS_TABLES: Final = "server/auth/db/migrations"
STORE_REVISION: Final = "alembic_version"
USERS_REVISION: Final = "alembic_version_auth"

EXPERIMENT_OF_NAME: Final = "SELECT 1 FROM experiments WHERE name = ?"
"""A row where there is an experiment of that name, deleted ones too."""

SWEEP_RUNS: Final = """
    SELECT runs.artifact_uri FROM runs JOIN experiments USING (experiment_id) JOIN tags USING (run_uuid)
    WHERE experiments.name = ? AND tags.key = 'ponderay.kind' AND tags.value = 'sweep' AND NOT EXISTS (
        SELECT 1 FROM tags AS other WHERE other.run_uuid = runs.run_uuid AND other.key = 'ponderay.put_away'
    )
"""
"""Places of files of a sweep's own run, also of one that a user has deleted; of none that was put away."""

EXPERIMENT_PLACES: Final = "SELECT experiment_id, name, artifact_location FROM experiments"
"""Id, name and place of files of every experiment."""

MOVE_EXPERIMENT: Final = "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?"
MOVE_RUNS: Final = """
    UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?)
    WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?
"""
"""Give an experiment another place for its files, and those of its runs that lie in its present one."""


def installed_version() -> str:
    """MLflow's, without its import, which takes a second."""
    return version("mlflow")


def migrations(folder: str) -> "ScriptDirectory":
    """The migrations of STORE_TABLES or USERS_TABLES; read from their files, for importing the server takes seconds."""
    import mlflow
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(Path(mlflow.__file__).parent / folder))


def make_tables(engine: "Engine") -> None:
    """Makes the tracking store's tables in an empty database."""
    from mlflow.store.db import utils

    utils._initialize_tables(engine)  # type: ignore[no-untyped-call]


def upgrade_tables(engine: "Engine") -> None:
    """Brings the tracking store's tables to this version."""
    from mlflow.store.db import utils

    utils._upgrade_db(engine)  # type: ignore[no-untyped-call]


def flask_app() -> "Flask":
    """What answers MLflow's own routes."""
    from mlflow.server import app

    return app


def open_app() -> Any:
    """The server without passwords, as FastAPI's app."""
    from mlflow.server import fastapi_app

    return fastapi_app.app


def app_with_passwords() -> Any:
    """The server behind passwords, as FastAPI's app."""
    from mlflow.server import app, auth  # reads its settings as it is imported

    return auth.create_app(app)


def is_user(authorization: str) -> bool:
    """Whether a request's header Authorization has a user's name and password."""
    from mlflow.server import auth
    from werkzeug.datastructures import Authorization

    if not authorization.isascii():
        return False  # base64 is, and the parser fails on all else
    named = Authorization.from_header(authorization)
    if named is None or named.type != "basic" or not named.username or "\0" in named.username:
        return False  # PostgreSQL knows no text with a NUL
    return auth._authenticate_cached(named.username, named.password or "") is not None


def query_error() -> type[Exception]:
    """What MLflow raises where the text of a GraphQL query cannot be read."""
    from graphql import GraphQLError

    return GraphQLError


def named_place(request: str, field: str) -> str:
    """What the request that is being answered says in `field`, which names a place; empty where it cannot be read.

    Args:
        request: CreateExperiment or CreateModelVersion.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.protos.model_registry_pb2 import CreateModelVersion
    from mlflow.protos.service_pb2 import CreateExperiment
    from mlflow.server.handlers import _get_request_message

    message = {"CreateExperiment": CreateExperiment, "CreateModelVersion": CreateModelVersion}[request]()
    try:
        return str(getattr(_get_request_message(message), field))  # type: ignore[no-untyped-call]
    except MlflowException:
        return ""  # MLflow says what is wrong with it


def run_server(options: list[str]) -> None:
    """`mlflow server` with these options, in this process."""
    import sys

    from mlflow.cli import cli

    sys.argv = ["mlflow", "server", *options]
    cli()
