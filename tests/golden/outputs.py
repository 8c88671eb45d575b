"""Writes the golden outputs into a folder: `python -m tests.golden.outputs FOLDER [PART[:NAME,NAME] ...]`."""

import os
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from typing import Final

os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "OMP_NUM_THREADS": "1"}

from search_spaces.find import find_sweep
from tests.golden import mlflow_rows
from tests.golden.command import write, write_answers, write_tables
from tests.golden.fixed_words import OF_BUNDLES, ROOT, in_lines
from tests.golden.messages import write_messages
from tests.golden.training import write_training
from tests.integration.sweeps import run_quietly


def write_bundles(folder: Path, names: list[str]) -> None:
    """Of each bundle what `verify` says, and a report of it alone; no command asks a bundle for a front or a pair."""
    sys.path.append(str(ROOT / "examples"))
    for bundle in sorted((ROOT / "evidence").rglob("*.zip")):
        name, made = bundle.stem, f"report of {bundle.stem}"
        place = "routed_bytes.sweeps:laptop" if name == "routed_bytes.laptop" else name  # that is not installed
        if not names or name in names:
            write_answers(folder / name / "verify", "verify", str(bundle), names=OF_BUNDLES)
            report = ("report", place, "--with", str(bundle), "--output", made)
            write_answers(folder / name / "report", *report, names=OF_BUNDLES)
            write_tables(folder / name / "tables", Path(made), OF_BUNDLES)


def write_studies(folder: Path, names: list[str]) -> None:
    """Of each study what MLflow holds at its end, and what every command answers."""
    for name in names or ("listed", "searched"):
        place, made = f"tests.golden.sweeps:{name}", f"report of {name}"
        sweep = find_sweep(place)
        outcome = run_quietly(sweep)
        for experiment, rows in mlflow_rows.rows(f"sqlite:///{Path('runs/mlflow.db').absolute()}").items():
            write(folder / name / "mlflow" / f"{experiment}.json", in_lines(rows))
        for command in ("status", "pareto", "curve", "verify"):
            write_answers(folder / name / command, command, place)
        pair = [] if sweep.reference else [outcome.replicates[0].condition, outcome.replicates[-1].condition]
        write_answers(folder / name / "compare", "compare", place, *pair)
        write_answers(folder / name / "plan", "plan", place, "--seeds", "4", "--cpus", "2")
        write_answers(folder / name / "report", "report", place, "--output", made, "--bundle", f"{name}.zip")
        write_answers(folder / name / "verify_bundle", "verify", f"{name}.zip")
        write_tables(folder / name / "tables", Path(made))


PARTS: Final = {
    "messages": write_messages,
    "studies": write_studies,
    "bundles": write_bundles,
    "training": write_training,
}


def main(folder: str, *parts: str) -> None:
    """Writes all parts, or those named: `studies`, or `bundles:lm.equal_cost,lm.gated_laptop`.

    Each in an empty working folder, without the user's settings but PONDERAY_DATA.
    """
    target = Path(folder).absolute()
    for name in [*os.environ]:
        if name.startswith(("PONDERAY_", "MLFLOW_TRACKING", "RAY_")) and name != "PONDERAY_DATA":
            del os.environ[name]
    for part in parts or PARTS:
        began, (kind, _, names) = time.process_time(), part.partition(":")
        with tempfile.TemporaryDirectory(prefix="golden-") as place, chdir(place):
            PARTS[kind](target / kind, names.split(",") if names else [])
        print(f"{kind}: {time.process_time() - began:.1f} s of processor time", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
