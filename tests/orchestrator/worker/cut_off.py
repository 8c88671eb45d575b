"""A replicate of a small torch model that is cut off, and goes on."""

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.worker.execute import execute
from orchestrator.worker.work import Work

SOURCE = """
import dataclasses
import tempfile
from pathlib import Path

import torch

import ponderay


@dataclasses.dataclass(frozen=True)
class Toy:
    num_steps: int = 6
    seed: int = 1


def num_steps(config):
    return config.num_steps


def train(config, trial):
    model, total, first = torch.nn.Linear(1, 1), 0.0, 1
    torch.manual_seed(config.seed)
    if found := trial.restore():
        state = torch.load(found, weights_only=True)
        model.load_state_dict(state["model"])
        total, first = state["total"], state["step"] + 1
        torch.set_rng_state(state["rng"])
    if Path("own_fault").exists() and first > 1:
        raise OWN_FAULT
    for step in range(first, config.num_steps + 1):
        total += float(torch.rand(()))
        state = {"model": model.state_dict(), "total": total, "step": step, "rng": torch.get_rng_state()}
        with tempfile.TemporaryDirectory() as folder:
            torch.save(state, Path(folder) / "state.pt")
            trial.report({"total": total}, step=step, checkpoint=Path(folder) / "state.pt")


def evaluate(config, checkpoint, evaluation, trial):
    trial.report({"loss": torch.load(checkpoint)["total"]}, step=config.num_steps)


toy = ponderay.Sweep(
    name="toy",
    description="A sum of random numbers.",
    trainable=__name__,
    base=Toy(),
    conditions=(ponderay.Condition("a", {}),),
    objectives=(ponderay.Objective("loss"),),
)
"""


def undisturbed(work: Work) -> list[tuple[int, dict[str, float]]]:
    """What it reports from start to end."""
    whole = work.model_copy(update={"folder": work.folder.with_name("whole")})
    execute(whole, lambda record: None)
    return reported(whole)


def reported(work: Work) -> list[tuple[int, dict[str, float]]]:
    records = ReplicateFolder(work.folder, {}).records()
    return [(record["step"], record["metrics"]) for record in records if record["kind"] in ("metrics", "evaluation")]


def cut_off(work: Work, after: int) -> None:
    """Its first session ends with a report."""

    def stop(record):
        if record.get("step") == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(work, stop)


def go_on(work: Work) -> list[Record]:
    records = []
    execute(work.model_copy(update={"attempt": "second"}), records.append)
    return records
