"""What the callbacks of other trainers report is of the weights that they report it with."""

from pathlib import Path
from typing import Any

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
    from lightning.pytorch.callbacks import EarlyStopping

    from ponderay.lightning import ReportToTrial

    class Network(lightning.LightningModule):
        def __init__(self, on_plateau: bool) -> None:
            super().__init__()
            self.layer, self.on_plateau = torch.nn.Linear(1, 1), on_plateau

        def error(self, batch: list[torch.Tensor]) -> torch.Tensor:
            return (self.layer(batch[0]) - batch[1]).square().mean()

        def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
            self.log("train_loss", loss := self.error(batch))
            return loss

        def validation_step(self, batch: list[torch.Tensor]) -> None:
            self.log("valid_loss", self.error(batch))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            if not self.on_plateau:
                return optimizer
            schedule = {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer), "monitor": "train_loss"}
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    def trained(
        checkpoint: Path | None = None, on_plateau: bool = False, workers: int = 0, stops: Any = (), **more: Any
    ) -> Reports:
        lightning.seed_everything(1, verbose=False)
        data = torch.utils.data.DataLoader(
            list(zip(*line(), strict=True)), batch_size=16, num_workers=workers, persistent_workers=workers > 0
        )
        callbacks = [*stops, ReportToTrial(reports := Reports())]
        every = {"max_epochs": 4, "check_val_every_n_epoch": 2, "default_root_dir": tmp_path} | more
        trainer = lightning.Trainer(accelerator="cpu", callbacks=callbacks, **every, **QUIET)
        trainer.fit(Network(on_plateau), data, data, ckpt_path=checkpoint)
        return reports

    monkeypatch.chdir(tmp_path)
    whole = trained()
    assert [sorted(whole[step]) for step in (1, 2, 3, 4)] == 2 * [["train_loss"], ["train_loss", "valid_loss"]]
    assert trained(Path("two.ckpt")) == {step: whole[step] for step in (3, 4)}
    never_better = {"monitor": "train_loss", "min_delta": 100.0, "patience": 1, "check_on_train_epoch_end": True}
    stops = [EarlyStopping(**never_better)]
    assert list(trained(stops=stops)) == [1, 2]
    assert trained(Path("two.ckpt"), stops=stops) == {}, "it had ended when it was cut off"
    earlier = torch.load("two.ckpt", weights_only=True)
    del earlier["ponderay.random"]["should_stop"]
    torch.save(earlier, "two.ckpt")
    assert list(trained(Path("two.ckpt"))) == [3, 4], "of a version that did not note it"
    lasting = {"workers": 1, "num_sanity_val_steps": 0}
    for refused in ({"max_steps": 8}, {"on_plateau": True}, lasting):
        with pytest.raises(ValueError, match="cannot be resumed to the digit"):
            trained(**refused)


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

    def trained(
        logging_steps: int, resumed: str = "", patience: int | None = None, **more: Any
    ) -> tuple[Reports, list[dict[str, float]]]:
        transformers.set_seed(1)
        steps = {"max_steps": 12, "save_steps": 4, "eval_steps": 3, "eval_strategy": "steps"}
        arguments = transformers.TrainingArguments(
            tmp_path,
            per_device_train_batch_size=8,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            logging_steps=logging_steps,
            **steps | more,
        )
        callbacks: list[Any] = [ReportToTrial(reports := Reports())]
        callbacks += [transformers.EarlyStoppingCallback(patience)] if patience else []
        trainer = transformers.Trainer(Model(), arguments, train_dataset=data, eval_dataset=data, callbacks=callbacks)
        trainer.train(resume_from_checkpoint=resumed or None)
        return reports, trainer.state.log_history

    reports, history = trained(2)
    (evaluated,) = [entry["eval_loss"] for entry in history if entry.get("step") == 12 and "eval_loss" in entry]
    assert [report.get("eval_loss") for report in reports.values()] == [None, None, evaluated]
    assert [report["epoch"] for report in reports.values()] == [0.5, 1.0, 1.5]
    assert all("loss" in report for report in reports.values())
    # The mean of the steps 4 to 6 has a checkpoint within it, and so has that of 7 to 9: what is resumed lacks a part.
    whole, _ = trained(3)
    assert ["loss" in report for report in whole.values()] == [True, False, True]
    assert trained(3, str(tmp_path / "checkpoint-4"))[0] == {step: whole[step] for step in (8, 12)}
    best = {"load_best_model_at_end": True, "eval_steps": 2}
    for refused in ({"save_only_model": True}, {"ignore_data_skip": True}, best):
        with pytest.raises(ValueError, match=f"`{next(iter(refused))}=True` cannot be resumed to the digit"):
            trained(2, **refused)
    by_loss = {"metric_for_best_model": "eval_loss"}
    with pytest.raises(ValueError, match="`EarlyStoppingCallback` forgets its patience"):
        trained(2, patience=9, **by_loss)
    by_loss |= {"restore_callback_states_from_checkpoint": True, "greater_is_better": True, "eval_steps": 4}
    assert list(trained(2, patience=9, **by_loss)[0]) == [4, 8, 12]
    assert list(trained(2, patience=1, **by_loss)[0]) == [4, 8]
    assert list(trained(2, str(tmp_path / "checkpoint-8"), patience=1, **by_loss)[0]) == [], "it had ended"
