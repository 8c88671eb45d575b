"""What stands open: to other machines, to other users of this one, and in what is recorded.

Looked at are the cluster's token, servers on this machine that others can reach (Ray's dashboard and nodes, MLflow,
PostgreSQL), who may read and change what is recorded, and files with secrets.
"""

import contextlib
import http.client
import os
import shlex
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit, urlunsplit

import psutil  # type: ignore[import-untyped]

from orchestrator.checks.check import Check
from orchestrator.cluster import address as cluster_address
from orchestrator.cluster import token as ray_token
from orchestrator.cluster.address import names_cluster
from orchestrator.environment.credentials import client_file
from orchestrator.environment.settings import SETTINGS_FILE, Settings
from orchestrator.machine.network import is_loopback, link, tunnel
from orchestrator.tracking.store import store_kind
from search_spaces.redaction import redacted_text

LOOKED_AT: Final = "nothing is exposed: Ray's token, listening servers, stores and files with secrets"
START_WITH_TOKEN: Final = (
    "Start the cluster with RAY_AUTH_MODE=token, and a token that `ray get-auth-token --generate` makes."
)

ANSWER_S: Final = 3.0
EXPERIMENTS: Final = "/api/2.0/mlflow/experiments/search?max_results=1"
JOBS: Final = "/api/jobs/"
OPEN: Final = 200
NO_ANSWER: Final = 0
CLOSED: Final = (401, 403)

MLFLOW: Final = ("mlflow.server", "orchestrator.server.app")
HERE_ONLY: Final = "Start it with {} 127.0.0.1 and reach it through `ssh -L`."

ENCRYPTED: Final = ("require", "verify-ca", "verify-full")
LOCK: Final = "`ponderay serve` starts one that asks for a password."


def check_exposure(settings: Settings, dashboard: str = "") -> list[Check]:
    """What stands open, one check each; a single one where nothing does.

    Args:
        dashboard: of the cluster at RAY_ADDRESS, where it is known.
    """
    checks = [
        *check_token(),
        *check_cluster(),
        *check_job_api(os.environ.get("RAY_API_SERVER_ADDRESS") or dashboard),
        *check_nodes(),
        *(check for socket in listeners() if (check := check_listening_socket(socket))),
        *_check_stores(settings),
        *check_secret_files(),
    ]
    return checks or [Check("exposure", "ok", LOOKED_AT)]


def before_run(settings: Settings) -> list[Check]:
    """What stands open before a sweep starts, as warnings: none of it keeps it from starting."""
    checks = [*check_token(), *check_cluster(), *_check_stores(settings)]
    return [replace(check, state="warning") for check in checks]


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
    others = 0o077
    files = [ray_token.token_file(), client_file()]
    if SETTINGS_FILE.is_file() and redacted_text(text := SETTINGS_FILE.read_text(encoding="utf-8")) != text:
        files.append(SETTINGS_FILE)
    for file in files:
        rights = 0
        with contextlib.suppress(OSError):  # it is not there, or this user may not even look
            rights = file.stat().st_mode & 0o777
        if rights & others:
            found = f"other users of this machine may read or change {file} ({rights:o})"
            yield Check("secret file", "warning", found, f"`chmod 600 {shlex.quote(str(file))}`")


def _check_stores(settings: Settings) -> list[Check]:
    checks = (
        check_store("tracking access", settings.tracking_uri),
        check_store("search access", settings.search_store),
    )
    return [check for check in checks if check.state != "ok"]


@dataclass(frozen=True)
class ListeningSocket:
    """A socket beyond loopback on which a process of this machine waits for others."""

    program: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Address and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_nodes() -> Iterator[Check]:
    """Ray's nodes on this machine without a token, which keeps others out: they have to listen on their network.

    The cluster at RAY_ADDRESS has a check of its own.
    """
    for address in sorted(set(cluster_address.other_instances()) - {os.environ.get("RAY_ADDRESS")}):
        if not is_loopback(address.rpartition(":")[0].strip("[]")) and ray_token.ask(address) == "let in":
            found = (
                f"a node of the cluster at {address} runs here without a token: anyone who reaches it can run anything"
            )
            yield Check("Ray node", "warning", found, "Stop it, unset RAY_AUTH_MODE, and start it with a token.")


def check_listening_socket(socket: ListeningSocket) -> Check | None:
    """What a server gives to strangers; None where that is nothing and none can overhear."""
    is_dashboard = socket.program == "Ray dashboard"
    if socket.program == "PostgreSQL":
        remedy = "Set scram-sha-256 over hostssl in pg_hba.conf, or set listen_addresses to 127.0.0.1."
        return Check("PostgreSQL", "warning", f"listens on {socket.place}, beyond this machine", remedy)
    remedy = HERE_ONLY.format("--dashboard-host" if is_dashboard else "--host")
    status = status_of(link(socket.host, socket.port), JOBS if is_dashboard else EXPERIMENTS)
    if status == OPEN:
        found = f"listens on {socket.place} and asks for no password: anyone who reaches it can " + (
            "run anything as its user" if is_dashboard else "read and change what is recorded"
        )
        return Check(socket.program, "failed", found, remedy)
    if status in CLOSED:
        found = (
            f"listens on {socket.place} without encryption: others on the network can read what it sends and receives"
        )
        return Check(socket.program, "warning", found, remedy)
    return None


def listeners() -> Iterator[ListeningSocket]:
    """The sockets of Ray's dashboard, MLflow and PostgreSQL beyond loopback, as far as this user may see them."""
    programs: dict[int, str] = {}
    try:
        sockets = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return
    listening = {(s.pid, *s.laddr) for s in sockets if s.status == psutil.CONN_LISTEN and s.pid and s.laddr}
    for pid, host, port in sorted(listening):
        if not is_loopback(host):
            programs.setdefault(pid, _program_of(pid))
            if programs[pid]:
                yield ListeningSocket(programs[pid], host, port)


def _program_of(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return program(process.name(), process.cmdline())
    except psutil.Error:
        return ""


def program(name: str, arguments: list[str]) -> str:
    """Which of the three programs a process is; empty for any other."""
    if name in ("postgres", "postmaster"):
        return "PostgreSQL"
    if any(argument.endswith("ray/dashboard/dashboard.py") for argument in arguments):
        return "Ray dashboard"
    is_mlflow = any(Path(argument).name == "mlflow" or argument.startswith(MLFLOW) for argument in arguments)
    return "MLflow" if is_mlflow else ""


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
    has_password = any(os.environ.get(f"MLFLOW_TRACKING_{part}") for part in ("PASSWORD", "TOKEN"))
    has_password = has_password or bool(urlsplit(uri).password) or _is_there(client_file())
    if kind == "http" and not is_here and has_password:
        found = f"the password goes to {host} unencrypted"
        return Check(name, "warning", found, tunnel(host, port))
    return Check(name, "ok", f"{host} asks for a password")


def _check_database(name: str, parts: SplitResult, kind: str, host: str) -> Check:
    options = parse_qs(parts.query)
    host = host or options.get("host", [""])[0]
    if not host or host.startswith("/"):
        return Check(name, "ok", "a socket of this machine")
    has_password = bool(parts.password) or "password" in options
    if kind == "postgresql":
        pgpass = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
        has_password = has_password or bool(os.environ.get("PGPASSWORD")) or _is_there(pgpass)
        is_encrypted = options.get("sslmode", [os.environ.get("PGSSLMODE", "")])[-1] in ENCRYPTED
    else:
        is_encrypted = any(option.startswith("ssl") for option in options)
    if not has_password:
        remedy = "Make the database ask for one (scram-sha-256 in pg_hba.conf), and keep it in ~/.pgpass."
        return Check(name, "warning", f"the {kind} database at {host} gets no password", remedy)
    if not is_loopback(host) and not is_encrypted:
        wanted = "sslmode=require" if kind == "postgresql" else "ssl_ca=FILE"
        found = f"the password and all data may go to {host} unencrypted"
        return Check(name, "warning", found, f"End the address with `?{wanted}`, or use a tunnel: `ssh -N -L`.")
    return Check(name, "ok", f"{host} gets a password")


def _is_there(file: Path) -> bool:
    return os.path.exists(file)  # noqa: PTH110 - under a closed home `Path.exists` raises an error


def status_of(address: str, path: str) -> int:
    """The status of the answer to `path` at an http(s) address, whose user and password are left out.

    NO_ANSWER where there is none, or only a page, such as one to log in at: `path` is that of data.
    """
    parts = urlsplit(address)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
    direct = [urllib.request.ProxyHandler({})] if is_loopback(parts.hostname or "") else []
    opener = urllib.request.build_opener(_StayHere, *direct)
    try:
        with opener.open(urlunsplit(plain).rstrip("/") + path, timeout=ANSWER_S) as answer:
            is_data = answer.headers.get_content_type() == "application/json"
            return int(answer.status) if is_data else NO_ANSWER
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError, http.client.HTTPException):
        return NO_ANSWER


class _StayHere(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirection: another address says nothing about this one."""

    def redirect_request(self, *_: Any) -> None:
        """Follows nothing."""
