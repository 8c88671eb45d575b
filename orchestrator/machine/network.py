"""Where a server listens, and by which names it may be asked."""

import errno
import ipaddress
import os
import secrets
import socket
from typing import Final

import psutil  # type: ignore[import-untyped]

from trainables.errors import InputError

EVERYWHERE: Final = ("0.0.0.0", "::", "")
PORTS: Final = range(20_000, 32_768)
"""Above those of Ray's workers, and below those that Linux gives to outgoing connections."""

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[[]::1]")
"""Patterns, in which a bracket has a meaning of its own."""


def link(host: str, port: int) -> str:
    """The address of a server for a browser or a client on this machine."""
    return f"http://{_name(host)}:{port}"


def _name(host: str) -> str:
    if host in EVERYWHERE:
        return "[::1]" if host == "::" else "127.0.0.1"  # MLflow at :: is deaf to the older addresses
    return f"[{host}]" if ":" in host else host


def tunnel(host: str, port: int) -> str:
    """How to reach a server without TLS, as a remedy; where another's tunnel has the port, it must get no token."""
    command = f"ssh -o ExitOnForwardFailure=yes -N -L {port}:127.0.0.1:{port} {host}"
    return f"Give it TLS, or a tunnel: `{command}`, and name http://127.0.0.1:{port}."


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(host: str, port: int) -> tuple[str, ...]:
    """Patterns of the `Host` that a request to a server at `host` and `port` may name.

    Loopback with any port, for a tunnel may begin at another; no name that a stranger's page could have, which is what
    the check is against. MLFLOW_SERVER_ALLOWED_HOSTS adds names, such as that of a proxy in front.
    """
    loopback = [pattern for name in LOOPBACK_NAMES for pattern in (name.replace("[[]", "["), f"{name}:*")]
    names: tuple[str, ...] = () if is_loopback(host) else (_name(host),)
    if host in EVERYWHERE:
        cards = [address for addresses in psutil.net_if_addrs().values() for address in addresses]
        known = {a.address.partition("%")[0] for a in cards if a.family in (socket.AF_INET, socket.AF_INET6)}
        names = (socket.gethostname(), *(_name(address) for address in sorted(known)))
    added = os.environ.get("MLFLOW_SERVER_ALLOWED_HOSTS", "").split(",")
    return (*loopback, *(f"{name}:{port}" for name in names), *(name.strip() for name in added if name.strip()))


def allowed_origins(host: str, port: int) -> tuple[str, ...]:
    """Where pages may come from that change what is recorded, beside loopback: MLflow asks this of its own pages too.

    These are the server's names with its port. MLFLOW_SERVER_CORS_ALLOWED_ORIGINS adds others, such as a proxy's.
    """
    own = [f"http://{name}" for name in allowed_hosts(host, port) if name.endswith(f":{port}") and "*" not in name]
    added = os.environ.get("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", "").split(",")
    return (*own, *(origin.strip() for origin in added if origin.strip()))


def free_port() -> int:
    """A port of loopback on which nothing listens now, and which nobody gets who asks for just any."""
    while not is_free("127.0.0.1", port := secrets.choice(PORTS)):
        pass
    return port


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there.

    Raises:
        InputError: if that is no address of this machine, or not one for this user.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just ended is no hindrance
            probe.bind(address)
    except (socket.gaierror, UnicodeError):  # the latter of names that no host can have
        raise InputError(f"`--host` must be an address of this machine, but {host!r} is not.") from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise InputError(f"The program cannot listen on {host}:{port}: {error.strerror}.") from None
        return False
    return True


def check_host(host: str, port: int) -> None:
    """Raises InputError where no server could listen, whoever listens there now."""
    is_free(host, port)


def check_free(host: str, port: int, question: str) -> None:
    """Lets nothing start where another server listens.

    Args:
        question: what may be running there.

    Raises:
        InputError: if the port is taken, or as `is_free`.
    """
    if not is_free(host, port):
        other = port + 1 if port < 65535 else port - 1
        raise InputError(
            f"Port {port} of {host} is in use; {question} If not, choose another, such as `--port {other}`."
        )
