"""Results of changed code are refused, wherever the user's change stands; what changes no result stops nothing."""

import sys
from pathlib import Path

import pytest

from orchestrator.cli import main as cli
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.pages import CONDITIONS
from orchestrator.worker import trainable

SWEEP = """
import ponderay
from mylab.models import network
import beside

class Setting(ponderay.Config):
    width: int = 8
    seed: int = 1

    @property
    def scale(self):
        return 1.0

def train(config, trial):
    # a thought
    trial.report({"loss": network.loss(config.width) * beside.SCALE * config.scale}, step=1)

WIDTHS = [4, 8]
toy = ponderay.Sweep(
    name="toy", description="For tests.", trainable=__name__, base=Setting(),
    conditions=ponderay.grid({"width": WIDTHS}), objectives=(ponderay.Objective("loss"),),
)
"""
FILES = {
    "toy.py": SWEEP,
    "beside.py": "SCALE = 1.0\n",
    "mylab/__init__.py": "",
    "mylab/models/__init__.py": "",
    "mylab/models/network.py": "from mylab.models.parts.halves import half\ndef loss(width): return half(1 / width)\n",
    "mylab/models/parts/__init__.py": "",
    "mylab/models/parts/halves.py": "def half(number): return number / 2\n",
    "mylab/unused.py": "",
}


@pytest.fixture
def train(workplace, monkeypatch, capsys):
    """Trains one replicate of the sweep by the command, as a process that begins anew; its exit code and words."""
    for name, text in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def train(condition: str, *options: str) -> tuple[int, str]:
        forget_modules()
        arguments = ["ponderay", "train", "toy.py:toy", "--condition", condition, *options]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as raised:
            cli.main()
        printed = capsys.readouterr()
        return int(raised.value.code or 0), printed.out + printed.err

    yield train
    forget_modules()


def forget_modules() -> None:
    """Has the next command import the user's files as they are then."""
    trainable._load.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("toy", "beside", "mylab")]:
        del sys.modules[name]


def change(file: str, old: str, new: str) -> None:
    path = Path(file)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("mylab/models/parts/halves.py", "number / 2", "number / 3.0"),
        ("mylab/models/network.py", "1 / w", "10 / w"),
        ("beside.py", "1.0", "25.0"),
        ("toy.py", '"loss": network', '"loss": 2 * network'),
        ("toy.py", "return 1.0", "return 2.0"),
    ],
)
def test_a_changed_line_is_refused_until_it_is_accepted(train, file, old, new):
    assert train("width=4")[0] == 0
    change(file, old, new)
    code, said = train("width=8")
    assert (code, "--accept-code" in said) == (3, True), said
    assert train("width=8", "--accept-code")[0] == 0


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("toy.py", "# a thought", "# another one"),
        ("toy.py", "WIDTHS = [4, 8]", "WIDTHS = [4, 8, 16]"),
        ("toy.py", "For tests.", "For many tests."),
        ("mylab/unused.py", "", "SCALE = 3\n"),
    ],
)
def test_what_changes_no_result_stops_nothing(train, file, old, new):
    assert train("width=4")[0] == 0
    change(file, old, new)
    assert train("width=8")[0] == 0
    if "16" in new:
        assert train("width=16")[0] == 0


def test_a_condition_has_one_run_in_mlflow_whichever_seeds_were_asked_for(train):
    for seed in ("3", "1"):
        assert train("width=8", "--seed", seed)[0] == 0
    tracking = Tracking(read_settings())
    runs = tracking._client.search_runs([tracking.find_experiment("toy").experiment_id], CONDITIONS)
    assert [run.info.run_name for run in runs] == ["width=8"]
    assert [replicate.seed for replicate in tracking.read_study("toy").replicates] == [1, 3]


def test_of_several_runs_of_a_condition_that_earlier_versions_made_every_seed_is_read(train, monkeypatch):
    monkeypatch.setattr(TaskFactory, "first_seed", property(lambda factory: factory.sweep.seeds[0]))
    for seed in ("3", "1"):
        assert train("width=8", "--seed", seed)[0] == 0
    assert [replicate.seed for replicate in Tracking(read_settings()).read_study("toy").replicates] == [1, 3]
