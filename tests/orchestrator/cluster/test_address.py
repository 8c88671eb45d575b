"""An address that no sweep can use is refused with what to do, and Ray is not asked, for it would try for minutes."""

import contextlib
import socket
import sys

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.cluster import address as cluster_address
from tests.door import PLAIN, ponderay, write
from tests.orchestrator.checks.test_sweep import closed_port
from trainables.errors import InputError

MALFORMED = [
    "nonsense",
    "ray://10.0.0.1:10001",
    "10.0.0.1:0",
    "10.0.0.1:65536",
    "10.0.0.1:" + "9" * 5000,
    ":6379",
    "a b:1",
]


@pytest.mark.parametrize("address", MALFORMED, ids=[one[:25] for one in MALFORMED])
def test_what_is_no_address_is_refused_without_asking(workplace, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("somebody is asked"))
    for refuse in (
        cluster_address.refuse_malformed,
        cluster_address.refuse_silent,
        cluster_address.refuse_unusable,
    ):
        with pytest.raises(InputError, match=r"RAY_ADDRESS must be HOST:PORT .* but got .*\. Start the cluster"):
            refuse()


def test_the_command_refuses_what_is_no_address_without_loading_ray(workplace, monkeypatch):
    write(workplace, f"{PLAIN}\nimport atexit, sys\natexit.register(lambda: print('ray' in sys.modules))\n")
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    for command in (["run", "toy.py:toy"], ["plan", "toy.py:toy"]):
        done = ponderay(workplace, *command)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "but got 'nonsense'" in done.stderr
        assert "True" not in done.stdout
    assert not (workplace / "runs").exists()


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_cluster_that_is_not_there_is_refused_with_its_address(workplace, monkeypatch, command):
    write(workplace, PLAIN)
    address = f"127.0.0.1:{closed_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    done = ponderay(workplace, command, "toy.py:toy")
    assert done.returncode == 2
    assert done.stderr == (
        f"ponderay: RAY_ADDRESS={address} cannot be used: [Errno 111] Connection refused. Start the cluster, correct "
        "RAY_ADDRESS, or unset it to run on this machine.\n"
    )


def test_one_that_listens_and_never_answers_is_refused(workplace, monkeypatch):
    monkeypatch.setattr(cluster_address, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(InputError, match=r"does not answer as Ray within 0\.3 s\. Start the cluster"):
            cluster_address.refuse_silent()


def test_one_that_hangs_up_is_not_ray(workplace, monkeypatch):
    """Such as a server of another protocol."""
    import threading

    def hang_up(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=hang_up, args=(server,), daemon=True).start()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(InputError, match="what listens there does not answer as Ray"):
            cluster_address.refuse_silent()
        server.shutdown(socket.SHUT_RDWR)


def test_any_cluster_of_this_machine_is_refused_only_where_none_lets_this_user_in(workplace, monkeypatch):
    answers = {"10.0.0.1:1": "turned away", "10.0.0.2:2": "unknown"}
    monkeypatch.setattr(cluster_address, "other_instances", lambda owners=(): list(answers))
    monkeypatch.setattr("orchestrator.cluster.token.ask", lambda address, *_, **__: answers[address])
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InputError, match=r"10\.0\.0\.1:1: turned away; 10\.0\.0\.2:2: unknown"):
        cluster_address.refuse_unusable()
    answers["10.0.0.2:2"] = "let in"
    cluster_address.refuse_unusable()
    answers.clear()
    with pytest.raises(InputError, match="none runs"):
        cluster_address.refuse_silent()
    monkeypatch.setenv("RAY_ADDRESS", "local")
    cluster_address.refuse_silent()


def test_no_token_goes_to_another_users_process_that_says_it_is_ray(workplace, monkeypatch, tmp_path):
    """Nobody is asked: the address is read off a process that any user can start."""
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "cmdline").write_bytes(b"raylet\0--gcs-address=127.0.0.1:6390\0")
    look = cluster_address.other_instances
    monkeypatch.setattr(cluster_address, "other_instances", lambda owners=(): look(tmp_path, owners and (4321,)))
    monkeypatch.setattr("orchestrator.cluster.token.ask", lambda *_, **__: pytest.fail("asked"))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InputError, match=r"of another user of this machine \(127\.0\.0\.1:6390\), who would get"):
        cluster_address.refuse_unusable()


def test_a_job_is_refused_before_its_sweep_is_loaded(workplace, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", f"http://127.0.0.1:{closed_port()}")
    write(workplace, "import sys\nsys.loaded_by_test = True\n", "strange.py")
    done = CliRunner().invoke(app, ["submit", "strange.py:toy"])
    assert isinstance(done.exception, InputError)
    assert "Connection refused" in str(done.exception)
    assert not hasattr(sys, "loaded_by_test")


def test_the_raylet_of_a_socket_is_found_by_its_command_line(tmp_path):
    for pid, name in ((3, "/tmp/a/sockets/raylet"), (14, "/tmp/b/sockets/raylet")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(f"/x/raylet\0--raylet_socket_name={name}\0".encode())
    assert cluster_address.raylet_at("/tmp/b/sockets/raylet", tmp_path) == 14
    assert cluster_address.raylet_at("/tmp/c/sockets/raylet", tmp_path) == 0


@pytest.mark.parametrize("address", ["", "local"])
def test_an_empty_address_is_none(workplace, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    cluster_address.refuse_silent()
    assert not cluster_address.names_cluster()


def test_where_processes_cannot_be_seen_ray_looks_for_its_clusters(workplace, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setattr(cluster_address, "PROCESSES", tmp_path / "none")
    cluster_address.refuse_silent()
