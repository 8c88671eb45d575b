"""Ray's token: who has it may run anything on the cluster, and who has it not may do nothing there.

Ray takes it from RAY_AUTH_TOKEN, else from the file RAY_AUTH_TOKEN_PATH, else from `~/.ray/auth_token`. It neither
encrypts nor expires.
"""

import contextlib
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Final, Literal

from orchestrator.cluster import ray_internals
from orchestrator.machine.durable_files import create_atomically
from trainables.errors import InputError

MODE: Final = "RAY_AUTH_MODE"
PLACE: Final = re.compile(r"[^/\s]+:\d+")
ANSWER_S: Final = 3.0
TURNED_AWAY: Final = b"turned away"
"""No cluster's identity."""

REMEDY: Final = "Copy ~/.ray/auth_token from the cluster's head to this machine and `chmod 600 ~/.ray/auth_token`."


def prepare(address: str) -> None:
    """Has Ray ask for and show a token in what this process starts or joins next, unless RAY_AUTH_MODE says otherwise.

    For a cluster made here the token is made, too, if there is none: Ray would let everybody read it.

    Args:
        address: as of `ray.init`; `auto` and an empty one name no cluster that could be asked, and are trusted to suit.

    Raises:
        InputError: if the cluster at `address` does not take this user's token, or asks for none that is insisted on.
    """
    if address == "local":
        if os.environ.setdefault(MODE, "token").lower() == "token":
            _keep_token()
    elif ask(address) == "let in":
        if os.environ.get(MODE, "").lower() == "token":
            rule = f"{MODE} is token, but the cluster at {address} asks for none"
            raise InputError(f"{rule}. Unset it, or start the cluster with a token.")
        os.environ[MODE] = "disabled"  # the workers of an open cluster have no token to show to this process
    elif reason := fault(address):
        raise InputError(f"The Ray cluster at {address} {reason}. {remedy()}")
    os.environ.setdefault(MODE, mode())
    ray = sys.modules.get("ray")
    if ray is not None and not ray.is_initialized():
        ray_internals.read_mode_again()


def mode() -> str:
    """`token` or `disabled`, as this process would meet a cluster that is there."""
    return os.environ.get(MODE, "").lower() or ("token" if token() else "disabled")


def token() -> str:
    """The token that Ray would show; empty where there is none."""
    if from_environment := os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return from_environment
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return token_file().read_text(encoding="utf-8").strip()
    return ""


def presented_token() -> str:
    """The token that this process shows to a cluster; empty where it goes without."""
    return token() if mode() == "token" else ""


def token_file() -> Path:
    """The file in which Ray looks for the token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or _default_file())


def fault(address: str) -> str:
    """Why the cluster at HOST:PORT turns this user away; empty where it does not, or does not answer."""
    own = presented_token()
    if ask(address, own) != "turned away":
        return ""
    if own:
        source = "RAY_AUTH_TOKEN" if os.environ.get("RAY_AUTH_TOKEN") else str(token_file())
        return f"does not accept the token in {source}"
    return f"asks for a token, but {MODE} is {mode()}" if token() else "asks for a token, but this machine has none"


def remedy() -> str:
    """What to do about a fault."""
    return REMEDY if mode() == "token" or not token() else f"Unset {MODE}, or set it to `token`."


def ask(address: str, presented: str = "", answer_s: float = ANSWER_S) -> Literal["let in", "turned away", "unknown"]:
    """What the cluster at HOST:PORT does with who shows this token, or none; `unknown` if not asked, or silent."""
    cluster = identity(address, presented, answer_s)
    if cluster is None:
        return "unknown"
    return "turned away" if cluster == TURNED_AWAY else "let in"


def identity(address: str, presented: str, answer_s: float = ANSWER_S) -> bytes | None:
    """What tells the cluster at HOST:PORT from the one that its head is after a restart.

    TURNED_AWAY where the cluster does that with this token; None where nobody is asked, or answers.
    """
    if not PLACE.fullmatch(address):
        return None
    import grpc  # type: ignore[import-untyped]

    proof = [("authorization", f"Bearer {presented}")] if presented else None
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            return bytes(channel.unary_unary(ray_internals.CLUSTER_ID)(b"", timeout=answer_s, metadata=proof))
        except grpc.RpcError as error:
            return TURNED_AWAY if error.code() is grpc.StatusCode.UNAUTHENTICATED else None


def _default_file() -> Path:
    return Path.home() / ".ray" / "auth_token"


def _keep_token() -> None:
    """Makes the token in Ray's format if there is none; a file that Ray has made becomes its owner's alone.

    Where no file can be kept, this process has a token of its own, for a cluster made here lives no longer.
    """
    if not token():
        with contextlib.suppress(OSError):
            file = token_file()
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_atomically(file, secrets.token_hex(32), 0o600)
    if not token():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    with contextlib.suppress(OSError):
        file = _default_file()
        if file.stat().st_uid == os.geteuid():
            file.chmod(0o600)
