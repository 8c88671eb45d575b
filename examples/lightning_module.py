"""The sweep of plain_torch.py with Lightning: `ponderay run lightning_module.py:widths`."""

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path

import lightning
import ponderay
import torch
from plain_torch import spirals
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Setting:
    width: int = 16
    num_epochs: int = 20
    seed: int = 1


class Network(lightning.LightningModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.layers = hidden.append(nn.Linear(width, 2))

    def training_step(self, batch: list[Tensor]) -> Tensor:
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


class ReportToTrial(lightning.Callback):
    def __init__(self, trial: ponderay.Trial) -> None:
        self.trial = trial

    # Lightning's checkpoint has no random generator; without them other batches follow a restart
    def on_save_checkpoint(self, trainer: lightning.Trainer, module: Network, checkpoint: dict) -> None:
        checkpoint["random"] = torch.get_rng_state()

    def on_load_checkpoint(self, trainer: lightning.Trainer, module: Network, checkpoint: dict) -> None:
        torch.set_rng_state(checkpoint["random"])

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: Network) -> None:
        x, y = spirals(1000, seed=-1)
        error = (module.layers(x).argmax(1) != y).float().mean().item()
        with tempfile.TemporaryDirectory() as folder:
            trainer.save_checkpoint(file := Path(folder) / "last.ckpt")
            metrics = {"error": error, "macs": module.layers[0].out_features * (module.layers[0].out_features + 4)}
            self.trial.report(metrics, step=trainer.current_epoch + 1, checkpoint=file)


def train(config: Setting, trial: ponderay.Trial) -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(config.seed, verbose=False)
    data = DataLoader(TensorDataset(*spirals(1000, seed=0)), batch_size=64, shuffle=True)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=config.num_epochs, callbacks=[ReportToTrial(trial)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Network(config.width), data, ckpt_path=trial.restore())
