"""The parts of MLflow that are its own are where they were read; what a later MLflow has moved is named here."""

import sqlite3

import mlflow
import pytest
from mlflow import MlflowClient
from sqlalchemy import create_engine, inspect

from orchestrator.tracking import mlflow_internals as internals
from orchestrator.tracking import names


def test_they_were_read_in_the_mlflow_that_is_installed():
    assert internals.installed_version() == mlflow.__version__
    assert internals.__doc__ is not None
    assert f"MLflow {mlflow.__version__}" in internals.__doc__, "read each again in this MLflow, then name its version"


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


def test_rows_of_experiments_and_parameters_are_read_from_its_tables(tmp_path):
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/store.db")
    experiment = client.create_experiment("asr.demo")
    run = client.create_run(experiment, tags={names.CONDITION: "a", names.KIND: "condition"})
    client.log_param(run.info.run_id, "x", 0.5)
    other = client.create_run(experiment, tags={names.CONDITION: "a", names.KIND: "replicate"})
    client.log_param(other.info.run_id, "x", 0.75)
    with sqlite3.connect(tmp_path / "store.db") as database:
        (found,) = database.execute(internals.EXPERIMENT_ROW, ("asr.demo",)).fetchall()
        params = database.execute(internals.PARAM_ROWS, (names.CONDITION, names.KIND, experiment)).fetchall()
    assert str(found[0]) == experiment
    assert params == [("a", "x", "0.5")]


def test_files_on_their_way_into_a_run_are_not_listed(tmp_path):
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/store.db")
    run_id = client.create_run(client.create_experiment("x", (tmp_path / "files").as_uri())).info.run_id
    folder = tmp_path / "files" / run_id / "artifacts"
    folder.mkdir(parents=True)
    for name in ("whole", f"{internals.UPLOADING}part"):
        (folder / name).write_text("x")
    assert [file.path for file in client.list_artifacts(run_id)] == ["whole"]


def test_the_server_says_what_place_a_request_names():
    with internals.flask_app().test_request_context(method="POST", json={"name": "x", "artifact_location": "s3://b"}):
        assert internals.named_place("CreateExperiment", "artifact_location") == "s3://b"
    with internals.flask_app().test_request_context(method="POST", json={"name": "x", "source": "/etc"}):
        assert internals.named_place("CreateModelVersion", "source") == "/etc"


def test_the_open_server_is_an_app_of_fastapi():
    assert hasattr(internals.open_app(), "add_middleware")
