"""The folder in which a case runs: its files, its settings, and what earlier runs have left."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from benchmarks.bad.cases import Case

ROOT: Final = Path(__file__).parents[2]
TOY: Final = """
from dataclasses import dataclass

from ponderay import Condition, Objective, Sweep


@dataclass(frozen=True)
class Config:
    seed: int = 1
    width: float = 1.0


def train(config, trial):
    trial.report({"error": config.width + config.seed / 100, "cost": config.width}, step=0)


toy = Sweep(
    name="toy",
    description="Nothing is learnt.",
    trainable=__name__,
    base=Config(),
    objectives=(Objective("error"), Objective("cost")),
    conditions=(Condition("narrow", {"width": 0.5}), Condition("wide", {"width": 2.0})),
    seeds=(1, 2, 3),
    reference="narrow",
)
"""
LOUD: Final = (
    TOY.replace("Nothing is learnt.", "\\x1b]0;x\\x07 \\x1b[2J \\u202e")
    .replace('"narrow"', '"=1+1"')
    .replace("toy", "loud")
)
"""Whose description does things to a terminal, and a condition's name to a spreadsheet."""

EDGES: Final = """
from dataclasses import dataclass

from ponderay import Condition, Objective, Sweep

SIZES = (5e-324, 1e-310, 1.0, 1e155, 1e308, -1e308, 1.7976931348623157e308, -0.0)


@dataclass(frozen=True)
class Config:
    seed: int = 1
    size: float = 1.0
    is_apart: bool = False


def train(config, trial):
    factor = (1.0, -1.0, 0.0)[config.seed - 1] if config.is_apart else (1.0, 0.5, 0.75)[config.seed - 1]
    for step in (1, 2, 3):
        trial.report({"error": config.size * factor, "cost": abs(config.size)}, step=step)


edges = Sweep(
    name="edges",
    description="Numbers at the edges of float64, and beyond them their spreads and differences.",
    trainable=__name__,
    base=Config(),
    objectives=(Objective("error"), Objective("cost")),
    conditions=tuple(
        Condition(f"{'apart' if is_apart else 'near'}{i}", {"size": size, "is_apart": is_apart})
        for i, size in enumerate(SIZES)
        for is_apart in (False, True)
    ),
    seeds=(1, 2, 3),
    reference="near2",
)
"""
FILES: Final = {
    "toy.py": TOY,
    "edges.py": EDGES,
    "loud.py": LOUD,
    "broken.py": "def x(:\n",
    "raising.py": "raise KeyError('x')\n",
    "leaving.py": "import sys\nsys.exit(7)\n",
    "number.py": "x = 3\n",
    "a-file": "nothing\n",
    "bad.zip": "no archive",
}
RUN: Final = """
from rich.console import Console
from orchestrator.run import run_here
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.find import find_sweep
run_here(find_sweep({sweep!r}), read_settings(), Console(quiet=True), False)
"""


def record(folder: Path) -> Path:
    """A runs folder with the study of the toy sweep, complete; beside it `edges`, with that of numbers at the edges."""
    folder.mkdir()
    for runs, sweep, source in (("runs", "toy", TOY), ("edges", "edges", EDGES)):
        (folder / f"{sweep}.py").write_text(source)
        variables = environment(folder) | {"PONDERAY_RUNS": str(folder / runs)}
        code = RUN.format(sweep=f"{sweep}.py:{sweep}")
        subprocess.run([sys.executable, "-c", code], cwd=folder, env=variables, check=True, capture_output=True)  # noqa: S603
    return folder / "runs"


def environment(folder: Path) -> dict[str, str]:
    """The environment of a bare shell: nothing of the user's, and no cluster of somebody else."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ}
    of_ray = {"RAY_API_SERVER_ADDRESS": "http://127.0.0.1:9", "RAY_AUTH_TOKEN_PATH": str(folder / "no-token")}
    return kept | of_ray | {"HOME": str(folder), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def make(case: Case, folder: Path, recorded: Path | None) -> None:
    """Writes what the case finds in its folder.

    Args:
        recorded: as `record` gives it; None where no study is asked for.
    """
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "folder.py").mkdir()
    (folder / "loop").symlink_to("loop")
    with zipfile.ZipFile(folder / "none.zip", "w") as archive:
        archive.writestr("../x", "x")
    (folder / "cut.zip").write_bytes((folder / "none.zip").read_bytes()[:40])
    if case.settings is not None:
        (folder / "ponderay.toml").write_bytes(case.settings)
    _store(case.stored, folder / "runs", recorded)


def _store(state: str, runs: Path, recorded: Path | None) -> None:
    if state == "nothing":
        return
    if state in ("study", "cut", "bad cache", "bad journal", "bad optuna"):
        assert recorded is not None
        shutil.copytree(recorded, runs)
    if state == "edges":
        assert recorded is not None
        shutil.copytree(recorded.with_name("edges"), runs)
    runs.mkdir(exist_ok=True)
    database = runs / "mlflow.db"
    match state:
        case "garbage":
            database.write_bytes(bytes(range(256)) * 40)
        case "empty file":
            database.touch()
        case "cut":
            database.write_bytes(database.read_bytes()[: database.stat().st_size // 3])
        case "folder":
            database.mkdir()
        case "no tables":
            database.write_bytes(b"SQLite format 3\0" + bytes(84))
        case "runs is full of folders":
            for name in ("figures", "reports", "cache", "replicates", "optuna.db"):
                (runs / name).write_text("a file")
        case "bad cache":
            for file in (runs / "cache").rglob("*.json"):
                file.write_bytes(b"{\xff")
        case "bad journal":
            for file in runs.rglob("journal.jsonl"):
                file.write_bytes(b"\xff\xfe no journal\n")
        case "bad optuna":
            (runs / "optuna.db").write_bytes(b"garbage")
