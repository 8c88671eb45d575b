"""A plain field whose value looks like a secret is pointed at before a sweep runs."""

from pydantic import SecretStr

from orchestrator.checks.sweep import check_secrets
from search_spaces.sweep import Condition, Objective, Sweep
from trainables.config import Config


class Open(Config):
    db_url: str = "postgresql://me:hunter2@host/db"
    token_file: str = "/a/b"
    seed: int = 1


class Declared(Config):
    db_url: SecretStr = SecretStr("postgresql://me:hunter2@host/db")
    token_file: str = "/a/b"
    seed: int = 1


def sweep(base: Config) -> Sweep:
    return Sweep("s", "About.", "toy", base, (Objective("loss"),), (Condition("a"),))


def test_a_plain_field_that_looks_like_a_secret_is_named_with_the_remedy():
    (found,) = check_secrets(sweep(Open()))
    assert found.state == "warning" and "`db_url` looks like a secret" in found.found and "DB_URL" in found.remedy
    assert "hunter2" not in found.line()


def test_a_declared_secret_and_the_path_of_a_file_are_fine():
    assert check_secrets(sweep(Declared())) == []
