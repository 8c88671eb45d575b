"""PostgreSQL of our own: made once, found again, and started again however it ended."""

import os
import signal
import subprocess
import time

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from orchestrator.machine.network import free_port
from orchestrator.server import postgres as module
from orchestrator.server.postgres import DATABASES, Postgres, find_program
from tests.servers import arguments_of_all
from trainables.errors import InputError


def ask(uri: str, question: str) -> list[str]:
    engine = create_engine(uri)
    try:
        with engine.begin() as connection:
            return list(connection.execute(text(question)).scalars())
    finally:
        engine.dispose()


def number(server: Postgres) -> int:
    return int((server.folder / "data" / "postmaster.pid").read_text().split()[0])


def test_it_asks_for_its_password_and_shows_it_to_nobody(postgres):
    uri = postgres.uri("mlflow")
    assert set(DATABASES) < set(ask(uri, "SELECT datname FROM pg_database"))
    password = (postgres.folder / "password").read_text()
    assert (postgres.folder / "password").stat().st_mode & 0o777 == 0o600 and not list(postgres.folder.glob("*.told"))
    with pytest.raises(OperationalError, match="password"):
        ask(uri.replace(password, "wrong"), "SELECT 1")
    assert password not in arguments_of_all()
    started = psutil.Process(number(postgres))
    assert {c.laddr.ip for c in started.net_connections() if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_it_is_found_again_and_keeps_what_it_holds_even_when_it_was_killed(postgres):
    ask(postgres.uri("mlflow"), "CREATE TABLE kept AS SELECT 7 AS x; SELECT 1")
    killed = number(postgres)
    Postgres(postgres.folder, postgres.port).start()
    assert number(postgres) == killed
    os.kill(killed, signal.SIGKILL)
    while postgres.is_running():
        time.sleep(0.02)
    postgres.stop()
    with subprocess.Popen(["/bin/sleep", "60"]) as other:  # got the number of the one that was killed
        lock = postgres.folder / "data" / "postmaster.pid"
        lock.write_text(lock.read_text().replace(str(killed), str(other.pid), 1))
        postgres.start()
        assert other.poll() is None
        other.kill()
    assert ask(postgres.uri("mlflow"), "SELECT x FROM kept") == [7]
    postgres.stop()
    assert not postgres.is_running()


def test_what_was_cut_off_while_it_was_made_is_made_anew(postgres):
    fresh = Postgres(postgres.folder.parent / "fresh", free_port())
    (fresh.folder / "data.part").mkdir(parents=True)
    (fresh.folder / "data.part" / "PG_VERSION").write_text("15")
    fresh.start()
    assert fresh.is_running()
    fresh.stop()


def test_without_postgresql_or_with_that_of_another_version_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PACKAGED", tmp_path)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="apt-get install postgresql"):
        find_program("initdb")
    for version in ("9", "14", "15"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()
    assert find_program("initdb") == str(tmp_path / "15" / "bin" / "initdb")
    assert find_program("initdb", "14") == str(tmp_path / "14" / "bin" / "initdb")
    with pytest.raises(InputError, match="PostgreSQL 13, which made the data, is needed"):
        find_program("initdb", "13")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL as another user")
def test_a_folder_that_its_user_cannot_enter_is_refused(tmp_path):
    find = tmp_path / "closed"
    find.mkdir(mode=0o700)
    with pytest.raises(InputError, match=r"who cannot enter .*Choose") as raised:
        Postgres(find / "postgres", free_port()).start()
    assert "\n" not in str(raised.value) and not list(tmp_path.rglob("*.told"))
