"""One day of a researcher with an own model, by commands and Python alone: from `check` to another disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas
import pytest
from rich.console import Console
from typer.testing import CliRunner

import ponderay
from orchestrator.cli.main import app
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.run import run_here
from orchestrator.tracking.client import Tracking
from orchestrator.worker import trainable
from search_spaces.find import find_sweep
from tests.waiting import until
from trainables.errors import InputError

MODEL = """
import dataclasses, os, time
import torch
import ponderay

@dataclasses.dataclass(frozen=True)
class Setting:
    width: int = 8
    lr: float = 0.5
    seed: int = 1

def images(seed, number):
    random = torch.Generator().manual_seed(seed)
    shapes = (torch.rand(10, 64, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    labels = torch.randint(10, (number,), generator=random)
    return shapes[labels] + 0.8 * torch.randn(number, 64, generator=random), labels

def train(config, trial):
    torch.manual_seed(config.seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, config.width), torch.nn.Tanh(), torch.nn.Linear(config.width, 10))
    first = 0
    if checkpoint := trial.restore():
        known = torch.load(checkpoint)
        model.load_state_dict(known["model"])
        first = known["epoch"]
    (x, labels), (new, answers) = images(config.seed, 256), images(10_000, 256)
    for epoch in range(first, 4):
        for _ in range(10):
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight -= config.lr * weight.grad
        error = (model(new).argmax(1) != answers).float().mean().item()
        torch.save({"model": model.state_dict(), "epoch": epoch + 1}, f"{config.width}-{config.seed}.pt")
        metrics = {"loss": error + 1e-4 * loss.item(), "macs": 74 * config.width}
        trial.report(metrics, step=epoch + 1, checkpoint=f"{config.width}-{config.seed}.pt")
        if epoch == 1 and os.environ.get("SLOW"):
            time.sleep(600)

base = dict(description="Made-up digits.", trainable=__name__, base=Setting(), seeds=(1, 2),
            objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")))
digits = ponderay.Sweep(name="digits", conditions=ponderay.grid({"width": [2, 8, 32]}), reference="width=8", **base)
tuned = ponderay.Sweep(
    name="tuned", search=ponderay.Search({"lr": ponderay.Real(0.05, 1.0)}, num_trials=3), **{**base, "seeds": (1,)}
)
"""


@pytest.fixture
def place(workplace, ray_instance):
    yield workplace
    forget()


def forget():
    sys.modules.pop("mlp", None)
    trainable._load.cache_clear()


def write(text):
    forget()
    Path("mlp.py").write_text(text)


def command(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def answers(name="digits"):
    """All that a study answers, with all digits."""
    front = json.loads(command("pareto", name, "--format", "json"))["points"]
    return (
        front,
        command("compare", name, "width=2", "width=32", "--format", "csv"),
        ponderay.load(name).to_dataframe().to_json(),
    )


def run(name):
    """As `ponderay run`, without Ray, which takes most of a test's time."""
    return run_here(find_sweep(name), read_settings(), Console(quiet=True))


@pytest.mark.slow
def test_the_day_of_a_researcher(place):
    # Morning: the model is checked, a replicate is killed, and the sweep goes on where it was.
    write(MODEL)
    command("check", "mlp.py:digits")
    program = [sys.executable, "-m", "orchestrator", "train", "mlp.py:digits", "--condition", "width=8"]
    slow = subprocess.Popen(program, env=os.environ | {"SLOW": "1"}, start_new_session=True)  # noqa: S603
    until(lambda: list(place.glob("runs/replicates/digits/*/step_*2.*.pt")))
    os.killpg(slow.pid, signal.SIGKILL)
    slow.wait()
    assert "stopped" in command("status", "digits")
    assert "6 complete, 0 failed" in command("run", "mlp.py:digits", "--cpus", "2")
    before = answers()
    assert len(ponderay.load("digits").settings) == 3

    # The code changes: the file is named, with what to do. What the new code trains is not mixed with the old.
    write(MODEL.replace("0.8 * torch.randn", "1.5 * torch.randn"))
    with pytest.raises(RefusedError) as refused:
        command("train", "mlp.py:digits", "--condition", "width=8")
    assert all(
        part in str(refused.value) for part in ("changed: mlp.py", "--accept-code", "--again", "ponderay rename")
    )
    assert "6 complete, 0 failed" in command("run", "mlp.py:digits", "--cpus", "2", "--again")
    after, study = answers(), ponderay.load("digits")
    assert after[0] != before[0] and len({one.code_version for one in study.replicates}) == 1
    command("run", "mlp.py:digits", "--again")  # nothing is left to do
    (old,) = place.glob("runs/archives/digits.*.zip")
    with pytest.raises(RefusedError, match="digits has width=2 seed 1 already"):
        command("restore", str(old))

    # The old results become a study beside the new ones, equal to what they were.
    command("rename", "digits", "digits.noisy")
    assert answers("digits.noisy")[0] == after[0]
    command("restore", str(old))
    assert answers() == before

    # A config field has another default: fields are named.
    write(MODEL.replace("lr: float = 0.5", "lr: float = 0.25"))
    with pytest.raises(RefusedError, match=r"lr was 0.5, now 0.25.*--again"):
        command("train", "mlp.py:digits", "--condition", "width=8")
    write(MODEL)
    assert run("mlp.py:digits").num_failed == 0  # and MLflow gets again what is in the renamed sweep's runs

    # Grid, search, and what a notebook, a paper and other programs get.
    grid = ponderay.run("mlp.py:digits", cpus=2, grid={"width": [8], "lr": [0.1]})
    assert "width=8,lr=0.1" in grid.conditions
    run("mlp.py:tuned")
    best = ponderay.load("tuned").best("loss")
    assert 0.05 <= best.config().lr <= 1.0 and best.checkpoint().exists()
    command("checkpoint", "digits", "width=32", "2", "--to", "models")
    assert "<table>" in ponderay.pareto("digits")._repr_html_()
    assert "Figure" in command("pareto", "digits", "--format", "pdf")
    command("export", "digits", "--to", "digits.csv")

    put_away_and_bring_back()
    move(place)


def put_away_and_bring_back():
    """Some of it is removed and comes back; an archive brings everything back."""
    whole, tuned = answers(), ponderay.load("tuned")
    with pytest.raises(RefusedError, match="--yes"):
        command("rm", "digits", "--condition", "width=8", "--seed", "2")
    command("rm", "digits", "--condition", "width=8", "--seed", "2", "--to", "one.zip", "--yes")
    assert answers() != whole
    command("restore", "one.zip")
    assert answers() == whole
    mirrored = Tracking(read_settings()).read_study("digits").replicates
    assert sorted(mirrored, key=str) == sorted(ponderay.load("digits").replicates, key=str)
    command("archive", "digits", "--to", "digits.zip")
    command("archive", "digits", "--to", "small.zip", "--without-checkpoints")
    assert Path("small.zip").stat().st_size < Path("digits.zip").stat().st_size
    command("rm", "digits", "--condition", "width=8", "--yes")
    assert "Of digits 2 of 8 replicates are back" in command("restore", "digits.zip") and answers() == whole
    for name in ("digits", "tuned"):
        command("rm", name, "--to", f"{name}.gone.zip", "--yes")
        with pytest.raises(InputError, match="has not run here yet"):
            ponderay.load(name)
    command("restore", "tuned.gone.zip")
    assert ponderay.load("tuned") == tuned
    assert len(run("mlp.py:tuned").replicates) == 3, "Optuna knows its trials, too"
    command("restore", "digits.zip")
    assert answers() == whole and run("mlp.py:digits").num_failed == 0


def move(place):
    """The disk is full: the runs folder moves, and answers as before."""
    command("clean", "--yes")
    whole = answers()
    (place / "elsewhere").mkdir()
    shutil.move(place / "runs", place / "elsewhere" / "runs")
    os.environ["PONDERAY_RUNS"] = str(place / "elsewhere" / "runs")
    try:
        assert answers() == whole and ponderay.load("digits").best("loss").checkpoint().exists()
        command(
            "import",
            "digits.csv",
            "--seed",
            "seed",
            "--condition",
            "condition",
            "--objective",
            "loss",
            "--name",
            "again",
        )
        assert ponderay.load("again").summary("width=8", "loss") == ponderay.load("digits").summary("width=8", "loss")
    finally:
        del os.environ["PONDERAY_RUNS"]


def archive_of_one(place):
    """An archive of a study of one replicate, by name its content."""
    write(MODEL)
    command("train", "mlp.py:digits", "--condition", "width=2")
    command("archive", "digits", "--to", "one.zip")
    with zipfile.ZipFile("one.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
def test_an_archive_that_was_changed_restores_nothing(place):
    contents = archive_of_one(place)
    journal = next(name for name in contents if name.endswith("journal.jsonl"))
    command("rm", "digits", "--yes")
    about = json.loads(contents["archive.json"])

    def changed(**entries):
        with zipfile.ZipFile("bad.zip", "w") as archive:
            for name, content in (contents | entries).items():
                archive.writestr(name, content)
        with pytest.raises(InputError) as refused:
            command("restore", "bad.zip")
        assert not list(place.glob("runs/replicates/digits/*/journal.jsonl")) and "\n" not in str(refused.value)
        return str(refused.value)

    assert f"{journal} is damaged" in changed(**{journal: contents[journal].replace(b"0", b"1")})
    assert "not those that it lists" in changed(**{"../evil": b"x"})
    for name in ("../evil", "/tmp/evil", "replicates/../../evil", f"{journal}/../../../evil", "replicates/x/y"):
        listed = json.dumps(about | {"sha256": about["sha256"] | {name: "0"}}).encode()
        assert "leads elsewhere" in changed(**{name: b"x", "archive.json": listed})
    Path("bad.zip").write_bytes(Path("one.zip").read_bytes()[:-40])
    with pytest.raises(InputError, match="must be an archive of `ponderay archive`"):
        command("restore", "bad.zip")
    command("restore", "one.zip")
    assert pandas.notna(ponderay.load("digits").to_dataframe()["loss"]).all()
