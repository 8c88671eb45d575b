"""What the callbacks of other trainers report is of the weights that they report it with."""

from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow
QUIET = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)


class Reports(dict[int, dict[str, float]]):
    """A trial that keeps its reports, and the checkpoint of step 2."""

    def report(self, metrics: dict[str, float], *, step: int, checkpoint: Path) -> None:
        self[step] = metrics
        if step == 2 and checkpoint.is_file():
            checkpoint.rename("two.ckpt")


def line(num_points: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(-1, 1, num_points)[:, None]
    return x, 3 * x


def test_lightning_gives_a_value_to_the_epoch_that_logged_it_and_to_no_later_one(tmp_path, monkeypatch):
    import lightning

    from ponderay.lightning import ReportToTrial

    class Network(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def error(self, batch: list[torch.Tensor]) -> torch.Tensor:
            return (self.layer(batch[0]) - batch[1]).square().mean()

        def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
            self.log("train_loss", loss := self.error(batch))
            return loss

        def validation_step(self, batch: list[torch.Tensor]) -> None:
            self.log("valid_loss", self.error(batch))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def trained(checkpoint: Path | None = None) -> Reports:
        lightning.seed_everything(1, verbose=False)
        data = torch.utils.data.DataLoader(list(zip(*line(), strict=True)), batch_size=16)
        callbacks = [ReportToTrial(reports := Reports())]
        every = {"max_epochs": 4, "check_val_every_n_epoch": 2, "default_root_dir": tmp_path}
        trainer = lightning.Trainer(accelerator="cpu", callbacks=callbacks, **every, **QUIET)
        trainer.fit(Network(), data, data, ckpt_path=checkpoint)
        return reports

    monkeypatch.chdir(tmp_path)
    whole = trained()
    assert [sorted(whole[step]) for step in (1, 2, 3, 4)] == 2 * [["train_loss"], ["train_loss", "valid_loss"]]
    assert trained(Path("two.ckpt")) == {step: whole[step] for step in (3, 4)}


def test_hugging_face_gives_a_checkpoint_its_own_evaluation_and_no_older_one(tmp_path):
    import transformers

    from ponderay.transformers import ReportToTrial

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": (self.layer(x) - labels).square().mean()}

    data = [{"x": x, "labels": y} for x, y in zip(*line(), strict=True)]
    steps = {"max_steps": 12, "save_steps": 4, "eval_steps": 3, "eval_strategy": "steps", "logging_steps": 2}
    arguments = transformers.TrainingArguments(
        tmp_path, per_device_train_batch_size=8, report_to="none", use_cpu=True, disable_tqdm=True, **steps
    )
    trainer = transformers.Trainer(
        Model(), arguments, train_dataset=data, eval_dataset=data, callbacks=[ReportToTrial(reports := Reports())]
    )
    trainer.train()
    (evaluated,) = [
        entry["eval_loss"] for entry in trainer.state.log_history if entry.get("step") == 12 and "eval_loss" in entry
    ]
    assert [report.get("eval_loss") for report in reports.values()] == [None, None, evaluated]
    assert [report["epoch"] for report in reports.values()] == [0.5, 1.0, 1.5]
    assert all("loss" in report for report in reports.values())
