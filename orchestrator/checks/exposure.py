"""What stands open: to other machines, to other users of this one, and in what is recorded."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from orchestrator.checks.check import Check
from orchestrator.checks.listening_sockets import check_listening_sockets
from orchestrator.checks.store_access import check_store
from orchestrator.checks.unauthenticated_probe import JOBS, OPEN, status_of
from orchestrator.cluster import token as ray_token
from orchestrator.cluster.address import names_cluster
from orchestrator.environment.credentials import client_file
from orchestrator.environment.settings import SETTINGS_FILE, Settings
from orchestrator.machine.network import is_loopback, tunnel
from search_spaces.redaction import redacted_text

OTHERS: Final = 0o077
LOOKED_AT: Final = "nothing is exposed: Ray's token, listening servers, stores and files with secrets"
START_WITH_TOKEN: Final = (
    "Start the cluster with RAY_AUTH_MODE=token, and a token that `ray get-auth-token --generate` makes."
)


def check_exposure(settings: Settings, dashboard: str = "") -> list[Check]:
    """What stands open, one check each; a single one where nothing does.

    Args:
        dashboard: of the cluster at RAY_ADDRESS, where it is known.
    """
    found = [
        *check_token(),
        *check_cluster(),
        *check_job_api(os.environ.get("RAY_API_SERVER_ADDRESS") or dashboard),
        *check_listening_sockets(),
        *_check_stores(settings),
        *check_secret_files(),
    ]
    return found or [Check("exposure", "ok", LOOKED_AT)]


def before_run(settings: Settings) -> list[Check]:
    """What is to be said before a sweep starts; none of it keeps it from starting."""
    found = [*check_token(), *check_cluster(), *_check_stores(settings)]
    return [replace(check, state="warning") for check in found]


def check_token() -> Iterator[Check]:
    """Whether a cluster made here would ask for a token."""
    mode = os.environ.get(ray_token.MODE, "token")
    if mode.lower() != "token" and not names_cluster():
        found = f"{ray_token.MODE}={mode}: anyone who reaches a cluster started here can run anything as this user"
        yield Check("ray token", "warning", found, f"Unset {ray_token.MODE}.")


def check_cluster() -> Iterator[Check]:
    """Whether the cluster at RAY_ADDRESS asks for a token."""
    address = os.environ.get("RAY_ADDRESS", "")
    if names_cluster() and ray_token.ask(address) == "let in":
        found = f"the cluster at {address} asks for no token: anyone who reaches its ports can run anything there"
        yield Check("ray cluster", "failed", found, START_WITH_TOKEN)


def check_job_api(address: str) -> Iterator[Check]:
    """Whether the API for jobs at `address` asks for a token, and none can overhear it.

    Args:
        address: as RAY_API_SERVER_ADDRESS; empty where there is none.
    """
    if not address:
        return
    url = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        yield Check("job API", "failed", "RAY_API_SERVER_ADDRESS is not a URL", "Correct it.")
        return
    if status_of(url, JOBS) == OPEN:
        found = f"{redacted_text(address)} takes jobs without a token: anyone who reaches it can run anything there"
        yield Check("job API", "failed", found, START_WITH_TOKEN)
    elif parts.scheme == "http" and not is_loopback(host) and ray_token.mode() == "token":
        yield Check("job API", "warning", f"the token goes to {host} unencrypted", tunnel(host, port))


def check_secret_files() -> Iterator[Check]:
    """Files with secrets that others on this machine can read."""
    files = [ray_token.token_file(), client_file()]
    if SETTINGS_FILE.is_file() and redacted_text(text := SETTINGS_FILE.read_text(encoding="utf-8")) != text:
        files.append(SETTINGS_FILE)
    for file in files:
        if (rights := _rights(file)) & OTHERS:
            found = f"other users of this machine may read or change {file} ({rights:o})"
            yield Check("secret file", "warning", found, f"`chmod 600 {shlex.quote(str(file))}`")


def _rights(file: Path) -> int:
    """0 where the file is not there, or this user may not even look."""
    with contextlib.suppress(OSError):
        return file.stat().st_mode & 0o777
    return 0


def _check_stores(settings: Settings) -> list[Check]:
    checks = (
        check_store("tracking access", settings.tracking_uri),
        check_store("search access", settings.search_store),
    )
    return [check for check in checks if check.state != "ok"]
