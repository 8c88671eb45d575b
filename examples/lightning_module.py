"""How wide must a small network be for a noisy sine? With Lightning: `ponderay run lightning_module.py:widths`."""

import tempfile
from pathlib import Path

import lightning
import torch

from ponderay import Config, Objective, Sweep, Trial, grid


class Setting(Config):
    width: int = 4
    seed: int = 1


class Network(lightning.LightningModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.03)


class ReportToTrial(lightning.Callback):
    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def on_save_checkpoint(self, trainer: lightning.Trainer, module: Network, checkpoint: dict) -> None:
        checkpoint["random"] = torch.get_rng_state()  # Lightning saves none; without it other batches would follow

    def on_load_checkpoint(self, trainer: lightning.Trainer, module: Network, checkpoint: dict) -> None:
        torch.set_rng_state(checkpoint["random"])

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: Network) -> None:
        x = torch.linspace(-6, 6, 500)[:, None]
        error, macs = (module.layers(x) - x.sin()).square().mean().item(), 2 * module.layers[0].out_features
        with tempfile.TemporaryDirectory() as folder:
            trainer.save_checkpoint(file := Path(folder) / "last.ckpt")
            self.trial.report({"error": error, "macs": macs}, step=trainer.current_epoch + 1, checkpoint=file)


def train(config: Setting, trial: Trial) -> None:
    lightning.seed_everything(config.seed, verbose=False)
    x, noise = 12 * torch.rand(1000, 1) - 6, 0.1 * torch.randn(1000, 1)
    data = torch.utils.data.DataLoader(list(zip(x, x.sin() + noise, strict=True)), batch_size=50, shuffle=True)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=20, callbacks=[ReportToTrial(trial)], **quiet)
    trainer.fit(Network(config.width), data, ckpt_path=trial.restore())


widths = Sweep(
    name="sine", description="A noisy sine, by width.", trainable=__name__, base=Setting(), reference="width=4",
    conditions=grid({"width": [1, 4, 16]}), objectives=(Objective("error"), Objective("macs")),
)  # fmt: skip
