"""A callback for Hugging Face's Trainer: each checkpoint that it saves becomes a report of the trial."""

from pathlib import Path
from typing import Any, Final

import transformers

from trainables.trial import Trial

TIMED: Final = ("runtime", "_per_second", "_flos")
"""Ends of the names of what no two runs share, or what is counted otherwise."""


class ReportToTrial(transformers.TrainerCallback):
    """Reports what was logged since the last report, and the checkpoint's folder, whenever the Trainer saves one.

    Of evaluations (`eval_...`) only that of the checkpoint's own step is reported, so let `eval_steps` divide
    `save_steps`. The training `loss` is a mean since it was logged last, which a resumed training does not know: one
    over both sides of a checkpoint is left out, so let `logging_steps` divide `save_steps` too. Times are left out:
    what ends in `runtime`, `_per_second` or `_flos`.

    Where the dataset or its collator draws at random, let checkpoints be at the ends of epochs: in the middle of one
    the Trainer's loader is a batch ahead of the random generators that are saved.

    The folder has optimiser, schedule and random generators, so that what is resumed has the same digits. Seed before
    the model is built, for the Trainer seeds after it:

        transformers.set_seed(config.seed)
        arguments = transformers.TrainingArguments(folder, seed=config.seed, save_steps=100, report_to="none", ...)
        trainer = transformers.Trainer(Model(config), arguments, callbacks=[ReportToTrial(trial)], ...)
        restored = trial.restore()
        trainer.train(resume_from_checkpoint=str(restored) if restored else None)

    Args:
        trial: what `train(config, trial)` was given.
        metrics: others than those that were logged, by name; such as counted costs.
    """

    def __init__(self, trial: Trial, metrics: dict[str, float] | None = None) -> None:
        self._trial, self._metrics, self._step, self._is_over = trial, metrics or {}, 0, False

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Where training goes on, what was logged before is reported already; what had ended early, ends again.

        Raises:
            ValueError: of settings with which what is resumed would not have the same digits.
        """
        for name in ("save_only_model", "load_best_model_at_end", "ignore_data_skip"):
            if getattr(args, name):
                raise ValueError(f"What is trained with `{name}=True` cannot be resumed to the digit; leave it out.")
        if "EarlyStoppingCallback" in state.stateful_callbacks and not args.restore_callback_states_from_checkpoint:
            raise ValueError(
                "`EarlyStoppingCallback` forgets its patience where training is resumed; give TrainingArguments "
                "`restore_callback_states_from_checkpoint=True`."
            )
        self._step = state.global_step
        if "EarlyStoppingCallback" in state.stateful_callbacks:
            self._is_over = state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]
            control.should_training_stop = self._is_over

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Reports, with the number of optimisation steps as the step."""
        if self._is_over:  # cut off behind its last report: the Trainer takes a step before it looks whether to stop
            return
        logged: dict[str, float] = {}
        before = 0  # when the loss was logged last
        for entry in state.log_history:  # in order: the newest value of each name counts
            step = entry.get("step", 0)
            if "loss" in entry:
                spans, before = before < self._step < step, step
                entry = {name: value for name, value in entry.items() if name != "loss" or not spans}
            for name, value in entry.items() if step > self._step else ():
                is_older = name.startswith("eval_") and step != state.global_step
                if isinstance(value, int | float) and not is_older and not name.endswith(TIMED):
                    logged[name] = float(value)
        self._step = state.global_step
        kept = {name: value for name, value in logged.items() if name != "step"} | {"epoch": float(state.epoch)}
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self._trial.report(kept | self._metrics, step=state.global_step, checkpoint=folder)
