"""Secrets of a tracking server: each in a file for its owner alone, made once and never shown."""

import configparser
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.machine.durable_files import create_atomically, replace_durably
from trainables.errors import InputError

USER: Final = "ponderay"
SECTION: Final = "mlflow"
NAME_KEY: Final = "mlflow_tracking_username"
PASSWORD_KEY: Final = "mlflow_tracking_password"
OWNER_ALONE: Final = 0o600


@dataclass(frozen=True)
class Credentials:
    """A user of the tracking server; the password is not part of what is printed of this."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r})"


def write_secret(file: Path, secret: str) -> None:
    """Writes a file for its owner alone, from the first byte on; whole or not there."""
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(secret)
    replace_durably(part, file)


def secret_in(file: Path) -> str:
    """A random secret that is always the same, made when first asked for."""
    if not file.exists():
        create_atomically(file, secrets.token_urlsafe(32), OWNER_ALONE)
    return file.read_text(encoding="utf-8")


def administrator(folder: Path) -> Credentials:
    """The user that a server in `folder` is made with, kept as MLflow's clients read it."""
    file = credentials_file(folder)
    if not file.exists():
        password = secrets.token_urlsafe(24)
        create_atomically(file, f"[{SECTION}]\n{NAME_KEY} = {USER}\n{PASSWORD_KEY} = {password}\n", OWNER_ALONE)
    credentials = _read(file)
    if not (credentials and credentials.user and credentials.password):
        needed = f"a user and a password ({NAME_KEY}, {PASSWORD_KEY})"
        raise InputError(f"{file} must hold {needed}, but does not; correct it, or move it away for a new one.")
    return credentials


def credentials_file(folder: Path) -> Path:
    """Where a server in `folder` keeps its administrator's name and password."""
    return folder / "credentials"


def client_file() -> Path:
    """Where MLflow's clients of this user look for name and password."""
    return Path.home() / ".mlflow" / "credentials"


def hand_to_client(folder: Path) -> str:
    """Puts name and password where MLflow's clients of this user look; returns a sentence that says where they are.

    A file that is there stays as it is.
    """
    of_server, of_clients = credentials_file(folder), client_file()
    try:
        of_clients.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not of_clients.exists():
            create_atomically(of_clients, of_server.read_text(encoding="utf-8"), OWNER_ALONE)
        is_same = _read(of_clients) == administrator(folder)
    except OSError:
        return f"User and password: {of_server}; clients look for such a file at ~/.mlflow/credentials."
    if is_same:
        return f"User and password: {of_clients}, where clients look for them; other machines need a copy of that file."
    return (
        f"User and password: {of_server}. Clients read {of_clients}, which holds others and is left as it is: copy the "
        "one onto the other, or set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."
    )


def _read(file: Path) -> Credentials | None:
    parser = configparser.RawConfigParser()
    try:
        parser.read(file, encoding="utf-8")
        return Credentials(parser[SECTION][NAME_KEY], parser[SECTION][PASSWORD_KEY])
    except (configparser.Error, KeyError, UnicodeDecodeError):
        return None
