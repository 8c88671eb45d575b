"""A callback for Lightning: each epoch's metrics and checkpoint become a report of the trial."""

import random
import tempfile
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Checkpoint
from torch.utils._pytree import tree_leaves

from trainables.trial import Trial

KEY = "ponderay.random"


class ReportToTrial(Checkpoint):  # Lightning calls these last, so that what a module logs at an epoch's end is there
    """Reports what an epoch logged and a checkpoint at the end of it; what is resumed has the same digits.

    Three things Lightning cannot resume to the digit, and they are refused: `max_steps`, behind which a restart counts
    as the middle of an epoch; `ReduceLROnPlateau`, whose step no checkpoint of its epoch has; and loaders with
    `persistent_workers`, which draw a seed at their first epoch alone, and after a restart once more.

    Lightning keeps a value until its name is logged again; one of an earlier epoch, and of other weights, is left out.
    Lightning keeps no state of random generators, so that a resumed training would see other batches and other dropout.
    This callback keeps them in the checkpoint. It stands in for Lightning's own checkpoints, so leave
    `enable_checkpointing` as it is. Give `trial.restore()` to `fit`, and seed before the model is built:

        lightning.seed_everything(config.seed)
        trainer = lightning.Trainer(max_epochs=20, callbacks=[ReportToTrial(trial)])
        trainer.fit(Network(config), data, ckpt_path=trial.restore())

    Args:
        trial: what `train(config, trial)` was given.
        every_n_epochs: how often; the last epoch is reported too.
        metrics: others than those that were logged, by name; such as counted costs.
    """

    def __init__(self, trial: Trial, every_n_epochs: int = 1, metrics: dict[str, float] | None = None) -> None:
        self._trial, self._every, self._metrics = trial, every_n_epochs, metrics or {}
        self._before: dict[str, torch.Tensor] = {}

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Refuses what would not be resumed to the digit; raises ValueError."""
        if trainer.max_steps != -1:
            raise ValueError(
                f"`Trainer(max_steps={trainer.max_steps})` cannot be resumed to the digit; use `max_epochs`."
            )
        if pl_module.automatic_optimization and any(one.reduce_on_plateau for one in trainer.lr_scheduler_configs):
            raise ValueError(
                "Lightning steps `ReduceLROnPlateau` behind an epoch's checkpoint: it cannot be resumed to the digit. "
                "Use another schedule, or set the rate in `on_train_epoch_end`."
            )

        given = (trainer.train_dataloader, trainer.val_dataloaders)
        if any(getattr(loader, "persistent_workers", False) for loader in tree_leaves(given)):
            raise ValueError(
                "A loader with `persistent_workers=True` cannot be resumed to the digit; leave that out of the loaders "
                "that `fit` is given."
            )

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Notes what was logged before the epoch."""
        self._before = dict(trainer.callback_metrics)

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Reports, with the number of epochs as the step."""
        epoch = trainer.current_epoch + 1
        is_last = trainer.should_stop or epoch == trainer.max_epochs
        if epoch % self._every and not is_last:
            return
        new = {name: value for name, value in trainer.callback_metrics.items() if value is not self._before.get(name)}
        logged = {name: float(value) for name, value in new.items()}
        with tempfile.TemporaryDirectory() as folder:
            trainer.save_checkpoint(file := Path(folder) / "last.ckpt")
            self._trial.report(logged | self._metrics, step=epoch, checkpoint=file)

    def on_save_checkpoint(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Adds the states of the random generators, as what a reader of weights alone takes, and whether to stop."""
        state = np.random.get_state(legacy=False)
        state["state"]["key"] = torch.from_numpy(state["state"]["key"].astype(np.int64))
        checkpoint[KEY] = {
            "python": random.getstate(),
            "numpy": state,
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "should_stop": trainer.should_stop,
        }

    def on_load_checkpoint(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Puts the random generators back, and ends what was cut off behind the report that ended it."""
        states = checkpoint[KEY]
        trainer.should_stop = states.get("should_stop", False)  # earlier versions did not note it
        random.setstate(states["python"])
        states["numpy"]["state"]["key"] = states["numpy"]["state"]["key"].numpy().astype(np.uint32)
        np.random.set_state(states["numpy"])
        torch.set_rng_state(states["torch"])
        if len(states["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(states["cuda"])
