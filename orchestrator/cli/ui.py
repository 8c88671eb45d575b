"""The command `ui`: MLflow on the recorded runs, and where to look in it."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit, urlunsplit

import typer

from orchestrator.console.printing import err, out
from orchestrator.machine.network import allowed_hosts, allowed_origins, check_free, is_loopback, link
from orchestrator.server.environment import ONLY_TRACKING
from orchestrator.tracking.store import address

OPEN: Final = (
    "Warning: whoever reaches {} can read, change and delete everything recorded here: MLflow asks for no password. "
    "`ponderay serve` asks for one; a tunnel (`ssh -L`) needs no --host."
)

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="A free one.")] = 5000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; the default admits this machine only.")
    ] = "127.0.0.1",
) -> None:
    """Open MLflow on the runs recorded here, with a link to every sweep; ends with Ctrl-C.

    The links lead to saved views of a sweep's runs, which MLflow also lists in its menu "Views": a table of conditions
    with mean and 95 % interval of each objective, the objectives against each other, learning curves (means over
    replicates), replicates, failures. Paste the printed searches into the box above such a table.

    If PONDERAY_TRACKING_URI names a server, the command starts nothing, and the links lead there.
    """
    from orchestrator.environment.settings import read_settings

    settings = read_settings()
    if settings.tracking_uri.startswith("http"):
        out.print(f"The tracking server is already running: {_without_user(settings.tracking_uri)}", markup=False)
        _print_pages(settings, _without_user(settings.tracking_uri))
        return
    check_free(host, port, "is `ponderay ui` running already?")
    here = link(host, port)
    out.print(f"MLflow: {here} (answers some seconds after this list; ends with Ctrl-C)", markup=False, soft_wrap=True)
    _print_pages(settings, here)
    sys.stdout.flush()
    store = {"MLFLOW_BACKEND_STORE_URI": address(settings.tracking_uri)} | ONLY_TRACKING
    arguments = ["--host", host, "--port", str(port), "--workers", "1"]
    if not is_loopback(host):
        err.print(OPEN.format(host), markup=False, soft_wrap=True)
        arguments += ["--allowed-hosts", ",".join(allowed_hosts(host, port))]
        arguments += ["--cors-allowed-origins", ",".join(allowed_origins(host, port))]
    artifacts = ["--artifacts-destination", str(settings.artifacts)]
    program = [sys.executable, "-m", "mlflow", "server", "--app-name", "ponderay-ui", *arguments, *artifacts]
    os.execve(sys.executable, program, os.environ | store)  # a password is not for the arguments, which all can see


def _print_pages(settings: "Settings", server: str) -> None:
    """The pages of each sweep, then the searches."""
    from orchestrator.tracking.pages import CONDITIONS, FILTERS, VIEWS, filter_page
    from orchestrator.tracking.store import has_store

    if not has_store(settings.tracking_uri):
        out.print("No sweep has run here yet; `ponderay run asr.demo` runs one.")
        return
    from orchestrator.tracking.client import Tracking

    for sweep in Tracking(settings).sweeps():
        out.print(sweep.name, markup=False)
        pages = {view.name: view.page(sweep.experiment_id) for view in VIEWS if view.tag in sweep.tags}
        # a sweep that ran before there were saved views has none
        pages = pages or {"Conditions": filter_page(sweep.experiment_id, CONDITIONS)}
        for name, page in pages.items():
            out.print(f"  {name:32} {server.rstrip('/')}/{page}", markup=False, soft_wrap=True)
    out.print("\nSearches for the box above a table; fill in what stands in braces:")
    for search in FILTERS:
        out.print(f"  {search.name}: {search.meaning}\n    {search.text}", markup=False, soft_wrap=True)
    out.print()


def _without_user(uri: str) -> str:
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
