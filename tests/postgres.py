"""A PostgreSQL server for the tests that want one, and tests that run on every kind of store.

A test, or a module's `pytestmark`, marked `every_store` runs once with SQLite and once more, as a slow test, with
PostgreSQL for tracking and for searches.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.machine.network import free_port
from orchestrator.server.postgres import Postgres
from orchestrator.tracking.client import Tracking
from tests.orchestrator.recorded import empty_store
from tests.servers import server_folder


@dataclass(frozen=True)
class PostgresStore:
    """Two fresh databases of one server, and what may befall them.

    Attributes:
        number: in the databases' names.
    """

    server: Postgres
    number: int

    @property
    def tracking_uri(self) -> str:
        """Of a database with MLflow's tables."""
        return self.server.uri(f"mlflow_{self.number}")

    @property
    def search_uri(self) -> str:
        """Of a database with Optuna's."""
        return self.server.uri(f"optuna_{self.number}")

    def crash(self) -> None:
        """Ends the server at once, as a crash does: it writes nothing, and recovers when it is started again."""
        pid = int((self.server.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        while self.server.is_running():
            time.sleep(0.02)

    def cut_connections(self) -> None:
        """Ends every connection to the databases."""
        end_connections(self.server, f"mlflow_{self.number}", f"optuna_{self.number}")


def execute(server: Postgres, *statements: str) -> None:
    """Carries out statements, each by itself."""
    engine = create_engine(server.uri("postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def end_connections(server: Postgres, *databases: str) -> None:
    """Ends every connection to these databases, as an administrator may."""
    named = ", ".join(f"'{database}'" for database in databases)
    execute(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ({named})")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A server whose databases `mlflow` and `optuna` hold nothing but their tables; nobody may connect to them."""
    with server_folder() as folder:
        server = Postgres(folder / "postgres", free_port())
        try:
            server.start()
            execute(server, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")  # the machine does not crash
            _make_tables(server)
            yield server
        finally:
            server.stop()


def _make_tables(server: Postgres) -> None:
    from optuna.storages import RDBStorage

    Tracking(Settings(server.folder, server.uri("mlflow")))
    RDBStorage(server.uri("optuna"))
    execute(server, *(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false" for name in ("mlflow", "optuna")))
    end_connections(server, "mlflow", "optuna")


_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def postgres_store(postgres_server: Postgres) -> Iterator[PostgresStore]:
    """Databases of the test's own, gone afterwards with all connections to them."""
    store = PostgresStore(postgres_server, next(_numbers))
    names = {name: f"{name}_{store.number}" for name in ("mlflow", "optuna")}
    execute(postgres_server, *(f"CREATE DATABASE {own} TEMPLATE {name}" for name, own in names.items()))
    yield store
    postgres_server.start()
    execute(postgres_server, *(f"DROP DATABASE {own} WITH (FORCE)" for own in names.values()))


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Gives a working folder an empty store for tracking, whose tables are made, and one for searches."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return _give_sqlite
    databases: PostgresStore = request.getfixturevalue("postgres_store")

    def give_postgresql(workplace: Path) -> None:
        (workplace / "runs").mkdir()
        monkeypatch.setenv("PONDERAY_TRACKING_URI", databases.tracking_uri)
        monkeypatch.setenv("PONDERAY_SEARCH_URI", databases.search_uri)

    return give_postgresql


@pytest.fixture
def tracking(workplace: Path, store: Callable[[Path], None]) -> Tracking:
    """An empty store, opened."""
    store(workplace)
    return Tracking(read_settings())


def _give_sqlite(workplace: Path) -> None:
    (workplace / "runs").mkdir()
    (workplace / "runs" / "mlflow.db").write_bytes(empty_store())


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", "every_store: with SQLite, and as a slow test with PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs marked tests that have a store on each kind."""
    if "store" in metafunc.fixturenames and metafunc.definition.get_closest_marker("every_store"):
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
        metafunc.parametrize("store", kinds, indirect=True)
