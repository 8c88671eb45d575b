"""The families hold no privilege: a copy of one under another name, outside our packages, has equal digits."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking

ROOT = Path(__file__).parents[2]
SHIPPED, COPY = "act.tau_parity_laptop", "copied_sweeps.py:SWEEPS.tau_parity_laptop"
RENAMED = {
    "trainables.act": "copied",
    "search_spaces.act_sizes": "copied_sizes",
    "search_spaces.act": "copied_sweeps",
    '"act.': '"copied.',
}


def renamed(source: str) -> str:
    """The source with the names of the copy."""
    for name, new in RENAMED.items():
        source = source.replace(name, new)
    return source.replace('f"act.', 'f"copied.')


@pytest.fixture
def copied(workplace: Path) -> Path:
    """A folder with a copy of everything that is act's: its trainable, its sweeps and its published numbers."""
    shutil.copytree(ROOT / "trainables/act", "copied", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "search_spaces/act.py", "copied_sweeps.py")
    shutil.copy(ROOT / "search_spaces/act_sizes.py", "copied_sizes.py")
    Path("published").mkdir()
    shutil.copy(ROOT / "search_spaces/published/act.toml", "published/copied.toml")
    for path in (*workplace.rglob("*.py"), Path("published/copied.toml")):
        path.write_text(renamed(path.read_text()))
        assert "trainables.act" not in path.read_text()
    return workplace


def done(*arguments: str) -> str:
    """What `ponderay ARGUMENTS` prints, which must succeed."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def untimed(metrics: Mapping[str, float]) -> dict[str, float]:
    """All but speeds."""
    return {name: value for name, value in metrics.items() if "_per_s" not in name}


@pytest.mark.slow
def test_a_copy_of_a_family_has_equal_digits(copied):
    shown = done("show", COPY, "--smoke")
    assert "trainable   copied.train" in shown
    condition = next(line for line in shown.splitlines() if line.startswith("condition "))
    name = condition.removeprefix("condition").partition(":")[0].strip()
    assert name in done("plan", COPY, "--smoke")
    one = ("--smoke", "--condition", name, "--seed", "1")
    done("train", COPY, *one)
    done("train", SHIPPED, *one)
    (ours,), (theirs,) = (
        Tracking(read_settings()).read_study(f"{family}.tau_parity_laptop.smoke").replicates
        for family in ("act", "copied")
    )
    assert theirs.state == "complete"
    assert untimed(theirs.metrics) == untimed(ours.metrics)
    assert len(untimed(theirs.metrics)) > 30
    assert name in done("pareto", COPY, "--smoke")
    assert "copied.tau_parity_laptop.smoke" in done("report", COPY, "--smoke")
