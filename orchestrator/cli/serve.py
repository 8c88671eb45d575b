"""The command `serve`: the tracking server of several machines."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.console.exit_codes import DONE, FAILED, WRONG_INPUT
from orchestrator.console.printing import err, out, say
from orchestrator.environment.places import folder_at
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.server.serve import TrackingServer

PACKAGES: Final = {"flask_wtf": "mlflow[auth]", "psycopg2": "psycopg2-binary"}
OF_ROOT: Final = Path("/var/lib/ponderay")


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen on; beyond loopback, passwords travel unencrypted.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="A free one.")] = 5000,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="The folder for all data of the server; default: ~/.ponderay/server, for root /var/lib/ponderay."
        ),
    ] = None,
    artifacts: Annotated[
        str | None, typer.Option(metavar="FOLDER|s3://BUCKET/FOLDER", help="Default: a folder in FOLDER.")
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Run in the background; return when the server answers.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the server of FOLDER.")] = False,
) -> None:
    """Serve MLflow to several machines, on PostgreSQL and with passwords; ends with Ctrl-C.

    Set PONDERAY_TRACKING_URI=http://127.0.0.1:5000 to record runs there. The first start creates a user, ponderay, with
    a password in FOLDER/credentials and in ~/.mlflow/credentials, where clients look for it: copy that file to other
    machines. They connect through a tunnel, such as `ssh -L 5000:127.0.0.1:5000 HOST`, or a proxy with TLS.

    PostgreSQL runs in FOLDER, unless PONDERAY_SERVER_STORE names another (postgresql://USER:PASSWORD@HOST/DATABASE);
    the users are then in a file in FOLDER, or in PONDERAY_SERVER_USERS_STORE. Artifacts in a bucket need AWS_* and
    MLFLOW_S3_ENDPOINT_URL here, not at the clients. Behind a proxy set MLFLOW_SERVER_ALLOWED_HOSTS=NAME and
    MLFLOW_SERVER_CORS_ALLOWED_ORIGINS=https://NAME.
    """
    from orchestrator.server.folder import ServerFolder

    default = OF_ROOT if os.geteuid() == 0 else Path("~/.ponderay/server")
    where = ServerFolder(folder_at(folder or default, "--folder").resolve())
    if stop:
        if not where.was_used():
            rule = f"--folder must be that of a tracking server, but {where.path} never had one"
            raise InputError(f"{rule}; `ponderay serve --stop --folder FOLDER` ends that of FOLDER.")
        say("The tracking server has ended." if where.stop() else f"No tracking server runs in {where.path}.")
        return
    server = _server(where.path, host, port, artifacts)
    if background:
        from orchestrator.server.background import start

        serving, is_new = start(server)
        if not is_new:
            say("The server already runs with its earlier options; `ponderay serve --stop` ends it.")
        replace(server, host=serving.host, port=serving.port).describe(out)
        say("`ponderay serve --stop` ends it; add `--folder` if you gave it.")
        return
    code = server.run(out)
    if code not in (DONE, WRONG_INPUT):
        err.print("ponderay: The server ended unexpectedly; its messages are above.", markup=False)
        code = FAILED
    raise SystemExit(code)


def _server(folder: Path, host: str, port: int, artifacts: str | None) -> "TrackingServer":
    from orchestrator.machine.network import check_host, is_loopback
    from orchestrator.server.folder import ServerFolder
    from orchestrator.server.serve import TrackingServer

    for module, package in PACKAGES.items():
        if find_spec(module) is None:
            raise InputError(
                f"`ponderay serve` needs {package}; `pip install -e '.[cluster]'` in the checkout brings it."
            )
    check_host(host, port)
    store, users = (_database(name) for name in ("PONDERAY_SERVER_STORE", "PONDERAY_SERVER_USERS_STORE"))
    if users and not store:
        raise InputError("`PONDERAY_SERVER_USERS_STORE` goes with PONDERAY_SERVER_STORE, which is not set.")
    server = TrackingServer(ServerFolder(folder), host, port, _artifacts(artifacts, folder), store, users)
    if not is_loopback(host):
        err.print(
            f"ponderay: Whoever can reach {host} may ask the server, and passwords travel unencrypted unless a tunnel "
            "or a proxy with TLS is in front.",
            markup=False,
            soft_wrap=True,
        )
    return server


def _database(name: str) -> str:
    uri = os.environ.get(name, "")
    if uri and not uri.startswith(("postgresql://", "postgresql+")):
        kind = uri.partition(":")[0]
        raise InputError(f"`{name}` must be postgresql://USER:PASSWORD@HOST/DATABASE, but begins with {kind!r}.")
    return uri


def _artifacts(given: str | None, folder: Path) -> str:
    """A folder made absolute, or a bucket's URL."""
    if given is None or "://" not in given:
        return str(folder_at(given, "--artifacts") if given else folder / "artifacts")
    if not given.startswith("s3://") or "@" in given:
        raise InputError("`--artifacts` must be a folder or s3://BUCKET/FOLDER; set a bucket's keys in AWS_*.")
    if find_spec("boto3") is None:
        raise InputError("Artifacts in a bucket need boto3; `pip install -e '.[cluster]'` in the checkout brings it.")
    return given
