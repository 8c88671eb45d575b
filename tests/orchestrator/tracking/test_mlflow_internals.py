"""The parts of MLflow that are its own are where they were read; what a later MLflow has moved is named here."""

import sqlite3

import mlflow
import pytest
from sqlalchemy import create_engine, inspect

from orchestrator.tracking import mlflow_internals as internals


def test_they_were_read_in_the_mlflow_that_is_installed():
    assert internals.installed_version() == mlflow.__version__
    assert internals.__doc__ is not None
    assert mlflow.__version__ in internals.__doc__, "read each again in this MLflow, then name its version"


@pytest.mark.parametrize("folder", [internals.STORE_TABLES, internals.USERS_TABLES])
def test_migrations_have_one_head(folder):
    assert len(internals.migrations(folder).get_heads()) == 1


def test_tables_are_made_at_the_newest_revision_and_upgraded_to_it(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/store.db")
    internals.make_tables(engine)
    internals.upgrade_tables(engine)
    assert inspect(engine).has_table(internals.STORE_REVISION)
    with sqlite3.connect(tmp_path / "store.db") as database:
        (revision,) = database.execute(f"SELECT version_num FROM {internals.STORE_REVISION}").fetchone()
    assert revision == internals.migrations(internals.STORE_TABLES).get_current_head()
    engine.dispose()


def test_the_server_says_what_place_a_request_names():
    with internals.flask_app().test_request_context(method="POST", json={"name": "x", "artifact_location": "s3://b"}):
        assert internals.named_place("CreateExperiment", "artifact_location") == "s3://b"
    with internals.flask_app().test_request_context(method="POST", json={"name": "x", "source": "/etc"}):
        assert internals.named_place("CreateModelVersion", "source") == "/etc"


def test_the_open_server_is_an_app_of_fastapi():
    assert hasattr(internals.open_app(), "add_middleware")
