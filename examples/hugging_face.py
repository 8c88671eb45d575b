"""How wide must a small network be for a noisy sine? With Hugging Face: `ponderay run hugging_face.py:widths`."""

import tempfile

import torch
import transformers

from ponderay import Config, Objective, Sweep, Trial, grid
from ponderay.transformers import ReportToTrial


class Setting(Config):
    width: int = 4
    seed: int = 1


class Network(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


def train(config: Setting, trial: Trial) -> None:
    transformers.set_seed(config.seed)  # before the model is built: the Trainer seeds after it
    x = 12 * torch.rand(1000, 1) - 6
    noisy = [{"x": value, "labels": value.sin() + 0.1 * torch.randn(1)} for value in x]
    clean = [{"x": value[None], "labels": value[None].sin()} for value in torch.linspace(-6, 6, 500)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, seed=config.seed, max_steps=400, per_device_train_batch_size=50, learning_rate=0.03, use_cpu=True,
            eval_strategy="steps", eval_steps=100, save_steps=100, report_to="none", disable_tqdm=True,
        )  # fmt: skip
        report = ReportToTrial(trial, metrics={"macs": 2 * config.width})
        network = Network(config.width)
        trainer = transformers.Trainer(network, arguments, train_dataset=noisy, eval_dataset=clean, callbacks=[report])
        restored = trial.restore()
        trainer.train(resume_from_checkpoint=str(restored) if restored else None)


widths = Sweep(
    name="sine_hf", description="A noisy sine, by width.", trainable=__name__, base=Setting(), reference="width=4",
    conditions=grid({"width": [1, 4, 16]}), objectives=(Objective("eval_loss"), Objective("macs")),
)  # fmt: skip
