"""Every part of MLflow that it calls its own or does not document; no other file touches one. Read in MLflow 3.17.2.

`tests/orchestrator/tracking/test_mlflow_internals.py` fails where a later MLflow has moved one, and names it.
"""

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

EXPERIMENT_ROW: Final = (
    "SELECT experiment_id, creation_time FROM experiments WHERE name = ? AND lifecycle_stage = 'active'"
)
"""Id and time of an experiment by its name, in the tables of a SQLite store."""

NUM_NAMED: Final = "SELECT COUNT(*) FROM experiments WHERE name = ?"
"""How many experiments of a name there are, deleted ones too."""

NAMES: Final = """
    SELECT experiments.name FROM experiments
    WHERE experiments.lifecycle_stage = 'active' AND EXISTS (
        SELECT 1 FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
        WHERE runs.experiment_id = experiments.experiment_id AND runs.lifecycle_stage = 'active'
        AND tags.key = ? AND tags.value = ?)
    ORDER BY experiments.name
"""
"""Those of experiments with a run that has a tag of that key and value."""

EXPERIMENT_TAG_ROW: Final = """
    SELECT experiment_tags.value FROM experiment_tags
    JOIN experiments ON experiments.experiment_id = experiment_tags.experiment_id
    WHERE experiments.name = ? AND experiment_tags.key = ? AND experiments.lifecycle_stage = 'active'
"""
"""A tag of the experiment of that name."""

METRIC_ROWS: Final = """
    SELECT runs.run_uuid, runs.start_time, runs.lifecycle_stage, latest_metrics.value
    FROM latest_metrics JOIN runs ON runs.run_uuid = latest_metrics.run_uuid
    WHERE latest_metrics.key = ? AND runs.experiment_id = ?
"""
"""The runs of an experiment that have a metric, with the last value of it."""

TAG_ROWS: Final = "SELECT key, value FROM tags WHERE run_uuid = ? AND (key IN (?, ?) OR substr(key, 1, ?) = ?)"
"""The tags of a run with one of two names, or with names that begin in one way."""

PARAM_ROWS: Final = """
    SELECT names.value, params.key, params.value
    FROM params JOIN runs ON runs.run_uuid = params.run_uuid
    JOIN tags AS names ON names.run_uuid = runs.run_uuid AND names.key = ?
    JOIN tags AS kinds ON kinds.run_uuid = runs.run_uuid AND kinds.key = ? AND kinds.value = 'condition'
    WHERE runs.experiment_id = ? AND runs.lifecycle_stage = 'active'
"""
"""The parameters of an experiment's runs of conditions, each with the value of a tag of the run."""

ENTRY_ROWS: Final = """
    SELECT entries.value FROM registered_model_tags AS root
    JOIN params AS entries ON entries.run_uuid = root.value
    WHERE root.name = ? AND root.key = 'run' AND entries.key = ?
"""
"""The parameter of one name of the run that a registered model's tag `run` names."""

RUN_PARAM_ROWS: Final = "SELECT key, value FROM params WHERE run_uuid = ?"
RUN_TAG_ROWS: Final = "SELECT key, value FROM tags WHERE run_uuid = ?"
"""All of a run."""

NUM_NOT_FINISHED: Final = """
    SELECT count(*) FROM runs JOIN experiments ON experiments.experiment_id = runs.experiment_id
    WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active'
    AND runs.lifecycle_stage = 'active' AND runs.status != 'FINISHED'
"""
"""How many runs of an experiment are under way, were stopped or have failed."""


def installed_version() -> str:
    """MLflow's."""
    import mlflow

    return str(mlflow.__version__)


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


def is_open(path: str) -> bool:
    """Whether MLflow, behind passwords, answers a request for `path` without one."""
    from mlflow.server import auth

    return bool(auth.is_unprotected_route(path))


def is_user(authorization: str) -> bool:
    """Whether a request's header Authorization has a user's name and password."""
    from mlflow.server import auth
    from werkzeug.datastructures import Authorization

    named = Authorization.from_header(authorization)
    if named is None or named.type != "basic" or not named.username:
        return False
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
