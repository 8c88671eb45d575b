"""Databases of older and newer versions of MLflow, made by its own migrations."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, create_engine, inspect, text

from orchestrator.server import process
from orchestrator.server.process import check_users, upgrade_store
from orchestrator.tracking import store as tracking_store
from orchestrator.tracking.store import LOCK
from tests.servers import older_store, older_users
from trainables.errors import InputError


@pytest.fixture
def uri(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def change(uri: str, statement: str) -> None:
    engine = create_engine(uri)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_an_older_store_is_upgraded_with_what_it_holds_and_a_newer_one_is_refused(uri):
    revision = older_store(uri, "kept")
    assert revision in upgrade_store(uri)
    assert upgrade_store(uri) == ""
    with create_engine(uri).connect() as connection:
        assert connection.execute(text("SELECT name FROM experiments")).scalars().all() == ["kept"]
    assert inspect(create_engine(uri)).has_table("webhooks")
    change(uri, "UPDATE alembic_version SET version_num = 'fffffffffff1'")
    with pytest.raises(InputError, match=r"tracking store is one of a newer MLflow .*fffffffffff1") as raised:
        upgrade_store(uri)
    assert "\n" not in str(raised.value)


def test_an_older_users_database_is_told_of_and_a_newer_one_is_refused(uri):
    assert check_users(uri) == ""
    revision = older_users(uri)
    assert revision in check_users(uri)
    change(uri, "UPDATE alembic_version_auth SET version_num = 'fffffffffff1'")
    with pytest.raises(InputError, match="newer MLflow"):
        check_users(uri)


def test_a_store_that_does_not_answer_is_one_line_without_its_password():
    with pytest.raises(InputError, match="cannot be used") as raised:
        upgrade_store("postgresql+psycopg2://me:sesame@127.0.0.1:1/x")
    assert "\n" not in str(raised.value) and "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql+psycopg2://me:ses@me:wo/rd@127.0.0.1:1/x",
        "postgresql+psycopg2://me:ses@me@127.0.0.1:1/x",
        "postgresql+asyncpg://me:sesame@127.0.0.1:1/x",
        "postgresql+no_such://me:sesame@127.0.0.1:1/x",
    ],
)
def test_an_address_that_is_not_valid_is_one_line_without_a_piece_of_its_password(uri):
    with pytest.raises(InputError, match=r"address of the users' database is not valid: .* %40 .* psycopg2") as raised:
        check_users(uri)
    said = str(raised.value)
    assert (
        "\n" not in said
        and not any(piece in said for piece in ("ses", "wo'", "rd@"))
        and raised.value.__cause__ is None
    )


def test_who_makes_the_tables_is_waited_for_so_long_and_leaves_no_lock_behind(postgres, monkeypatch):
    uri = postgres.uri("mlflow")
    connected: list[Engine] = []
    monkeypatch.setattr(
        Engine, "dispose", lambda self: connected.append(self)
    )  # a pooler's connections outlive its clients
    check_users(uri)
    monkeypatch.undo()
    for module in (process, tracking_store):
        monkeypatch.setattr(module, "LOCK_S", 0.2)
    check_users(uri)
    with create_engine(uri).connect() as other:
        other.execute(text(f"SELECT pg_advisory_lock({LOCK})"))
        with pytest.raises(InputError, match=r"Another process has been making the tables .* 0\.2 s"):
            check_users(uri)
    connected.pop().dispose()


def test_of_two_that_make_the_tables_at_once_one_does(postgres):
    uri = postgres.uri("mlflow")
    with ThreadPoolExecutor(2) as two:
        assert sorted(two.map(upgrade_store, [uri, uri])) == ["", "The tables of the tracking store were made."]
