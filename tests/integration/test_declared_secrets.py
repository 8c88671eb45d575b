"""No secret of a config is in anything that a sweep writes, and declared ones come to the replicates all the same."""

import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cluster.upload import find_upload, packed
from orchestrator.environment.settings import Settings
from tests.integration.test_secrets import leaks

REPOSITORY = Path(__file__).parents[2]

OF_DEFAULT = [f"of_default_{i}" for i in range(6)]
MARKED = [f"marked_{i}" for i in range(4)]
OF_SET = [f"of_set_{i}" for i in range(4)]
OF_ENVIRONMENT = [f"of_environment_{i}" for i in range(4)]
NESTED = [f"nested_{i}" for i in range(4)]
DECLARED = [*OF_DEFAULT, *MARKED, *OF_SET, *OF_ENVIRONMENT, *NESTED]

PLAIN = {
    "api_key": "{}",
    "password": "{}",
    "db_url": "postgresql://me:{}@host/db",
    "hook": "xoxb-{}",
    "signed": "eyJhbGciOiJIUzI1NiJ9.{}.abc",
    "maps": "AIzaSyAbcdefghijk{}",
    "paid": "sk_live_{}",
    "package": "npm_{}",
    "account": "AccountName=me;AccountKey={};End=x",
    "key_file": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----",
}
"""Fields that declare nothing: what they hold, by name."""

RAISED = {
    "of_curl": "Command '['curl', '-u', 'me:{}', 'http://host']' failed",
    "of_mysql": "mysql -h host -p{} base",
    "of_option": "store --password {} x",
    "of_text": "token: {}",
}
UPLOADED = {"kubeconfig": "{}", "gcp-key.json": "{}", "secrets/mine.txt": "{}", ".env~": "A={}"}

TRAINABLE = """
import hashlib
from pathlib import Path
from typing import Annotated
import ponderay
from pydantic import SecretStr


class Client(ponderay.Config):
    {nested}
    retries: int = 3


class Toy(ponderay.Config):
    {fields}
    client: Client = Client({given})
    width: int = 8
    seed: int = 1


def text(value):
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def train(config, trial):
    values = [text(getattr(config, name)) for name in {own!r}]
    values += [text(getattr(config.client, name)) for name in {inner!r}]
    assert hashlib.sha256(" ".join(values).encode()).hexdigest() == Path("expected").read_text()
    if config.seed == 2:
        raise RuntimeError(f"{{config!r}} {{values}} " + Path("raised").read_text())
    trial.report({{"loss": 1 / config.width}}, step=1)


toy = ponderay.Sweep(
    name="toy", description="Secrets everywhere.", trainable=__name__, base=Toy(), seeds=(1, 2), reference="width=8",
    conditions=ponderay.grid({{"width": [4, 8]}}), objectives=(ponderay.Objective("loss"),),
)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for Ray's sockets have to lie below it."""
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.slow
def test_no_secret_of_a_config_is_left_anywhere(folder):
    planted = {name: secrets.token_hex(12) for name in (*DECLARED, *PLAIN, *RAISED, *UPLOADED, "auth_token")}
    assert len(planted) >= 40
    work, outcome = folder / "work", folder / "written"
    for place in (work, outcome):
        place.mkdir()
    own = [*OF_DEFAULT, *MARKED, *OF_SET, *OF_ENVIRONMENT]
    fields = [f"{name}: SecretStr = SecretStr({planted[name]!r})" for name in OF_DEFAULT]
    fields += [f"{name}: Annotated[str, ponderay.SECRET] = {planted[name]!r}" for name in MARKED]
    fields += [f"{name}: SecretStr | None = None" for name in (*OF_SET, *OF_ENVIRONMENT)]
    fields += [f"{name}: str = {form.format(planted[name])!r}" for name, form in PLAIN.items()]
    text = TRAINABLE.format(
        nested="\n    ".join(f"{name}: Annotated[str, ponderay.SECRET]" for name in NESTED),
        fields="\n    ".join([*fields, 'auth_token: str = ""']),
        given=", ".join(f"{name}={planted[name]!r}" for name in NESTED),
        own=own,
        inner=NESTED,
    )
    (work / "toy.py").write_text(text)
    expected = hashlib.sha256(" ".join(planted[name] for name in (*own, *NESTED)).encode()).hexdigest()
    (work / "expected").write_text(expected)
    (work / "raised").write_text(" ".join(form.format(planted[name]) for name, form in RAISED.items()))
    in_sources = {*OF_DEFAULT, *MARKED, *NESTED, *PLAIN, *RAISED}
    assert {leak.rpartition(": ")[2] for leak in leaks(work, planted)} == in_sources
    given = [f"{name}={planted[name]}" for name in (*OF_SET, "auth_token")]
    options = [option for one in [*given, "client.retries=4"] for option in ("--set", one)]
    environment = {name.upper(): planted[name] for name in OF_ENVIRONMENT}
    said = ""
    for command in (
        ["run", "toy.py:toy", *options, "--cpus", "2"],
        ["status", "toy.py:toy", "--format", "csv"],
        ["report", "toy.py:toy", "--bundle", str(outcome / "toy.zip")],
        ["verify", str(outcome / "toy.zip")],
        ["show", "toy.py:toy"],
    ):
        said += ponderay(command, work, outcome, folder / "r", environment)
    assert "2 complete, 2 failed" in said and "looks like a secret" in said
    (outcome / "said").write_text(said)
    (outcome / "upload.zip").write_bytes(upload(work, planted))
    assert leaks(outcome, planted) == []
    declared = {name: planted[name] for name in DECLARED}
    assert leaks(folder / "r", declared) == []


def ponderay(command: list[str], work: Path, outcome: Path, ray: Path, environment: dict[str, str]) -> str:
    """What the command prints."""
    own = {
        "HOME": str(work),
        "PONDERAY_RUNS": str(outcome / "runs"),
        "RAY_TMPDIR": str(ray),
        "PYTHONPATH": str(REPOSITORY),
    }
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "PATH": os.environ["PATH"]}
    line = [sys.executable, "-m", "orchestrator", *command]
    done = subprocess.run(  # noqa: S603
        line, cwd=work, env=own | quiet | environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout + done.stderr


def upload(work: Path, planted: dict[str, str]) -> bytes:
    """What `submit` would send of a folder like this, with files that hold secrets beside the model."""
    project = work.parent / "project"
    for name, form in UPLOADED.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(form.format(planted[name]))
    (project / "pyproject.toml").write_text("")
    (project / "model.py").write_text("")
    found = find_upload(Settings(work / "runs", "sqlite:///x.db"), project)
    assert {file.name for file in found.files} == {"pyproject.toml", "model.py"}
    with packed(found) as package:
        return package.read_bytes()
