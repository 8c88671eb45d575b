"""Secrets in commands, settings and free text become ***; what is none stays as it is."""

import os
import re
import subprocess
import sys
from collections import UserDict
from pathlib import Path

import pytest

from orchestrator.tracking import checkout
from search_spaces.redaction import (
    is_secret_name,
    redacted_diff,
    redacted_leaves,
    redacted_setting,
    redacted_source,
    redacted_text,
    redacted_traceback,
    redacted_uri,
    without_secrets,
)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ponderay run asr.demo --seeds 3", "ponderay run asr.demo --seeds 3"),
        ("ponderay run --password hunter2 asr.demo", "ponderay run --password *** asr.demo"),
        ("ponderay run --api-key=hunter2", "ponderay run --api-key=***"),
        ("AWS_SECRET_ACCESS_KEY=hunter2 ponderay run", "AWS_SECRET_ACCESS_KEY=*** ponderay run"),
        ("ponderay run --set 'data.token=hun ter2'", "ponderay run --set data.token=***"),
        ("ponderay ui postgresql://me:hunter2@host/db", "ponderay ui postgresql://me:***@host/db"),
        ('ponderay run --set \'a={"password": "hunter2", "b": 1}\'', 'ponderay run --set a={"password": ***, "b": 1}'),
        ("ponderay run --set data.num_train_tokens=100", "ponderay run --set data.num_train_tokens=100"),
        ("ponderay 'open --token hunter2", "ponderay 'open --token ***"),
        ("ponderay run --set min_token_count=5", "ponderay run --set min_token_count=5"),
        ("WANDB_KEY=hunter2 ponderay run", "WANDB_KEY=*** ponderay run"),
        ('ponderay ui "http://me:it\'s-mine@host"', "ponderay ui http://me:***@host"),
        ("ponderay run --set model.token_dim=64", "ponderay run --set model.token_dim=64"),
        ("ponderay run --set model.token_mixing=conv", "ponderay run --set model.token_mixing=conv"),
    ],
)
def test_secrets_are_masked_in_commands(command, shown):
    assert without_secrets(command) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach postgresql://me:hunter2@host/db now", "cannot reach postgresql://me:***@host/db now"),
        ("HF_TOKEN=hunter2 was refused", "HF_TOKEN=*** was refused"),
        ("+    password = 'hunter2'  # new", "+    password = ***  # new"),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("GET https://host/x?sig=hunter2&n=1", "GET https://host/x?sig=***&n=1"),
        ("at postgresql://me:p@ss/w@host/db: refused", "at postgresql://me:***@host/db: refused"),
        ("git clone https://hunter2@host/x", "git clone https://***@host/x"),
        ("at postgresql://me@server:hunter2@host/db: refused", "at postgresql://me@server:***@host/db: refused"),
        ("ssh://git@host/x and http://host:5000/x", "ssh://git@host/x and http://host:5000/x"),
        (f"pushed with ghp_{'a' * 36}", "pushed with ***"),
        ("password=hunter2 host=db", "password=*** host=db"),
        ("MY_SSH_KEY=hunter2 DEPLOY_GITHUB_PAT=hunter2", "MY_SSH_KEY=*** DEPLOY_GITHUB_PAT=***"),
        ("ValueError: `rate` must be in [0, 1), but got 1.2.", "ValueError: `rate` must be in [0, 1), but got 1.2."),
    ],
)
def test_secrets_are_masked_in_texts(text, shown):
    assert redacted_text(text) == shown


PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + ("MIIEpAIBAAKCAQEA" * 4 + "\n") * 3 + "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123456789012-abcdefGHIJklmn",
        f"AIza{'Sy' * 17}x",
        f"sk_live_{'4eC39Hq' * 4}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        f"npm_{'aB3' * 12}",
        f"glpat-{'x1' * 10}",
        PEM,
        PEM.replace("\n", "\\n"),
        PEM.replace("\n", " "),
        PEM.replace("\n", "\n+"),
        PEM[:150],
    ],
)
def test_secrets_are_known_by_their_form_in_texts_sources_and_tracebacks(secret):
    text = f'Traceback\n  File "a.py", line 1, in f\n    use("{secret}")\nValueError: `{secret}` is refused\n'
    for redacted in (redacted_text, redacted_source, redacted_traceback, redacted_diff):
        assert redacted(text).count("***") == 2, redacted
        assert not any(part in redacted(text) for part in re.findall(r"[\w+/]{10,}", secret))


def test_the_end_of_a_private_key_alone_is_masked():
    assert redacted_diff(f"diff --git a/x b/x\n {PEM[50:]}\n") == "diff --git a/x b/x\n ***\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("AccountName=me;AccountKey=ab+/cd==;End=x", "AccountName=me;AccountKey=***;End=x"),
        ("curl -s -u me:hunter2 http://host", "curl -s -u me:*** http://host"),
        ("curl --user=me:hunter2 http://host", "curl --user=me:*** http://host"),
        ("Command '['curl', '-u', 'me:hunter2', 'host']' failed", "Command '['curl', '-u', 'me:***', 'host']' failed"),
        ("mysql -u me -phunter2 base", "mysql -u me -p*** base"),
        ("Command '['mysqldump', '-phunter2']' failed", "Command '['mysqldump', '-p***']' failed"),
        ("sshpass -p hunter2 ssh host", "sshpass -p *** ssh host"),
        ("['put', '--api-key', 'hunter2']", "['put', '--api-key', '***']"),
        ("mysql -P3306 -p base; docker run -u 1000:1000", "mysql -P3306 -p base; docker run -u 1000:1000"),
        ("curl -u me http://host:80; read --token-file /a/b", "curl -u me http://host:80; read --token-file /a/b"),
    ],
)
def test_secrets_are_masked_in_quoted_commands(text, shown):
    assert redacted_text(text) == shown


@pytest.mark.parametrize(("name", "value"), [("token_file", "/a/b"), ("pad_token_id", "50257"), ("api_key_path", "k")])
def test_what_says_where_a_secret_lies_or_counts_tokens_is_none(name, value):
    texts = (f"{name}={value}", f"{name}: {value}", f"{{'{name}': '{value}'}}", f'{name} = "{value}"')
    assert [redacted_text(text) for text in texts] == [redacted_source(text) for text in texts] == list(texts)
    command = f"ponderay run x --set {name}={value} --{name.replace('_', '-')} {value}"
    assert without_secrets(command) == command
    assert redacted_setting(name, value) == value
    assert not is_secret_name(name)


def test_the_source_that_a_traceback_quotes_may_be_a_settings_file():
    text = (
        '  File "a.yaml", line 3\n    api_key: hunter2hunter2\n  File "a.py", line 1, in f\n    api_key = make(key)\n'
    )
    assert redacted_traceback(text) == text.replace("hunter2hunter2", "***")


def test_no_file_of_this_repository_holds_what_has_the_form_of_a_secret():
    folder = Path(__file__).parents[2]
    command = ["git", "-C", str(folder), "ls-files", "*.py", "*.md", "*.toml", "*.css", "*.html", "*.js", "*.csv"]
    names = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()  # noqa: S603
    if not names:
        pytest.skip("this is no checkout")
    found = set()
    for name in (one for one in names if not one.startswith("tests/")):
        text = (folder / name).read_text(encoding="utf-8")
        if redacted_source(text) != text:
            found.add(name)
    assert found == KNOWN


KNOWN = {
    "benchmarks/bad/cases.py", "benchmarks/bad/values.py", "docs/cluster.md", "orchestrator/checks/exposure.py",
    "orchestrator/cli/serve.py",
    "orchestrator/cluster/rayjob.py", "orchestrator/environment/credentials.py", "orchestrator/server/postgres.py",
    "orchestrator/tracking/store.py", "trainables/lm/metrics.py", "trainables/secret.py",
}  # fmt: skip
"""By the word before it: addresses that are put together, and names such as `SECRET: Final` or `--pull-secret NAME`."""


def test_a_setting_is_masked_by_its_name_or_by_what_it_holds():
    assert redacted_setting("data.token", "hunter2") == "***"
    assert redacted_setting("data.url", "https://me:hunter2@host/x") == "https://me:***@host/x"
    assert redacted_setting("data.num_tokens", "5") == "5"
    for name, value in (("pad_token", "3"), ("token_budget", "1e9"), ("max_token_length", "20"), ("TOKEN_TYPE", "bpe")):
        assert redacted_setting(name, value) == value
    assert redacted_setting("pad_token", "12345678") == "***"


@pytest.mark.parametrize("password", ["pa'ss-word", 'pa"ss/word', "p@ss:word"])
@pytest.mark.parametrize("user", ["me", "me@server", ""])
def test_the_password_of_an_address_may_hold_any_sign(monkeypatch, user, password):
    uri = f"postgresql://{user}:{password}@host/db"
    shown = f"postgresql://{user}:***@host/db"
    assert redacted_uri(uri) == redacted_setting("PONDERAY_SEARCH_URI", uri) == shown
    monkeypatch.setenv("SOME_STORE", uri)
    assert redacted_text(f"the password {password} was refused") == "the password *** was refused"


def test_source_keeps_what_is_computed_and_loses_what_is_written_into_it():
    computed = "+    token = next(tokens)\n+    password: str = settings.password\n"
    assert redacted_source(computed) == computed
    assert redacted_source("+API_KEY = 'hunter2'\n-x(token=\"hunter2\")") == "+API_KEY = ***\n-x(token=***)"
    assert redacted_source('+URI = "http://me:hunter2@host"') == '+URI = "http://me:***@host"'


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            "+    export AWS_SECRET_ACCESS_KEY=hunter2 HF_TOKEN=hunter2;",
            "+    export AWS_SECRET_ACCESS_KEY=*** HF_TOKEN=***;",
        ),
        ("+  MLFLOW_TRACKING_PASSWORD: hunter2", "+  MLFLOW_TRACKING_PASSWORD: ***"),
        ("+export HF_TOKEN=$TOKEN_OF_MINE", "+export HF_TOKEN=$TOKEN_OF_MINE"),
        ("+NUM_TOKENS = 3\n+PASSWORD = find()", "+NUM_TOKENS = 3\n+PASSWORD = find()"),
    ],
)
def test_sources_of_shells_hold_secrets_without_quotes(source, shown):
    assert redacted_source(source) == shown


def test_a_traceback_keeps_its_source_and_loses_secrets_of_its_message():
    text = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n'
        "    raise ValueError(open_store(token=token))\n"
        "          ^^^^^^^^^^\n"
        "ValueError: no store at http://me:hunter2@host with token=hunter2\n"
        "    and password: hunter2\n"
    )
    assert redacted_traceback(text) == text.replace("hunter2", "***")


def test_what_the_environment_holds_is_masked_whatever_stands_before_it(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hun/ter+two")
    monkeypatch.setenv("MY_STORE", "postgresql://me:hunter%2Btwenty@host/db")
    monkeypatch.setenv("MY_TOKEN_PATH", "/home/me/token-of-mine")
    monkeypatch.setenv("MY_TOKEN", "short")
    monkeypatch.setenv("OLDPWD", "/home/researcher")
    monkeypatch.setenv("DB_PWD", "hunter-thirty")
    assert redacted_text("hunter-thirty is not in /home/researcher/runs") == "*** is not in /home/researcher/runs"
    assert redacted_text("it said hun/ter+two, hun%2Fter%2Btwo") == "it said ***, ***"
    assert redacted_text("it said hunter+twenty, hunter%2Btwenty") == "it said ***, ***"
    assert redacted_text("it read /home/me/token-of-mine in short") == "it read /home/me/token-of-mine in short"
    assert redacted_setting("note", "of hun/ter+two") == "of ***"


@pytest.mark.parametrize("name", ["MY_SECRETS", "DBPASS", "GH_TOKENS", "AZURE_STORAGE_CONNECTION_STRING"])
def test_what_may_not_travel_with_a_job_is_masked_too(name, monkeypatch):
    monkeypatch.setenv(name, "hunter-twelve")
    monkeypatch.setenv("NUM_TOKENS", "1200000000")
    assert redacted_text("hunter-twelve of 1200000000") == "*** of 1200000000"


def test_what_is_recorded_of_the_command_and_of_changes_has_no_secrets(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/bin/ponderay", "run", "asr.demo", "--set", "data.token=hunter2"])
    assert checkout.command() == "ponderay run asr.demo --set data.token=***"
    monkeypatch.setattr(checkout, "_git", lambda *_: "+password = 'hunter2'")
    checkout.git_diff.cache_clear()
    try:
        assert checkout.git_diff() == "+password = ***"
    finally:
        checkout.git_diff.cache_clear()


def test_a_variable_that_another_thread_takes_away_meanwhile_is_none(monkeypatch):
    """As the driver's thread takes MLFLOW_TRACKING_URI from a trainable while another one writes to MLflow."""

    class Changing(UserDict):
        def __iter__(self):
            return iter([*self.data, "TAKEN_AWAY"])

    monkeypatch.setattr(os, "environ", Changing({"API_KEY": "hunter2hunter2"}))
    assert redacted_text("with hunter2hunter2") == "with ***"


def test_a_config_is_redacted_value_by_value_and_as_the_environment_is_now(monkeypatch):
    config = {"data.token": "abc", "path": "/home/opensesame/x", "rate": 0.5, "note": "a b", "none": None}
    plain = {"data.token": "***", "path": "/home/opensesame/x", "rate": "0.5", "note": "a b", "none": "None"}
    assert redacted_leaves(config) == plain
    monkeypatch.setenv("MY_PASSWORD", "opensesame")
    assert redacted_leaves(config) == plain | {"path": "/home/***/x"}
    monkeypatch.delenv("MY_PASSWORD")
    assert redacted_leaves(config) == plain


def test_a_thousand_configs_of_equal_values_are_looked_into_once():
    looked: list[str] = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is redacted_setting.__code__:
            looked.append(frame.f_locals["path"])

    sys.setprofile(note)
    try:
        for number in range(1000):
            redacted_leaves({"of.a.thousand": "the same", "number": number})
    finally:
        sys.setprofile(None)
    assert looked == ["of.a.thousand"]
