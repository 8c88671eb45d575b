"""Every part of MLflow that it calls its own or does not document; no other file touches one. Read in MLflow 3.17.2.

`tests/orchestrator/tracking/test_mlflow_internals.py` fails where a later MLflow has moved one, and names it.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from flask import Flask
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import Connection, Engine

PARENT: Final = "mlflow.parentRunId"
"""Tag of a nested run: the run it lies under."""

NOTE: Final = "mlflow.note.content"
"""Tag of a run or an experiment: its description."""

RUN_NAME: Final = "mlflow.runName"
"""Tag of a run: its name, once more."""

INVALID: Final = 1000
"""The code of MLflow's errors that trying again does not mend."""

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

NUM_REPLICATES: Final = """
    SELECT count(*) FROM runs JOIN experiments ON experiments.experiment_id = runs.experiment_id
    JOIN tags ON tags.run_uuid = runs.run_uuid AND tags.key = ? AND tags.value = 'replicate'
    WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active' AND runs.lifecycle_stage = 'active'
"""
"""How many runs of an experiment are of replicates."""

NUM_NOT_FINISHED: Final = """
    SELECT count(*) FROM runs JOIN experiments ON experiments.experiment_id = runs.experiment_id
    WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active'
    AND runs.lifecycle_stage = 'active' AND runs.status != 'FINISHED'
"""
"""How many runs of an experiment are under way, were stopped or have failed."""

REVISION_ROW: Final = f"SELECT version_num FROM {STORE_REVISION}"
"""The revision of the tables."""

EXPERIMENT_PLACE_ROW: Final = (
    "SELECT experiment_id, artifact_location FROM experiments WHERE name = ? AND lifecycle_stage = 'active'"
)
"""Id and place of files of an experiment by its name; in each workspace there may be one."""

EXPERIMENT_PLACES: Final = "SELECT experiment_id, name, artifact_location FROM experiments"
"""Id, name and place of files of every experiment."""

MOVE_EXPERIMENT: Final = "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?"
MOVE_RUNS: Final = """
    UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?)
    WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?
"""
"""Give an experiment another place for its files, and those of its runs that lie in its present one."""

TAG_VALUE_ROWS: Final = """
    SELECT tags.value FROM tags JOIN runs ON runs.run_uuid = tags.run_uuid
    JOIN tags AS kinds ON kinds.run_uuid = runs.run_uuid AND kinds.key = ? AND kinds.value = ?
    WHERE runs.experiment_id = ? AND runs.lifecycle_stage = 'active' AND tags.key = ? AND tags.value != ''
    GROUP BY tags.value ORDER BY min(printf('%020d', runs.start_time) || runs.run_uuid) LIMIT ?
"""
"""The distinct values of a tag over an experiment's runs that have another tag of that value, by their first start."""

LISTED_PARAM_ROWS: Final = """
    SELECT params.run_uuid, params.key, params.value FROM params JOIN runs ON runs.run_uuid = params.run_uuid
    WHERE runs.experiment_id = ? AND runs.lifecycle_stage = 'active'
    AND params.run_uuid IN (SELECT value FROM json_each(?))
"""
"""The parameters of those runs of an experiment whose ids a JSON array holds."""

TAGGED_RUN_ROWS: Final = """
    SELECT runs.run_uuid, runs.artifact_uri FROM runs
    JOIN tags AS first ON first.run_uuid = runs.run_uuid AND first.key = ? AND first.value = ?
    JOIN tags AS second ON second.run_uuid = runs.run_uuid AND second.key = ? AND second.value = ?
    WHERE runs.experiment_id = ? AND runs.lifecycle_stage = 'active'
    ORDER BY runs.start_time DESC, runs.run_uuid LIMIT 1
"""
"""Id and place of files of an experiment's newest run with two tags of those values."""

LATEST_NAME_ROWS: Final = "SELECT key FROM latest_metrics WHERE run_uuid = ?"
"""The metrics of a run."""

HISTORY_ROWS: Final = """
    SELECT step, value, is_nan FROM metrics WHERE run_uuid = ? AND key = ? ORDER BY timestamp, step, value
"""
"""Every value of a metric of a run; where it is no number, a 0 stands in its place and `is_nan` says so."""

LISTED_HISTORY_ROWS: Final = """
    SELECT run_uuid, step, value, is_nan FROM metrics
    WHERE key = ? AND run_uuid IN (SELECT value FROM json_each(?)) ORDER BY timestamp, step, value
"""
"""The same of those runs whose ids a JSON array holds, each value with its run."""

RUN_PLACE_ROW: Final = "SELECT lifecycle_stage, artifact_uri FROM runs WHERE run_uuid = ?"
"""Whether a run is active or deleted, and the place of its files."""

UPLOADING: Final = ".artifact.uploading."
"""Files of a run that begin so are not whole yet, and are not listed."""

REOPEN_RUN: Final = "UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?"
END_RUN: Final = "UPDATE runs SET status = 'FINISHED', end_time = ? WHERE run_uuid = ?"
ADD_PARAM: Final = "INSERT INTO params (run_uuid, key, value) VALUES (?, ?, ?)"
SET_TAG: Final = (
    "INSERT INTO tags (run_uuid, key, value) VALUES (?, ?, ?) "
    "ON CONFLICT (key, run_uuid) DO UPDATE SET value = excluded.value"
)
"""What a client's calls of these names write."""


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


ROWS: Final = {
    "SqlRun": (
        "run_uuid name source_type source_name entry_point_name user_id status start_time end_time deleted_time "
        "source_version lifecycle_stage artifact_uri experiment_id"
    ),
    "SqlTag": "key value run_uuid",
    "SqlParam": "key value run_uuid",
    "SqlMetric": "key value timestamp step is_nan run_uuid",
    "SqlLatestMetric": "key value timestamp step is_nan run_uuid",
}
"""The columns of the tables of runs, by the class that stands for each."""

WRITTEN: Final = ("sqlite", "postgresql")
"""Databases whose rows `RowStatements` writes."""


def database_of(client: "MlflowClient") -> "SqlAlchemyStore | None":
    """The store behind a client, where it is a database and its tables are those known here."""
    store = client._tracking_client.store
    if f"{type(store).__module__}.{type(store).__name__}" != "mlflow.store.tracking.sqlalchemy_store.SqlAlchemyStore":
        return None
    is_known = all(table.columns.keys() == ROWS[name].split() for name, table in _tables().items())
    return store if is_known and store.db_type in WRITTEN else None


def _tables() -> dict[str, Any]:
    from mlflow.store.tracking.dbmodels import models

    return {name: getattr(models, name).__table__ for name in ROWS}


def artifacts_of(experiment_place: str, run_id: str) -> str:
    """Where the files of a run are."""
    from mlflow.utils.uri import append_to_uri_path

    return str(append_to_uri_path(experiment_place, run_id, "artifacts"))  # type: ignore[no-untyped-call]


def new_run_row(run_id: str, experiment_id: int, name: str, artifact_uri: str, now_ms: int) -> dict[str, Any]:
    """A run that begins, as a client's `create_run` leaves it."""
    empty = {"source_name": "", "entry_point_name": "", "source_version": "", "end_time": None, "deleted_time": None}
    return empty | {
        "run_uuid": run_id,
        "name": name,
        "source_type": "UNKNOWN",
        "user_id": "unknown",
        "status": "RUNNING",
        "start_time": now_ms,
        "lifecycle_stage": "active",
        "artifact_uri": artifact_uri,
        "experiment_id": experiment_id,
    }


def add_run(row: Mapping[str, Any]) -> str:
    """The statement that inserts a row as `new_run_row` gives it, its values named."""
    return f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"


def checked_batch(
    metrics: "Sequence[Metric]", params: "Sequence[Param]", tags: "Sequence[RunTag]"
) -> "tuple[Sequence[Metric], Sequence[Param], Sequence[RunTag]]":
    """What a client's `log_batch` makes of these, too long texts cut.

    Raises:
        MlflowException: if it would refuse them.
    """
    from mlflow.utils.validation import _validate_batch_log_data

    return _validate_batch_log_data(metrics, params, tags)  # type: ignore[no-untyped-call,no-any-return]


def are_active(connection: "Connection", run_ids: Collection[str], experiment_ids: Collection[int]) -> bool:
    """Whether all these runs and experiments are there and not deleted."""
    from mlflow.store.tracking.dbmodels.models import SqlExperiment, SqlRun
    from sqlalchemy import select

    tables: list[tuple[Any, str, Collection[Any]]] = [
        (SqlRun.__table__, "run_uuid", run_ids),
        (SqlExperiment.__table__, "experiment_id", experiment_ids),
    ]
    for table, key, wanted in tables:
        is_one = table.c[key].in_(wanted), table.c.lifecycle_stage == "active"
        if len(connection.execute(select(table.c[key]).where(*is_one)).all()) < len(wanted):
            return False
    return True


class RowStatements:
    """How rows of runs are written into a database of one kind; each leaves what a client would.

    Attributes:
        new_runs: rows of runs.
        entries: parameters, of which none may be there.
        params: parameters; those that are there stay.
        tags: tags, over those that are there.
        metrics: values of metrics; those that are there stay.
        latest: the last value of each metric, where it is later than the one that is there.
        ends: status and end of the runs `ended`.
    """

    def __init__(self, kind: str) -> None:
        from sqlalchemy import bindparam, tuple_
        from sqlalchemy.dialects import postgresql, sqlite

        insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[kind]
        runs, tags, params, metrics, latest = _tables().values()
        self.new_runs, self.entries = runs.insert(), params.insert()
        self.params, self.metrics = insert(params).on_conflict_do_nothing(), insert(metrics).on_conflict_do_nothing()
        new = insert(tags)
        self.tags = new.on_conflict_do_update(index_elements=["key", "run_uuid"], set_={"value": new.excluded.value})
        new = insert(latest)
        order, values = ("step", "timestamp", "value"), ("value", "timestamp", "step", "is_nan")
        self.latest = new.on_conflict_do_update(
            index_elements=["key", "run_uuid"],
            set_={name: new.excluded[name] for name in values},
            where=tuple_(*(new.excluded[name] for name in order)) > tuple_(*(latest.c[name] for name in order)),
        )
        self.ends = runs.update().where(runs.c.run_uuid == bindparam("ended"))


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
