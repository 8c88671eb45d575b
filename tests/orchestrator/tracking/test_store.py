"""How databases are opened: the address, and one process at first."""

import threading

import pytest
from sqlalchemy import make_url

from orchestrator.tracking.store import NEW, PATIENCE, address, has_store, made_once, make_file, may_have


@pytest.mark.parametrize("uri", ["sqlite:////tmp/x.db", "http://127.0.0.1:5000", "mysql://u@h/db"])
def test_other_addresses_stay_as_they_are(uri):
    assert address(uri) == uri


def test_a_postgresql_that_is_cut_off_is_not_waited_for_and_what_the_user_sets_stands():
    url = make_url(address("postgresql://u:p%40q@h:5433/db"))
    assert url.query == PATIENCE
    assert (url.username, url.password, url.host, url.port, url.database) == ("u", "p@q", "h", 5433, "db")
    url = make_url(address("postgresql+psycopg2://u@h/db?sslmode=require&connect_timeout=99"))
    assert url.query == {**PATIENCE, "sslmode": "require", "connect_timeout": "99"}
    assert address(address("postgresql://u@h/db")) == address("postgresql://u@h/db")


def test_tables_of_a_new_database_are_made_by_one_at_a_time(postgres_server, tmp_path):
    """Of those that come together each finds what the one before has made."""
    from sqlalchemy import NullPool, create_engine, inspect, text

    uri, num_inside, most = address(postgres_server.uri("mlflow_users")), [0], []

    def make() -> None:
        engine = create_engine(uri, poolclass=NullPool)
        with made_once(uri, tmp_path / "lock"):
            num_inside[0] += 1
            most.append(num_inside[0])
            if not inspect(engine).has_table("made"):
                with engine.begin() as connection:
                    connection.execute(text("CREATE TABLE made (id int)"))
            num_inside[0] -= 1

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_new_file_has_mlflows_tables_or_is_not_there(tmp_path, monkeypatch):
    """MLflow cannot go on with a store in whose making it was killed."""
    from mlflow import MlflowClient

    file = tmp_path / "mlflow.db"
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "search_experiments", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make_file(file)
    (tmp_path / f"mlflow.db.0123{NEW}").write_text("half of it")
    assert not has_store(f"sqlite:///{file}")
    make_file(file)
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]
    assert not may_have(f"sqlite:///{file}", "x")
    assert MlflowClient(tracking_uri=f"sqlite:///{file}").create_experiment("x") == "1"
    assert may_have(f"sqlite:///{file}", "x")
