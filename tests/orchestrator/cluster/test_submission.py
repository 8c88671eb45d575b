"""The command of a job and its environment: whole words, and no secrets."""

import json
import math
import os
import subprocess
import sys
from typing import Annotated

import pytest

import ponderay
from orchestrator.cluster.ray_internals import JOB_VARIABLE
from orchestrator.cluster.submission import (
    OF_JOBS,
    RAYJOB,
    TYPED_NAME,
    command_of_job,
    continued_by,
    entrypoint,
    parse_variables,
    run_options,
    submit_again,
    this_command,
)
from search_spaces.find import sweep_functions
from trainables.config import flatten, secret_fields
from trainables.errors import InputError

SECRETS = (
    "AWS_SECRET_ACCESS_KEY=abc",
    "AWS_ACCESS_KEY_ID=abc",
    "RAY_AUTH_TOKEN=abc",
    "MLFLOW_TRACKING_PASSWORD=abc",
    "LAB_SIGNING_KEY=abc",
    "GITHUB_PAT=abc",
    "SECRETS=abc",
    "API_TOKENS=abc",
    "passwords=abc",
    "DBPASS=abc",
    "SSHPASS=abc",
    "AZURE_STORAGE_CONNECTION_STRING=abc",
    "PONDERAY_SEARCH_URI=postgresql://me:sesame@lab/optuna",
    "HEADER=Bearer abcdefghijk",
)


def test_a_shell_hands_on_every_word_as_it_was_given(tmp_path):
    words = [
        "--smoke",
        "--set",
        "data.root=/a b/'c' $HOME;`id`\n\"d\"",
        "--resource",
        "num_workers=1:2",
        "--seeds",
        "3",
    ]
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\nfor word in "$@"; do printf '%s\\0' "$word"; done\n""")
    python.chmod(0o755)
    options = run_options(True, [words[2]], "3", [words[4]], accept_code=False, max_device_hours=math.inf)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["sh", "-c", entrypoint("asr.demo", options)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert said.split("\0")[:4] == ["-m", "orchestrator", "run", "asr.demo"]
    assert said.split("\0")[4:-1] == words


def test_what_has_its_default_is_not_said():
    assert run_options(False, None, None, None, accept_code=False, max_device_hours=math.inf) == []
    given = run_options(False, None, None, None, accept_code=True, max_device_hours=2.5)
    assert given == ["--accept-code", "--max-device-hours", "2.5"]
    assert run_options(False, None, None, None, False, math.inf, retry=["a", "b c"]) == [
        *("--retry", "a"),
        *("--retry", "b c"),
    ]
    chosen = run_options(False, None, None, None, False, math.inf, conditions=["a,b=1", "c d"])
    assert chosen == ["--condition", "a,b=1", "--condition", "c d"]
    again = submit_again(entrypoint("asr.demo", given), {}, None)
    assert again == "ponderay submit asr.demo --accept-code --max-device-hours 2.5"


def test_a_secret_does_not_get_into_the_command():
    with pytest.raises(InputError, match=r"`--set store\.password` looks like a secret") as raised:
        run_options(False, ["store.password=sesame"], None, None, accept_code=False, max_device_hours=math.inf)
    assert "sesame" not in str(raised.value)


def test_no_field_of_a_shipped_sweep_is_taken_for_a_secret():
    for function in sweep_functions().values():
        fields = [f"{path}={value}" for path, value in flatten(function("full").base).items()]
        run_options(False, fields, None, None, accept_code=False, max_device_hours=math.inf)


def test_variables_are_those_that_are_named(monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://lab:5000")
    assert parse_variables(["PONDERAY_TRACKING_URI", "EMPTY=", "A=b=c"]) == {
        "PONDERAY_TRACKING_URI": "http://lab:5000", "EMPTY": "", "A": "b=c",
    }  # fmt: skip
    assert parse_variables(None) == {}


@pytest.mark.parametrize(
    "name",
    ["RAY_AUTH_MODE", "PATH", "PYTHONPATH", "PONDERAY_DATA", "PONDERAY_RUNS", "PONDERAY_STORAGE", "KEYBOARD",
     "AWS_ENDPOINT_URL", "MAX_TOKENS", "PONDERAY_NUM_TOKENS", "PROXY_BYPASS", "SSL_CERT_FILE", "OMP_NUM_THREADS"],
)  # fmt: skip
def test_names_that_only_sound_like_secrets_travel(name):
    assert parse_variables([f"{name}=1"]) == {name: "1"}


@pytest.mark.parametrize(("given", "said"), [("PONDERAY_NOT_SET", "PONDERAY_NOT_SET is not set"), ("a b=c", "'a b'")])
def test_a_variable_that_is_none_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        parse_variables([given])


@pytest.mark.parametrize("given", SECRETS)
def test_secrets_do_not_travel(given, monkeypatch):
    name, _, value = given.partition("=")
    monkeypatch.setenv(name, value)
    for form in (name, given):
        with pytest.raises(
            InputError, match=f"`--env {name}` looks like a secret.*on the cluster's machines"
        ) as raised:
            parse_variables([form])
        assert value not in str(raised.value)


def test_a_secret_that_a_config_declares_does_not_travel_whatever_its_name():
    class Lab(ponderay.Config):
        pin: Annotated[str | None, ponderay.SECRET] = None

    assert secret_fields(Lab) == {"pin"}
    with pytest.raises(InputError, match="`--env PIN` looks like a secret"):
        parse_variables(["PIN=1234"])


def test_what_a_job_was_doing_is_continued_by_sending_it_again(monkeypatch):
    for name in (JOB_VARIABLE, "SLURM_JOB_ID", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    options = ["search_spaces.asr:SWEEPS.demo", "--smoke", "--set", "controller.mu=0.3"]
    plain = "search_spaces.asr:SWEEPS.demo --smoke --set controller.mu=0.3"
    assert continued_by(options) == f"ponderay run {plain}"
    variables = {"PONDERAY_TRACKING_URI": "http://127.0.0.1:5000", **OF_JOBS}
    monkeypatch.setenv(JOB_VARIABLE, json.dumps({"runtime_env": {"env_vars": variables}}))
    assert continued_by(options) == f"ponderay submit {plain} --env PONDERAY_TRACKING_URI=http://127.0.0.1:5000"
    monkeypatch.setattr(sys, "argv", ["__main__.py", "run", *options])
    assert command_of_job() == f"ponderay submit {plain} --env PONDERAY_TRACKING_URI", "it stands in bundles"
    metadata = {"ponderay.sweep": "asr.demo.smoke", TYPED_NAME: "models/demo.py:demo"}
    monkeypatch.setenv(JOB_VARIABLE, json.dumps({"metadata": metadata}))
    assert continued_by(options) == "ponderay submit models/demo.py:demo --smoke --set controller.mu=0.3"
    monkeypatch.setenv(JOB_VARIABLE, json.dumps({"runtime_env": {}}))
    assert continued_by(options) == f"ponderay submit {plain}"
    monkeypatch.setenv(
        JOB_VARIABLE, json.dumps({"metadata": {"ponderay.sweep": "asr.demo", RAYJOB: "asr-demo-5feb49"}})
    )
    again = "kubectl get rayjob asr-demo-5feb49 -o yaml | kubectl replace --force -f -"
    assert this_command() == again and command_of_job() == ""
    monkeypatch.setattr(sys, "argv", ["my_own_job.py"])
    assert command_of_job() == ""
    monkeypatch.delenv(JOB_VARIABLE)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    assert continued_by(options) == f"ponderay run {plain}", "somebody types it in an allocation of his own"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/shared/runs/.slurm-17-a1b2c3/auth_token")
    assert continued_by(options) == f"ponderay submit {plain} --slurm --nodes 4"
