"""Where things live: environment variables first, then `ponderay.toml` in the working folder, then defaults.

All are read and checked here, whoever wrote them.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from orchestrator.environment.places import absolute, folder_at
from search_spaces.names import path_part
from search_spaces.redaction import redacted_text, redacted_uri
from trainables.errors import InputError, shown

TEXTS: Final = ("data", "runs", "storage", "cache", "tracking_uri", "search_uri")
NUMBERS: Final = ("price_per_device_hour", "watts_per_device", "cluster_wait")
NAMES: Final = (*TEXTS, *NUMBERS)
MOST: Final = 1e9
"""The largest number; no price, power or time is larger."""

MOST_BYTES: Final = 1_000_000
MOST_CHARACTERS: Final = 4_000
"""The longest setting; no path of Linux is longer."""


def read_file(path: Path) -> dict[str, Any]:
    """The settings in the file by name; none where there is no file.

    Raises:
        InputError: if it is no TOML, holds an unknown name, or a value of the wrong kind.
    """
    values = _parsed(path)
    unknown = sorted(set(values) - {*NAMES})
    if unknown:
        raise InputError(f"{path}: {unknown[0]!r} is not a setting; the settings are {', '.join(NAMES)}.")
    for name in TEXTS:
        if name in values and not isinstance(values[name], str):
            raise InputError(f'{path}: `{name}` must be text, such as {name} = "...", but got {shown(values[name])}.')
        _check_text(f"{path}: `{name}`", values.get(name, ""))
    return values


def of_environment(name: str) -> str:
    """The setting as PONDERAY_NAME says it; empty where it does not.

    Raises:
        InputError: if it holds what no setting can.
    """
    variable = f"PONDERAY_{name.upper()}"
    value = os.environ.get(variable, "")
    _check_text(variable, value)
    return value


def number(name: str, from_file: dict[str, Any]) -> float | None:
    """The setting as a number; None where there is none."""
    value = of_environment(name) or from_file.get(name)
    if value is None:
        return None
    try:
        amount = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        amount = -1.0
    if not 0 <= amount <= MOST:
        raise InputError(f"`{name}` must be a number from 0 to {MOST:,.0f}, but got {shown(value)}.")
    return amount


def _parsed(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    if not path.is_file():
        raise InputError(f"{path} must be a file of settings, but a folder or something else has that name.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} must be at most {MOST_BYTES / 1e6:g} MB large, as no settings need more.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be text in UTF-8, but byte {error.start} is none.") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {str(error)[:200]}.") from None


def _check_text(where: str, value: str) -> None:
    if not value.isprintable():
        raise InputError(f"{where} must be one line of text that can be printed, but got {shown(value)}.")
    if len(value) > MOST_CHARACTERS:
        raise InputError(f"{where} must have at most {MOST_CHARACTERS:,} characters, but has {len(value):,}.")


SETTINGS_FILE = Path("ponderay.toml")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DATABASES: Final = ("sqlite:///", "postgresql:", "postgresql+", "mysql:", "mysql+")
"""What an address of Optuna's database begins with."""

CLUSTER_WAIT: Final = 10.0
_UNADDRESSABLE: Final = re.compile(r"\?|%[0-9A-Fa-f]{2}")
"""What ends or stands for something else in an address of SQLite."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Settings:
    """What `PONDERAY_RUNS` (a folder that all machines see), `PONDERAY_TRACKING_URI` and the like say.

    Attributes:
        search_uri: Optuna's database; default: SQLite in `runs`.
        storage: URL of a bucket's folder, such as s3://BUCKET/FOLDER, where journals and checkpoints are kept; `runs`
            may then be each machine's own, at the same path. Empty: they are kept in `runs`.
        cluster_wait: minutes for which a sweep under way waits for a cluster that does not answer.
        price_per_device_hour: of a GPU, or of a CPU where none is used; in the user's money.
        watts_per_device: as drawn under load.
    """

    runs: Path
    tracking_uri: str = field(repr=False)  # either may hold a password
    price_per_device_hour: float | None = None
    watts_per_device: float | None = None
    search_uri: str = field(default="", repr=False)
    storage: str = ""
    cluster_wait: float = CLUSTER_WAIT

    @property
    def search_store(self) -> str:
        """Optuna's database."""
        return self.search_uri or f"sqlite:///{self.runs / 'optuna.db'}"

    def replicates(self, sweep: str) -> Path:
        """Where a sweep's replicates keep journals and checkpoints, each in the folder of its key."""
        return self.runs / "replicates" / path_part(sweep)

    def reports(self, sweep: str) -> Path:
        """Where a sweep's page and tables are written."""
        return self.runs / "reports" / path_part(sweep)

    def audit(self, sweep: str) -> Path:
        """What audits of a sweep have found."""
        return self.runs / "audits" / f"{path_part(sweep)}.json"

    def shared(self, folder: Path) -> str:
        """URL at which `folder`, one below `runs`, is kept for all machines; empty where it is kept in `runs`."""
        return f"{self.storage.rstrip('/')}/{folder.relative_to(self.runs).as_posix()}" if self.storage else ""

    @property
    def artifacts(self) -> Path:
        """MLflow's artifacts, where the tracking store is a local one."""
        return self.runs / "artifacts"

    @property
    def figures(self) -> Path:
        """Fronts, curves and analyses, as they were drawn last."""
        return self.runs / "figures"


_handed_on: set[str] = set()
"""Caches that an earlier call has chosen, which are no setting of the user's."""


def read_settings() -> Settings:
    """The settings in force; also hands PONDERAY_DATA and PONDERAY_CACHE to the processes started from here.

    Telemetry of the libraries is turned off.

    Raises:
        InputError: if a setting cannot be used, in the file or in the environment.
    """
    given = _given()
    settings = _settings(given)
    folder_at(settings.runs, _setting("runs"))
    if given["cache"]:
        folder_at(given["cache"], _setting("cache"))
    _hand_on(given, settings.runs)
    return settings


def settings_as_given() -> Settings:
    """The settings in force, whether or not their folders can be used; otherwise as `read_settings`.

    Raises:
        InputError: if the file holds an unknown name, or a setting can be none.
    """
    given = _given()
    settings = _settings(given)
    _hand_on(given, settings.runs)
    return settings


def _given() -> dict[str, Any]:
    """Settings by name, of the environment before those of the file; empty text and None where there are none."""
    from_file = read_file(SETTINGS_FILE)
    texts = {name: of_environment(name) or from_file.get(name, "") for name in TEXTS}
    if texts["cache"] in _handed_on:
        texts["cache"] = from_file.get("cache", "")
    return texts | {name: number(name, from_file) for name in NUMBERS}


def _settings(given: Mapping[str, Any]) -> Settings:
    runs, search, wait = absolute(given["runs"] or "runs"), given["search_uri"], given["cluster_wait"]
    for name in ("tracking_uri", "search_uri"):
        try:
            _ = urlsplit(given[name]).port
        except ValueError:  # any part of the address may be a password, so none is shown
            rule = "must be a valid address, with a port below 65536, %40 for @ and %2F for / in a password"
            raise InputError(f"`{name}` (PONDERAY_{name.upper()}) {rule}.") from None
    if search and not search.startswith(DATABASES):
        rule = "must be sqlite:///FILE, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
        raise InputError(f"`search_uri` (PONDERAY_SEARCH_URI) {rule}, but got {redacted_uri(search)!r}.")
    if not (given["tracking_uri"] and search) and _UNADDRESSABLE.search(str(runs)):
        rule = (
            "must be a path without ? and without % before two digits, for an address of SQLite reads these otherwise"
        )
        raise InputError(f"`runs` (PONDERAY_RUNS) {rule}, but got {str(runs)!r}.")
    storage = given["storage"]
    if storage and ("://" not in storage or "::" in storage or "?" in storage):
        raise InputError(f"`storage` must be a URL like s3://BUCKET/FOLDER, but got {redacted_text(storage)!r}.")
    if "@" in storage.partition("://")[2].partition("/")[0]:
        raise InputError("`storage` must hold no user or password; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    return Settings(
        runs=runs,
        tracking_uri=given["tracking_uri"] or f"sqlite:///{runs / 'mlflow.db'}",
        price_per_device_hour=given["price_per_device_hour"],
        watts_per_device=given["watts_per_device"],
        search_uri=search,
        storage=storage,
        cluster_wait=CLUSTER_WAIT if wait is None else wait,
    )


def _hand_on(given: Mapping[str, Any], runs: Path) -> None:
    os.environ.update(QUIET)
    for name in ("no_proxy", "NO_PROXY"):  # a tunnel's end is here, and a proxy would learn the password
        os.environ[name] = ",".join(dict.fromkeys([*filter(None, os.environ.get(name, "").split(",")), *LOOPBACK]))
    if given["data"]:
        os.environ["PONDERAY_DATA"] = str(absolute(given["data"]))
    cache = str(absolute(given["cache"] or runs / "cache"))
    if not given["cache"]:
        _handed_on.add(cache)
    os.environ["PONDERAY_CACHE"] = cache


def _setting(name: str) -> str:
    return f"`{name}` (PONDERAY_{name.upper()}, or {name} in {SETTINGS_FILE})"
