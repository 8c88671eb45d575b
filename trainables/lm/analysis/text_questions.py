"""What `ponderay analyse` asks of language models about the test text: delta and loss, groups of words, batches."""

from pathlib import Path
from typing import Final

from trainables.analysis import Analysis, Cells, Lines, Options
from trainables.errors import InputError
from trainables.lm.analysis import delta_and_loss, trained_model, uncertainty, word_groups
from trainables.lm.config import Evaluation, LmConfig

NUM_BATCHES: Final = 50


def about_delta(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Mean loss by delta, and correlations."""
    return delta_and_loss.relation(trained_model.load(config, checkpoint, evaluation))


def about_groups(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Perplexity of groups of tokens."""
    return word_groups.perplexities(trained_model.load(config, checkpoint, evaluation))


def about_batches(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Delta batch by batch."""
    first, count = _number(options, "first", 1), _number(options, "count", NUM_BATCHES)
    return uncertainty.by_batch(trained_model.load(config, checkpoint, evaluation), first, count)


def _number(options: Options, name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise InputError(f"The option `{name}` must be a whole number from 1, but got {text!r}.")
    return int(text)


DELTA_AND_LOSS: Final = Analysis(
    about="How the error signal of a token goes with its loss, and how their changes by recoding go together.",
    columns=("tenth",),
    ask=about_delta,
    headings={
        "next_loss": "next loss",
        "delta_change": "change of delta",
        "loss_change": "change of loss",
        "correlation": "r",
        "correlation_of_changes": "r of changes",
        "correlation_with_next": "r with next loss",
    },
    lines=Lines(
        panel="",
        tick="tenth",
        measures={
            "loss": "of the token",
            "next_loss": "of the token behind it",
            "delta": "delta",
            "delta_change": "of delta",
            "loss_change": "of the loss, in nats",
            "correlation": "of delta and loss",
            "correlation_of_changes": "of their changes",
            "correlation_with_next": "of delta and the next loss",
        },
        axis=dict.fromkeys(("loss", "next_loss"), "mean loss in nats")
        | {"delta": "mean error signal delta"}
        | dict.fromkeys(("delta_change", "loss_change"), "mean change by recoding")
        | dict.fromkeys(
            ("correlation", "correlation_of_changes", "correlation_with_next"), "correlation r, all tokens"
        ),
        along="tenth of the tokens, from the lowest delta to the highest",
    ),
)
WORD_GROUPS: Final = Analysis(
    about="Perplexity of the test's tokens by their word's frequency in training and by their position.",
    columns=("kind", "group"),
    ask=about_groups,
    compared=("perplexity_without", "perplexity_with"),
    headings={"perplexity_without": "without", "perplexity_with": "with", "num_tokens": "tokens"},
    lines=Lines(
        panel="kind",
        tick="group",
        measures={"perplexity_without": "without recoder", "perplexity_with": "with recoder"},
        axis="perplexity",
    ),
)
BATCHES: Final = Analysis(
    about="The error signal over the test text, batch by batch, with the loss and the step sizes.",
    columns=("batch",),
    ask=about_batches,
    compared=("delta_before", "delta_after"),
    options={
        "first": "number of the first batch; default: 1",
        "count": f"how many batches; default: {NUM_BATCHES}",
    },
    headings={"delta_before": "delta", "delta_after": "delta'", "step_size": "step"},
    lines=Lines(
        panel="",
        tick="batch",
        measures={
            "delta_before": "before recoding",
            "delta_after": "after recoding",
            "loss": "loss",
            "step_size": "step size",
        },
        axis=dict.fromkeys(("delta_before", "delta_after"), "error signal delta")
        | {"loss": "loss in nats", "step_size": "mean step size"},
        along="batch of the test text",
    ),
)
