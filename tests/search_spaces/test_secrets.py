"""Secrets of a sweep's configs are in no name and no setting of a condition, declared or not."""

import re
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import SecretStr

from search_spaces.distributions import Choice
from search_spaces.sweep import Condition, Objective, Search, Sweep, grid
from trainables.config import Config
from trainables.errors import InputError
from trainables.secret import SECRET


class Client(Config):
    dsn: Annotated[str, SECRET] = "by default"
    retries: int = 3


class Lab(Config):
    api_key: SecretStr | None = None
    store: str = "none"
    client: Client = Client()
    seed: int = 1


def lab(**changes) -> Sweep:
    conditions = (Condition("a"), Condition("b", {"store": "other", "client": {"dsn": "x"}}))
    return replace(Sweep("lab", "About.", "toy", Lab(), (Objective("loss"),), conditions), **changes)


def test_a_secret_that_is_set_is_in_no_name_and_no_settings():
    sweep = lab().with_values({"api_key": "hunter-one", "client.dsn": "hunter-two", "client.retries": 4})
    assert [c.name for c in sweep.conditions] == ["a,retries=4", "b,retries=4"]
    assert [dict(c.settings) for c in sweep.conditions] == [{"client.retries": 4}] * 2
    for condition in sweep.conditions:
        config = sweep.config(condition, 1)
        assert (config.api_key, config.client.dsn) == (SecretStr("hunter-one"), "hunter-two")


def test_what_looks_like_a_secret_is_digits_of_a_hash_in_names_and_settings():
    url = "postgresql://me:hunter2@host/db"
    sweep = lab(conditions=(Condition("a"),)).with_values({"store": url})
    (condition,) = sweep.conditions
    assert re.fullmatch(r"a,store=hidden-[0-9a-f]{4}", condition.name) and "hunter2" not in str(condition.settings)
    assert sweep.config(condition, 1).store == url
    names = [one.name for one in grid({"store": [url, "other", f"{url}2"]})]
    assert "hunter2" not in str(names) and len(set(names)) == 3 and names[1] == "store=other"


def test_a_secret_makes_no_condition():
    with pytest.raises(InputError, match=r"name must not hold the secret `client\.dsn`; set DSN instead") as refused:
        lab(conditions=grid({"client.dsn": ["hunter2", "hunter3"]}))
    assert "hunter" not in str(refused.value)
    with pytest.raises(InputError, match="are the same setting") as refused:
        lab(conditions=grid({"api_key": ["hunter2", "hunter3"]}))
    assert "hunter" not in str(refused.value)
    with pytest.raises(InputError, match="`api_key` is a secret, which makes no condition"):
        lab(conditions=(), search=Search({"api_key": Choice(("hunter2", "hunter3"))}, num_trials=2))
