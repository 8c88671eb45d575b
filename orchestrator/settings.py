"""Where things live: environment variables first, then `ponderay.toml` in the working folder, then defaults."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainables.errors import InputError

SETTINGS_FILE = Path("ponderay.toml")
NAMES = ("data", "runs", "cache", "tracking_uri")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Settings:
    """What `PONDERAY_RUNS` (a folder that all machines see), `PONDERAY_TRACKING_URI` and `PONDERAY_DATA` say."""

    runs: Path
    tracking_uri: str

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
    if "data" in from_file:
        os.environ.setdefault("PONDERAY_DATA", str(from_file["data"]))
    if os.environ.get("PONDERAY_DATA"):
        os.environ["PONDERAY_DATA"] = str(Path(os.environ["PONDERAY_DATA"]).absolute())
    runs = Path(os.environ.get("PONDERAY_RUNS") or from_file.get("runs") or "runs").absolute()
    default_uri = f"sqlite:///{runs / 'mlflow.db'}"
    cache = os.environ.get("PONDERAY_CACHE") or from_file.get("cache") or runs / "cache"
    os.environ["PONDERAY_CACHE"] = str(Path(cache).absolute())
    uri = os.environ.get("PONDERAY_TRACKING_URI") or from_file.get("tracking_uri") or default_uri
    return Settings(runs=runs, tracking_uri=str(uri))


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no valid TOML: {error}.") from None
    unknown = sorted(set(values) - set(NAMES))
    if unknown:
        raise InputError(f"{path}: {unknown[0]!r} is no setting; there are {', '.join(NAMES)}.")
    return values
