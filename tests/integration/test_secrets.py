"""No secret that a run is given is in anything that it writes, says or starts, but for the files meant to hold it.

Run as a program, `ponderay` with two sweeps of its own; every replicate of seed 2 fails with a password in its message.
"""

import base64
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil
import pytest

from orchestrator.machine.network import free_port
from orchestrator.server.postgres import PACKAGED, Postgres
from search_spaces.sweep import Sweep
from tests.integration import tiny as tiny_trainable
from tests.integration.sweeps import searched, tiny
from tests.integration.tiny import TinyConfig, evaluate, fingerprint, num_steps, selection
from tests.waiting import until
from trainables.trial import Trial

__all__ = ["evaluate", "fingerprint", "num_steps", "selection", "train"]

MODULE = "tests.integration.test_secrets"
REPOSITORY = Path(__file__).parents[2]
LISTED, SEARCHED = "tiny.secretive", "tiny.seeking"
OF_MESSAGE = "WHAT_THE_ERROR_SAYS"
"""A variable whose name says nothing of a secret: only the form of the address can give it away."""

NAMES = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "GITHUB_TOKEN",
)  # fmt: skip
SAMPLE_S = 0.05


def sweep(name: str, smoke: bool = False) -> Sweep:
    """The sweep `name`, whose replicates of seed 2 fail."""
    changes = {"name": name, "trainable": MODULE, "base": TinyConfig(num_epochs=2)}
    return searched(2, **changes) if name == SEARCHED else tiny({"a": {}, "b": {"x": 0.75}}, **changes)


def train(config: TinyConfig, trial: Trial) -> None:
    """Trains and, under seed 2, fails as a client of a database does."""
    tiny_trainable.train(config, trial)
    if config.seed == 2:
        address = f"postgresql://me:{quote(os.environ[OF_MESSAGE], safe='')}@db.invalid/x"
        print(f"connecting to {urlsplit(address).hostname}")
        raise RuntimeError(f"no answer from {address}")


@dataclass
class Place:
    """A folder with everything that a user has: a home, a working folder, temporary files of Ray."""

    folder: Path
    given: Mapping[str, str]
    said: bytes = b""
    command_lines: set[bytes] = field(default_factory=set)

    @property
    def environment(self) -> dict[str, str]:
        """Of all that runs here: nothing of the user but where programs are."""
        own = {"HOME": str(self.folder / "home"), "RAY_TMPDIR": str(self.folder / "r"), "RAY_USAGE_STATS_ENABLED": "0"}
        own |= {"PYTHONPATH": str(REPOSITORY), "PONDERAY_RUNS": str(self.folder / "runs")}
        own["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return own | dict(self.given)

    def run(self, *arguments: str, module: str = MODULE, **settings: str) -> int:
        """The exit code of `ponderay ARGUMENTS`; what it prints is kept."""
        command, environment = [sys.executable, "-m", module, *arguments], self.environment | settings
        with self.watching():
            done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, timeout=480)  # noqa: S603
        self.said += done.stdout + done.stderr
        return done.returncode

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Notes the arguments of every process of the machine: of a young one often, of an old one every second."""
        is_over = threading.Event()

        def look() -> None:
            num_seen = Counter[int]()
            while not is_over.wait(SAMPLE_S):
                for process in psutil.pids():
                    num_seen[process] += 1
                    if num_seen[process] < 20 or num_seen[process] % 20 == 0:
                        with contextlib.suppress(OSError):
                            self.command_lines.add(Path(f"/proc/{process}/cmdline").read_bytes())

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield
        finally:
            is_over.set()
            looking.join()


def forms(secret: str) -> set[bytes]:
    """`secret` as it is, in URLs, and what any base64 of a text with it in the middle must hold."""
    plain = secret.encode()
    encoded = [base64.b64encode(b"x" * shift + plain) for shift in range(3)]
    inner = {text[(4 if shift else 0) : len(text) // 4 * 4 - 4] for shift, text in enumerate(encoded)}
    return {plain, quote(secret, safe="").encode(), *inner, *(one.translate(URL_SAFE) for one in inner)}


URL_SAFE = bytes.maketrans(b"+/", b"-_")


def found_in(content: bytes, given: Mapping[str, str]) -> list[str]:
    """Names of the secrets that are in `content`."""
    return [name for name, secret in given.items() if any(form in content for form in forms(secret))]


def leaks(folder: Path, given: Mapping[str, str]) -> list[str]:
    """`FILE: NAME` for each secret in a file, in an archive's member, or in the name of a file."""
    found = []
    entries = [Path(parent) / name for parent, folders, files in os.walk(folder) for name in (*folders, *files)]
    for file in sorted(entries):
        label = str(file.relative_to(folder))
        found += [f"{label} (its name): {name}" for name in found_in(label.encode(), given)]
        if not file.is_file() or file.is_symlink():
            continue
        with contextlib.suppress(OSError):
            found += [f"{label}: {name}" for name in found_in(file.read_bytes(), given)]
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    members = {one: archive.read(one) for one in archive.namelist()}
                found += [f"{label}/{one}: {name}" for one, text in members.items() for name in found_in(text, given)]
    return found


def made_up() -> str:
    """A secret of its own, with characters that URLs write in another way."""
    return f"{secrets.token_hex(8)}+/{secrets.token_hex(8)}"


def test_a_planted_secret_is_found_in_every_form(tmp_path):
    given = {"ONE": made_up(), "TWO": made_up()}
    one = given["ONE"]
    (tmp_path / "plain.db").write_bytes(b"\0\1" + one.encode() + b"\2")
    (tmp_path / "url.log").write_text(f"http://me:{quote(one, safe='')}@host")
    for shift in range(3):
        header = base64.b64encode(f"{'m' * shift}:{one}:".encode())
        (tmp_path / f"header{shift}").write_bytes(b"Basic " + header)
    with zipfile.ZipFile(tmp_path / "packed", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", one * 2)
    (tmp_path / f"named {one.replace('/', '%2F').replace('+', '%2B')}").touch()
    (tmp_path / "clean").write_text("nothing")
    names = {leak.rpartition(":")[0] for leak in leaks(tmp_path, given)}
    assert {"plain.db", "url.log", "header0", "header1", "header2", "packed/member"} < names and len(names) == 7
    assert all(leak.endswith(": ONE") for leak in leaks(tmp_path, given))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for Ray's sockets have to lie below it; others cannot look into it."""
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp", ignore_cleanup_errors=True) as name:
        place = Path(name)
        place.chmod(0o711)
        for part in ("home", "runs", "r", "server"):
            (place / part).mkdir()
        yield place


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """The address of an MLflow that is told nothing of the secrets."""
    port, place = free_port(), folder / "server"
    uri, own = f"http://127.0.0.1:{port}", {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
    own |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{place}/mlflow.db"}
    options = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--artifacts-destination", place / "files"]
    with (place / "server.log").open("ab") as log:
        running = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "mlflow", "server", *options],
            env=os.environ | own, stdout=log, stderr=log, start_new_session=True, cwd=place,
        )  # fmt: skip

    def answers() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{uri}/health", timeout=2) as answer:
            return answer.status == 200
        return False

    try:
        until(answers)
        yield uri
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@pytest.fixture
def database(folder: Path) -> Iterator[Postgres]:
    """PostgreSQL for Optuna."""
    if not list(PACKAGED.glob("*/bin/initdb")):
        pytest.skip("PostgreSQL is not installed")
    running = Postgres(folder / "database", free_port())
    running.start()
    try:
        yield running
    finally:
        running.stop()


def check_nothing_leaked(place: Place, given: Mapping[str, str], meant: set[str]) -> None:
    """All that was written below the place, said, or to be seen in the list of processes."""
    assert min(map(len, given.values())) > 30
    time.sleep(1)  # the last processes of Ray write their logs
    found = {leak for leak in leaks(place.folder, given) if leak.rpartition(":")[0] not in meant}
    assert found == set()
    assert found_in(place.said, given) == []
    assert {name for line in place.command_lines for name in found_in(line, given)} == set()
    assert any(b"raylet" in line for line in place.command_lines)


@pytest.mark.slow
@pytest.mark.long
def test_no_secret_of_a_run_is_left_behind_shown_or_seen(folder, server, database):
    given = {name: made_up() for name in (*NAMES, OF_MESSAGE)} | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
    of_server = made_up()
    uri = server.replace("://", f"://me:{quote(of_server, safe='')}@")
    place = Place(folder, given | {"MLFLOW_TRACKING_USERNAME": "me"})
    assert place.run("run", LISTED, "--cpus", "2", PONDERAY_TRACKING_URI=uri) == 1, place.said.decode()
    in_file = folder / "ponderay.toml"
    in_file.write_text(f'tracking_uri = "{uri}"\nsearch_uri = "{database.uri("optuna")}"\n')
    in_file.chmod(0o600)
    assert place.run("run", SEARCHED, "--cpus", "2", "--verbose", RAY_AUTH_TOKEN="") == 1, place.said.decode()
    for name in (LISTED, SEARCHED):
        for command in (("status", name), ("report", name, "--bundle", f"{name}.zip")):
            assert place.run(*command) == 0, place.said.decode()
    assert place.run("doctor", "--format", "json") in (0, 3)
    assert b"no answer from postgresql://me:" in place.said
    token = folder / "home" / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o077 == 0
    of_files = {"of tracking": of_server, "of Ray": token.read_text()}
    of_files["of the search"] = urlsplit(database.uri("optuna")).password or ""
    check_nothing_leaked(place, given | of_files, {"ponderay.toml", "home/.ray/auth_token", "database/password"})


if __name__ == "__main__":
    from orchestrator.cli.main import main
    from search_spaces import find

    find.find_sweep = sweep
    main()
