"""How wide must a small network be for a noisy sine? With Lightning: `ponderay run lightning_module.py:widths`."""

import lightning
import torch

from ponderay import Config, Objective, Sweep, Trial, grid
from ponderay.lightning import ReportToTrial


class Setting(Config):
    width: int = 4
    seed: int = 1


class Network(lightning.LightningModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def on_train_epoch_end(self) -> None:
        x = torch.linspace(-6, 6, 500)[:, None]
        self.log("error", (self.layers(x) - x.sin()).square().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.03)


def train(config: Setting, trial: Trial) -> None:
    lightning.seed_everything(config.seed, verbose=False)
    x, noise = 12 * torch.rand(1000, 1) - 6, 0.1 * torch.randn(1000, 1)
    data = torch.utils.data.DataLoader(list(zip(x, x.sin() + noise, strict=True)), batch_size=50, shuffle=True)
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    report = ReportToTrial(trial, metrics={"macs": 2 * config.width})
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=20, callbacks=[report], **quiet)
    trainer.fit(Network(config.width), data, ckpt_path=trial.restore())


widths = Sweep(
    name="sine", description="A noisy sine, by width.", trainable=__name__, base=Setting(), reference="width=4",
    conditions=grid({"width": [1, 4, 16]}), objectives=(Objective("error"), Objective("macs")),
)  # fmt: skip
