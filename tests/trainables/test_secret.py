"""Declared secrets: no part of keys, names and records, asked for by the field's name where they are needed."""

import json
import os
from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import SecretStr

from trainables.config import (
    Config,
    as_json,
    content_hash,
    flatten,
    offer_secrets,
    restored,
    with_secrets,
    with_value,
)
from trainables.errors import InputError
from trainables.secret import SECRET


class Client(Config):
    dsn: Annotated[str, SECRET]
    retries: int = 3


class Lab(Config):
    api_key: SecretStr | None = None
    phrase: Annotated[str | None, SECRET] = "by default"
    client: Client = Client(dsn="hunter-dsn")
    others: tuple[Client, ...] = ()
    seed: int = 1


class Retries(Config):
    retries: int = 3


class WithoutSecrets(Config):
    client: Retries = Retries()
    others: tuple[int, ...] = ()
    seed: int = 1


@dataclass(frozen=True)
class Plain:
    api_key: Annotated[str, SECRET] = "hunter-plain"
    seed: int = 1


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("API_KEY", "PHRASE", "DSN"):
        monkeypatch.setenv(name, "x")  # so that it is put back
        monkeypatch.delenv(name)


@pytest.fixture
def lab() -> Lab:
    return Lab(api_key=SecretStr("hunter-key"), others=(Client(dsn="hunter-other"),))


def test_a_secret_is_in_no_key_no_record_and_no_table(lab):
    assert content_hash(Lab()) == content_hash(WithoutSecrets())
    assert content_hash(lab) == content_hash(with_value(lab, "api_key", "another"))
    assert "hunter" not in json.dumps(as_json(lab)) and as_json(lab)["api_key"] == {"secret from": "API_KEY"}
    assert "hunter" not in str(flatten(Lab(api_key=SecretStr("hunter-key")))) and list(flatten(Plain())) == ["seed"]
    assert content_hash(Plain("a")) == content_hash(Plain("b")) and "hunter" not in str(as_json(Plain()))


def test_a_record_is_made_a_config_with_what_the_environment_has(lab, monkeypatch):
    record = json.loads(json.dumps(as_json(lab)))
    with pytest.raises(InputError, match=r"`api_key` is a secret, .* set the environment variable API_KEY where"):
        restored(Lab, record)
    for name in ("API_KEY", "PHRASE", "DSN"):
        monkeypatch.setenv(name, f"rotated {name}")
    found = restored(Lab, record)
    assert found.api_key and found.api_key.get_secret_value() == "rotated API_KEY"
    assert (found.phrase, found.client.dsn, found.others[0].dsn) == ("rotated PHRASE", "rotated DSN", "rotated DSN")
    assert content_hash(found) == content_hash(lab)
    assert restored(Lab, as_json(Lab(phrase=None, client=Client(dsn="a")))).api_key is None


def test_workers_find_what_a_config_was_given_in_the_environment(monkeypatch):
    monkeypatch.setenv("PHRASE", "of the environment")
    given = Lab(api_key=SecretStr("hunter-key"))
    offer_secrets([given, Lab()])
    assert [os.environ.get(name) for name in ("API_KEY", "PHRASE", "DSN")] == [
        "hunter-key",
        "of the environment",
        "hunter-dsn",
    ]
    assert with_secrets(Lab()).api_key == SecretStr("hunter-key") and with_secrets(given).phrase == "of the environment"
    offer_secrets([with_value(given, "phrase", "by hand")])
    assert os.environ["PHRASE"] == "by hand"
    with pytest.raises(InputError, match=r"`client\.dsn` is asked for as DSN, .* different values"):
        offer_secrets([Lab(), Lab(client=Client(dsn="another"))])


def test_a_refusal_does_not_say_the_secret(lab):
    with pytest.raises(InputError, match="`api_key` is a secret and must be text; set API_KEY") as refused:
        with_value(lab, "api_key", 12345678)
    assert "12345678" not in str(refused.value)
