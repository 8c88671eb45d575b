"""Where things live: environment variables first, then `ponderay.toml` in the working folder, then defaults."""

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.environment.redaction import redacted_text
from trainables.errors import InputError

SETTINGS_FILE = Path("ponderay.toml")
NAMES = (
    "data",
    "runs",
    "storage",
    "cache",
    "tracking_uri",
    "search_uri",
    "cluster_wait",
    "price_per_device_hour",
    "watts_per_device",
)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CLUSTER_WAIT = 10.0
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
        return self.runs / "replicates" / sweep

    def shared(self, folder: Path) -> str:
        """URL at which `folder`, one below `runs`, is kept for all machines; empty where it is kept in `runs`."""
        return f"{self.storage.rstrip('/')}/{folder.relative_to(self.runs).as_posix()}" if self.storage else ""

    @property
    def artifacts(self) -> Path:
        """MLflow's artifacts, where the tracking store is a local one."""
        return self.runs / "artifacts"

    @property
    def figures(self) -> Path:
        """Tables and figures for people."""
        return self.runs / "figures"


def read_settings() -> Settings:
    """The settings in force; also hands PONDERAY_DATA and PONDERAY_CACHE to the processes started from here.

    Telemetry of the libraries is turned off.

    Raises:
        InputError: if the file holds an unknown name.
    """
    from_file = _read_file(SETTINGS_FILE)
    os.environ.update(QUIET)
    for name in ("no_proxy", "NO_PROXY"):  # a tunnel's end is here, and a proxy would learn the password
        os.environ[name] = ",".join(dict.fromkeys([*filter(None, os.environ.get(name, "").split(",")), *LOOPBACK]))
    if "data" in from_file:
        os.environ.setdefault("PONDERAY_DATA", str(from_file["data"]))
    if os.environ.get("PONDERAY_DATA"):
        os.environ["PONDERAY_DATA"] = str(Path(os.environ["PONDERAY_DATA"]).absolute())
    runs = Path(os.environ.get("PONDERAY_RUNS") or from_file.get("runs") or "runs").absolute()
    default_uri = f"sqlite:///{runs / 'mlflow.db'}"
    cache = os.environ.get("PONDERAY_CACHE") or from_file.get("cache") or runs / "cache"
    os.environ["PONDERAY_CACHE"] = str(Path(cache).absolute())
    uri = os.environ.get("PONDERAY_TRACKING_URI") or from_file.get("tracking_uri") or default_uri
    price, watts, wait = (
        _number(name, from_file) for name in ("price_per_device_hour", "watts_per_device", "cluster_wait")
    )
    search, storage = (
        str(os.environ.get(f"PONDERAY_{name.upper()}") or from_file.get(name) or "")
        for name in ("search_uri", "storage")
    )
    return Settings(runs, str(uri), price, watts, search, _checked(storage), CLUSTER_WAIT if wait is None else wait)


def _checked(storage: str) -> str:
    """`storage`, where it is a plain URL: keys belong into the environment."""
    if storage and ("://" not in storage or "::" in storage or "?" in storage):
        raise InputError(f"`storage` must be a URL like s3://BUCKET/FOLDER, but got {redacted_text(storage)!r}.")
    if "@" in storage.partition("://")[2].partition("/")[0]:
        raise InputError("`storage` must hold no user or password; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    return storage


def _number(name: str, from_file: dict[str, Any]) -> float | None:
    value = os.environ.get(f"PONDERAY_{name.upper()}") or from_file.get(name)
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if number is not None and not 0 <= number < float("inf"):
        raise InputError(f"`{name}` must be a number of at least 0, but got {value!r}.")
    return number


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from None
    unknown = sorted(set(values) - set(NAMES))
    if unknown:
        raise InputError(f"{path}: {unknown[0]!r} is not a setting; the settings are {', '.join(NAMES)}.")
    return values
