"""The command that serves: what it refuses, and the files and names that go with a server; none is started."""

import configparser
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler

import pytest

from orchestrator.cli import main as cli
from orchestrator.cli import serve as serve_command
from orchestrator.environment.credentials import Credentials, administrator
from orchestrator.machine.network import allowed_hosts, allowed_origins, free_port, is_loopback, link
from orchestrator.server import background
from orchestrator.server.environment import environment
from orchestrator.server.folder import ServerFolder, Serving
from orchestrator.server.serve import TrackingServer, answers
from trainables.errors import InputError


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def call(monkeypatch, *arguments: str) -> int:
    """The exit code of `ponderay serve ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["ponderay", "serve", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return int(raised.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (["--artifacts", "gs://bucket"], {}, "`--artifacts` must be a folder or s3://"),
        (["--artifacts", "s3://key:sesame@bucket"], {}, "keys in AWS_"),
        ([], {"PONDERAY_SERVER_STORE": "mysql://me:sesame@h/d"}, "`PONDERAY_SERVER_STORE` must be postgresql://"),
        ([], {"PONDERAY_SERVER_USERS_STORE": "postgresql://me:sesame@h/d"}, "goes with PONDERAY_SERVER_STORE"),
        (["--host", "192.0.2.1"], {}, "192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path, monkeypatch, capsys, home, arguments, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert call(monkeypatch, "--folder", str(tmp_path / "f"), *arguments) == 2
    said = capsys.readouterr().err
    assert expected in said and "sesame" not in said and "Traceback" not in said
    assert not (tmp_path / "f" / "postgres").exists()


def test_a_port_that_is_taken_and_a_missing_package_are_refused(tmp_path, monkeypatch, capsys, home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert call(monkeypatch, "--folder", str(tmp_path / "f"), "--port", port) == 2
    assert f"Port {port} of 127.0.0.1 is in use" in capsys.readouterr().err
    monkeypatch.setattr(serve_command, "PACKAGES", {"no_such_module": "mlflow[auth]"})
    assert call(monkeypatch, "--folder", str(tmp_path / "f")) == 2
    assert "pip install -e '.[cluster]'" in capsys.readouterr().err


def test_artifacts_lie_in_the_servers_folder_or_in_one_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert serve_command._artifacts(None, tmp_path) == str(tmp_path / "artifacts")
    assert serve_command._artifacts("~/kept", tmp_path) == str(tmp_path / "kept")
    with pytest.raises(InputError, match=r"--artifacts must name .* ~nosuchuser/x is below the home of nobody"):
        serve_command._artifacts("~nosuchuser/x", tmp_path)


def test_a_folder_has_one_name_whatever_links_lead_to_it(tmp_path, monkeypatch, capsys):
    """By which the processes of its server are found again."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert call(monkeypatch, "--folder", str(tmp_path / "link"), "--stop") == 2
    assert f"but {tmp_path.resolve() / 'real'} never had one" in capsys.readouterr().err


def test_to_stop_the_server_of_a_folder_that_had_none_is_refused(tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, "--folder", str(tmp_path / "f"), "--stop") == 2
    assert f"{tmp_path / 'f'} never had one" in capsys.readouterr().err and not (tmp_path / "f").exists()


def test_one_serves_from_a_folder_and_is_known_while_it_does(tmp_path):
    folder = ServerFolder(tmp_path / "f")
    folder.make()
    assert folder.path.stat().st_mode & 0o077 in (0, 0o011)
    with folder.held("127.0.0.1", 5000):
        found = folder.serving()
        assert found and found.pid == os.getpid() and found.link == "http://127.0.0.1:5000" and not found.is_ready
        with pytest.raises(InputError, match=r"already runs at http://127.0.0.1:5000 .*--stop"), folder.held("x", 1):
            pass
        state = folder.path / "server.json"
        written = state.read_text()
        state.write_text(written.replace(f'"started": "{found.started}"', '"started": "1"'))
        assert folder.serving() is None  # its number is another's
    assert folder.serving() is None


def test_what_it_was_told_to_ignore_it_ignores_while_it_serves(tmp_path, monkeypatch):
    server = TrackingServer(ServerFolder(tmp_path / "f"), "127.0.0.1", free_port(), str(tmp_path))
    heard = {}
    numbers = (signal.SIGHUP, signal.SIGTERM)

    def serve(self, console) -> int:
        heard.update({number: signal.getsignal(number) != signal.SIG_IGN for number in numbers})
        return 0

    monkeypatch.setattr(TrackingServer, "_serve", serve)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as by nohup
    try:
        assert server.run(serve_command.out) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard == {signal.SIGHUP: False, signal.SIGTERM: True}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_server_at_all_newer_addresses_alone_is_asked_at_one_of_them():
    class Newer(socketserver.TCPServer):
        address_family = socket.AF_INET6

        def server_bind(self) -> None:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as MLflow's
            super().server_bind()

    with Newer(("::", 0), SimpleHTTPRequestHandler) as server:
        port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        assert link("::", port) == f"http://[::1]:{port}" and link("0.0.0.0", port) == f"http://127.0.0.1:{port}"
        assert answers("::", port, "/") and not answers("127.0.0.1", port, "/")
        server.shutdown()
        thread.join()


IN_BACKGROUND = """
import sys
from pathlib import Path
from orchestrator.server import background
from orchestrator.server.folder import ServerFolder
from orchestrator.server.serve import TrackingServer
def run(self, console): raise RuntimeError("broken")
TrackingServer.run = run
background.start(TrackingServer(ServerFolder(Path(sys.argv[1])), "127.0.0.1", 1, ""))
"""


def test_what_breaks_in_the_background_is_in_the_log(tmp_path):
    command = [sys.executable, "-c", IN_BACKGROUND, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert f"ended at once; see {tmp_path}/server.log" in done.stderr
    assert "RuntimeError: broken" in (tmp_path / "server.log").read_text()


def test_one_that_runs_already_says_that_options_change_nothing(tmp_path, monkeypatch, capsys, home):
    (tmp_path / "f").mkdir()
    running = Serving(1, "", "", "127.0.0.1", free_port(), is_ready=True)
    monkeypatch.setattr(background, "start", lambda server: (running, False))
    assert call(monkeypatch, "--background", "--folder", str(tmp_path / "f"), "--port", "9") == 0
    said = capsys.readouterr().out
    assert "already runs with its earlier options; `ponderay serve --stop` ends it" in said
    assert f"PONDERAY_TRACKING_URI={running.link}" in said and "127.0.0.1:9\n" not in said


def test_requests_may_name_loopback_at_any_port_and_the_server_but_no_strangers_name(monkeypatch):
    from mlflow.server.security_utils import is_allowed_host_header

    def allowed(host: str, names: tuple[str, ...]) -> dict[str, bool]:
        patterns = [*allowed_hosts(host, 5000)]
        return {name: is_allowed_host_header(patterns, name) for name in names}

    tunnels = ("localhost", "localhost:5000", "127.0.0.1:6000", "[::1]:5000")
    strangers = ("evil.example", "evil.example:5000", "localhost.evil.example:5000", "127.0.0.1", "")
    assert allowed("127.0.0.1", tunnels) == dict.fromkeys(tunnels, True)
    assert allowed("127.0.0.1", strangers) == dict.fromkeys(strangers, False) | {"127.0.0.1": True}
    own = ("192.0.2.7:5000", "192.0.2.7:80", f"{socket.gethostname()}:5000")
    assert list(allowed("192.0.2.7", own).values()) == [True, False, False]
    assert list(allowed("0.0.0.0", own).values()) == [False, False, True]
    monkeypatch.setenv("MLFLOW_SERVER_ALLOWED_HOSTS", "lab.example, other.example:8443")
    assert allowed("127.0.0.1", ("lab.example", "other.example:8443", "lab.example:1")) == {
        "lab.example": True, "other.example:8443": True, "lab.example:1": False,
    }  # fmt: skip
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "lab")] == [True] * 3 + [
        False
    ] * 2


def test_a_port_is_chosen_on_which_nothing_listens(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offered = iter([taken.getsockname()[1], free := free_port()])
        monkeypatch.setattr("orchestrator.machine.network.secrets.choice", lambda ports: next(offered))
        assert free_port() == free


def test_its_own_pages_may_change_what_is_recorded_and_a_strangers_may_not(monkeypatch):
    from mlflow.server.security_utils import should_block_cors_request

    def blocked(host: str, *origins: str) -> list[bool]:
        allowed = [*allowed_origins(host, 5000)]
        return [should_block_cors_request(origin, "POST", allowed) for origin in origins]

    here = f"http://{socket.gethostname()}:5000"
    strangers = ("http://evil.example", "http://evil.example:5000", "http://192.0.2.7", "https://lab.example")
    assert blocked("127.0.0.1", "http://localhost:6000", here, *strangers) == [False, *[True] * 5]
    assert blocked("192.0.2.7", "http://192.0.2.7:5000", here, *strangers) == [False, *[True] * 5]
    assert blocked("0.0.0.0", here, *strangers) == [False, *[True] * 4]
    monkeypatch.setenv("MLFLOW_SERVER_ALLOWED_HOSTS", "*,*:5000,lab.example,host.lab:5000")
    assert blocked("127.0.0.1", "http://host.lab:5000", *strangers) == [False, *[True] * 4]
    monkeypatch.setenv("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", "https://lab.example, https://other.example")
    assert blocked("127.0.0.1", "https://other.example", *strangers) == [False, *[True] * 3, False]


def test_the_servers_settings_are_its_own(tmp_path, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_PASSWORD", "_MLFLOW_AUTH_ADMIN_BOOTSTRAPPED"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("MLFLOW_S3_ENDPOINT_URL", "http://127.0.0.1:9000")
    found = environment(
        tmp_path, "postgresql://h/d", "postgresql://me:a%40b@h/users", "/artifacts", ["http://a:1", "https://b"]
    )
    assert found["MLFLOW_SERVER_CORS_ALLOWED_ORIGINS"] == "http://a:1,https://b"
    assert "x" not in {v for n, v in found.items() if "MLFLOW" in n} and found["MLFLOW_S3_ENDPOINT_URL"].endswith(
        "9000"
    )
    read = configparser.ConfigParser()  # as MLflow reads it
    read.read(found["MLFLOW_AUTH_CONFIG_PATH"])
    users = read["mlflow"]
    assert (users["database_uri"], users["default_permission"]) == ("postgresql://me:a%40b@h/users", "READ")
    assert Credentials(users["admin_username"], users["admin_password"]) == administrator(tmp_path)
