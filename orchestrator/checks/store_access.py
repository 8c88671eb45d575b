"""Who may read and change what is recorded: passwords of the tracking store and of Optuna's, and who hears them."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from orchestrator.checks.check import Check
from orchestrator.checks.unauthenticated_probe import EXPERIMENTS, OPEN, status_of
from orchestrator.environment.credentials import client_file
from orchestrator.machine.network import is_loopback, tunnel
from orchestrator.tracking.store import store_kind

ENCRYPTED: Final = ("require", "verify-ca", "verify-full")
LOCK: Final = "`ponderay serve` starts one that asks for a password."


def check_store(name: str, uri: str) -> Check:
    """Whether a store asks for a password, and no other machine can overhear it.

    Args:
        name: of the check.
        uri: of a tracking store or of Optuna's.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Check(name, "failed", "the store's address is not a URL", "Correct it.")
    match store_kind(uri):
        case "http" | "https" as kind:
            return _check_server(name, uri, kind, host, port or 80)
        case "postgresql" | "mysql" as kind:
            return _check_database(name, parts, kind, host)
    return Check(name, "ok", "a file here")


def _check_server(name: str, uri: str, kind: str, host: str, port: int) -> Check:
    is_here = is_loopback(host)
    if status_of(uri, EXPERIMENTS) == OPEN:
        who = "whoever has an account on this machine" if is_here else "whoever reaches it"
        found = f"the server at {host} asks for no password: {who} can read and change what is recorded"
        return Check(name, "warning" if is_here else "failed", found, LOCK)
    if kind == "http" and not is_here and _shows_password(uri):
        found = f"the password goes to {host} unencrypted"
        return Check(name, "warning", found, tunnel(host, port))
    return Check(name, "ok", f"{host} asks for a password")


def _shows_password(uri: str) -> bool:
    known = any(os.environ.get(f"MLFLOW_TRACKING_{part}") for part in ("PASSWORD", "TOKEN"))
    return known or bool(urlsplit(uri).password) or _is_there(client_file())


def _check_database(name: str, parts: SplitResult, kind: str, host: str) -> Check:
    options = parse_qs(parts.query)
    host = host or options.get("host", [""])[0]
    if not host or host.startswith("/"):
        return Check(name, "ok", "a socket of this machine")
    if not (parts.password or "password" in options or (kind == "postgresql" and _knows_password())):
        remedy = "Make the database ask for one (scram-sha-256 in pg_hba.conf), and keep it in ~/.pgpass."
        return Check(name, "warning", f"the {kind} database at {host} gets no password", remedy)
    if not is_loopback(host) and not _is_encrypted(kind, options):
        wanted = "sslmode=require" if kind == "postgresql" else "ssl_ca=FILE"
        found = f"the password and all data may go to {host} unencrypted"
        return Check(name, "warning", found, f"End the address with `?{wanted}`, or use a tunnel: `ssh -N -L`.")
    return Check(name, "ok", f"{host} gets a password")


def _knows_password() -> bool:
    file = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
    return bool(os.environ.get("PGPASSWORD")) or _is_there(file)


def _is_there(file: Path) -> bool:
    return os.path.exists(file)  # noqa: PTH110 - under a closed home `Path.exists` raises an error


def _is_encrypted(kind: str, options: dict[str, list[str]]) -> bool:
    if kind == "postgresql":
        return options.get("sslmode", [os.environ.get("PGSSLMODE", "")])[-1] in ENCRYPTED
    return any(option.startswith("ssl") for option in options)
