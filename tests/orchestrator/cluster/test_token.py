"""Ray's token: made where there is none, shown where it is asked for, and left out where it is not."""

import contextlib
import os
import stat
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from orchestrator.checks import exposure, nodes
from orchestrator.cluster import ray_internals
from orchestrator.cluster import token as ray_token
from tests.orchestrator.checks.test_sweep import closed_port
from trainables.errors import InputError

TOKEN = "a1b2" * 16
pytestmark = pytest.mark.usefixtures("bare_home")


@contextlib.contextmanager
def cluster(token: str) -> Iterator[str]:
    """The address of what answers as a Ray head that asks for `token`, or for none where it is empty."""

    def get_cluster_id(_: bytes, context: grpc.ServicerContext) -> bytes:
        shown = dict(context.invocation_metadata()).get("authorization")
        if token and shown != f"Bearer {token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken")
        return b""

    with futures.ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        service, method = ray_internals.CLUSTER_ID.strip("/").split("/")
        handler = grpc.unary_unary_rpc_method_handler(get_cluster_id)
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: handler})])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


def rights(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_the_token_is_made_for_its_owner_alone_in_the_format_of_ray(bare_home):
    previous = os.umask(0)
    try:
        ray_token.prepare("local")
    finally:
        os.umask(previous)
    file = bare_home / ".ray" / "auth_token"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert rights(file) == 0o600 and rights(file.parent) == 0o700
    made = file.read_text()
    assert len(bytes.fromhex(made)) == 32
    assert [path.name for path in file.parent.iterdir()] == ["auth_token"]
    ray_token.prepare("local")
    assert ray_token.token() == file.read_text() == made


def test_a_token_that_another_process_makes_meanwhile_stays(bare_home, monkeypatch):
    (bare_home / ".ray").mkdir()
    (bare_home / ".ray" / "auth_token").write_text("theirs")
    looks, token = iter([""]), ray_token.token
    monkeypatch.setattr(ray_token, "token", lambda: next(looks, "theirs") and token())
    ray_token.prepare("local")
    assert list(looks) == [] and token() == "theirs" and os.environ.get("RAY_AUTH_TOKEN", "") == ""
    assert len(list((bare_home / ".ray").iterdir())) == 1


def test_a_token_file_that_ray_has_made_is_closed(bare_home):
    (bare_home / ".ray").mkdir()
    file = bare_home / ".ray" / "auth_token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    (warning,) = exposure.check_secret_files()
    assert (warning.state, warning.remedy) == ("warning", f"`chmod 600 {file}`")
    assert TOKEN not in str(warning)
    ray_token.prepare("local")
    assert rights(file) == 0o600 and file.read_text() == TOKEN
    assert list(exposure.check_secret_files()) == []


def test_what_the_user_says_of_authentication_holds(bare_home, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray_token.prepare("local")
    assert os.environ["RAY_AUTH_MODE"] == "disabled" and not (bare_home / ".ray").exists()
    (check,) = exposure.check_token()
    assert check.state == "warning" and "RAY_AUTH_MODE=disabled" in check.found


def test_a_token_of_the_environment_needs_no_file(bare_home, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    ray_token.prepare("local")
    assert ray_token.token() == TOKEN and not (bare_home / ".ray").exists()


@pytest.mark.parametrize("place", ["", "RAY_AUTH_TOKEN_PATH"])
def test_where_no_file_can_be_kept_the_token_is_of_this_process_alone(bare_home, monkeypatch, place):
    (bare_home / ".ray").touch()
    if place:
        monkeypatch.setenv(place, str(bare_home / ".ray" / "own"))
    ray_token.prepare("local")
    made = os.environ["RAY_AUTH_TOKEN"]
    assert ray_token.token() == made and len(bytes.fromhex(made)) == 32
    ray_token.prepare("local")
    assert os.environ["RAY_AUTH_TOKEN"] == made


def test_a_file_that_holds_no_token_is_no_hindrance(bare_home):
    (bare_home / ".ray").mkdir()
    (bare_home / ".ray" / "auth_token").touch(0o600)
    ray_token.prepare("local")
    assert len(bytes.fromhex(os.environ["RAY_AUTH_TOKEN"])) == 32


@pytest.mark.parametrize("hindered", ["stat", "chmod"])
def test_a_token_file_that_cannot_be_closed_is_left_to_the_doctor(bare_home, monkeypatch, hindered):
    (bare_home / ".ray").mkdir()
    (bare_home / ".ray" / "auth_token").write_text(TOKEN)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as closed:
        closed.setattr(Path, hindered, refuse)
        ray_token.prepare("local")
    assert ray_token.token() == TOKEN and "RAY_AUTH_TOKEN" not in os.environ


def test_a_token_file_of_another_user_is_not_touched(bare_home, monkeypatch):
    (bare_home / ".ray").mkdir()
    file = bare_home / ".ray" / "auth_token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    ray_token.prepare("local")
    assert rights(file) == 0o644


def test_a_cluster_with_the_same_token_is_joined_with_it(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    with cluster(TOKEN) as address:
        ray_token.prepare(address)
        assert os.environ["RAY_AUTH_MODE"] == "token"
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert list(exposure.check_cluster()) == []


@pytest.mark.parametrize(
    ("mode", "token", "says"),
    [
        (None, "", "asks for a token, but this machine has none. Copy ~/.ray/auth_token .*`chmod 600"),
        ("token", "", "asks for a token, but this machine has none. Copy ~/.ray/auth_token"),
        (None, "wrong-one", "does not accept the token in RAY_AUTH_TOKEN. Copy ~/.ray/auth_token"),
        ("disabled", TOKEN, "asks for a token, but RAY_AUTH_MODE is disabled. Unset RAY_AUTH_MODE"),
    ],
)
def test_a_cluster_that_turns_the_user_away_is_one_line_at_once(monkeypatch, mode, token, says):
    if mode:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    if token:
        monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    with cluster(TOKEN) as address:
        with pytest.raises(InputError, match=says) as raised:
            ray_token.prepare(address)
        assert "\n" not in str(raised.value) and TOKEN not in str(raised.value)
        monkeypatch.setenv("RAY_ADDRESS", address)
        check = nodes.check_ray()
        assert check.state == "failed" and "token" in check.found and check.remedy


@pytest.mark.parametrize("token", ["", TOKEN])
def test_a_cluster_that_asks_for_no_token_fails_the_doctor_and_warns_of_itself_in_a_run(settings, monkeypatch, token):
    monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    with cluster("") as address:
        monkeypatch.setenv("RAY_ADDRESS", address)
        ray_token.prepare(address)
        assert os.environ["RAY_AUTH_MODE"] == "disabled"
        (check,) = exposure.check_exposure(settings)
        assert check.state == "failed" and f"the cluster at {address} asks for no token" in check.found
        assert [one.state for one in exposure.before_run(settings)] == ["warning"]


def test_a_token_is_not_insisted_on_where_the_cluster_asks_for_none(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "Token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    with cluster("") as address, pytest.raises(InputError, match=f"{address} asks for none. Unset it, or start"):
        ray_token.prepare(address)
    assert os.environ["RAY_AUTH_MODE"] == "Token"


def test_what_does_not_answer_as_ray_is_left_to_the_check_of_the_cluster(monkeypatch):
    address = f"127.0.0.1:{closed_port()}"
    assert {ray_token.ask(one) for one in (address, "auto", "", "ray://127.0.0.1:1")} == {"unknown"}
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert list(exposure.check_cluster()) == []


def test_tune_sends_no_keys_with_its_trials(monkeypatch):
    from ray.tune.execution import class_cache

    from orchestrator.cluster.session import keep_keys_here

    monkeypatch.setattr(class_cache, "ENV_VARS_TO_PROPAGATE", class_cache.ENV_VARS_TO_PROPAGATE | {"AWS_SESSION_TOKEN"})
    keep_keys_here()
    assert class_cache.ENV_VARS_TO_PROPAGATE
    secret = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    assert [name for name in class_cache.ENV_VARS_TO_PROPAGATE if any(word in name for word in secret)] == []
