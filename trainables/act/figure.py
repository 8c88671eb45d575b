"""Tables and figures of a test: updates against difficulty; over a sample of the text, with surprisal and entropy."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainables.act.config import ActConfig, Adaptive, EarlyExit, Fixed, LearntTau, PonderNet, Text
from trainables.act.evaluation import Results
from trainables.act.tasks.batch import Batch

NUM_SHOWN = 100
"""Bytes of the sample text."""

DIFFICULTIES = {"parity": "active bits", "logic": "gates", "addition": "digits", "sort": "items"}


def draw(config: ActConfig, results: Results, sequences: Batch, name: str, folder: Path) -> list[Path]:
    """Writes table and figure of the test `name` to `folder` and returns their paths."""
    if isinstance(config.data, Text):
        return _draw_sample_text(config, results, sequences, folder / f"passage_{name}")
    return _draw_difficulty(config, results, folder / f"difficulty_{name}")


def by_difficulty(results: Results) -> list[dict[str, float]]:
    """Steps, mean and standard deviation of N, and errors where there is a target, at each difficulty."""
    rows: list[dict[str, float]] = []
    for level in np.unique(results.difficulty[results.is_step]):
        chosen = results.is_step & (results.difficulty == level)
        updates, is_target = results.num_updates[chosen], results.has_target[chosen]
        row: dict[str, float] = {"difficulty": int(level), "num_steps": len(updates)}
        row |= {"mean_updates": float(updates.mean()), "std_updates": float(updates.std())}
        if is_target.any():
            row["step_error"] = float(1 - results.is_right[chosen].sum() / is_target.sum())
        rows.append(row)
    return rows


def _draw_difficulty(config: ActConfig, results: Results, path: Path) -> list[Path]:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = by_difficulty(results)
    figure = Figure(figsize=(7, 6), layout="constrained")
    updates, errors = figure.subplots(2, 1, sharex=True)
    levels = [row["difficulty"] for row in rows]
    spread = [row["std_updates"] for row in rows]
    updates.errorbar(levels, [row["mean_updates"] for row in rows], spread, fmt="o-", capsize=2)
    updates.set_ylabel("updates N: mean, standard deviation")
    tested = [row for row in rows if "step_error" in row]
    errors.plot([row["difficulty"] for row in tested], [row["step_error"] for row in tested], "o-")
    errors.set(ylabel="step error", xlabel=DIFFICULTIES[config.data.kind])
    errors.xaxis.set_major_locator(MaxNLocator(integer=True))
    errors.set_ylim(bottom=0)
    figure.suptitle(_title(config), parse_math=False)
    figure.savefig(path.with_suffix(".png"), format="png", dpi=100)
    columns = ("difficulty", "num_steps", "mean_updates", "std_updates", "step_error")
    return [path.with_suffix(".png"), _write_csv(path, columns, rows)]


def sample_text(results: Results, sequences: Batch) -> list[dict[str, Any]]:
    """N of each byte of the first sequence, and surprisal and entropy, in nats, of the prediction of the next byte."""
    return [
        {
            "byte": int(sequences.inputs[0, step]),
            "num_updates": int(results.num_updates[0, step]),
            "surprisal_nats": float(results.nats[0, step]),
            "entropy_nats": float(results.entropies[0, step]),
        }
        for step in range(int(results.num_steps[0]))
    ]


def _draw_sample_text(config: ActConfig, results: Results, sequences: Batch, path: Path) -> list[Path]:
    from matplotlib.figure import Figure

    rows = sample_text(results, sequences)
    drawn = rows[len(rows) // 2 :][:NUM_SHOWN]
    places = range(len(drawn))
    figure = Figure(figsize=(max(4.0, 0.16 * len(drawn)), 6), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    names = {
        "num_updates": "updates N",
        "surprisal_nats": "surprisal of the\nnext byte (nats)",
        "entropy_nats": "entropy of its\nprediction (nats)",
    }
    for axes, (column, label) in zip(panels, names.items(), strict=True):
        axes.bar(places, [row[column] for row in drawn], width=0.9)
        axes.set_ylabel(label)
    panels[-1].set_xticks(places, [visible(row["byte"]) for row in drawn], family="monospace", parse_math=False)
    panels[-1].set_xlim(-0.5, len(drawn) - 0.5)
    figure.suptitle(_title(config), parse_math=False)
    figure.savefig(path.with_suffix(".png"), format="png", dpi=100)
    return [path.with_suffix(".png"), _write_csv(path, tuple(rows[0]), rows)]


def _title(config: ActConfig) -> str:
    match config.halting:
        case Fixed(num_updates=count):
            updates = f"updates at every step: {count}"
        case Adaptive(tau=LearntTau(mean_updates=budget)):
            updates = f"updates held to {budget:g} on average"
        case Adaptive(tau=tau):
            updates = f"tau = {tau}"
        case PonderNet(beta=beta, lambda_p=lambda_p):
            updates = f"PonderNet, beta = {beta:g}, lambda_p = {lambda_p:g}"
        case EarlyExit(max_updates=most):
            updates = f"exit by confidence, up to {most} updates"
    return f"{config.data.kind}, {config.cell} of {config.hidden_size}, {updates}"


def visible(byte: int) -> str:
    """A character that can be seen."""
    special = {ord(" "): "\u2423", ord("\n"): "\u21b5", ord("\t"): "\u21e5"}
    return special.get(byte) or (chr(byte) if 32 < byte < 127 else f"{byte:02x}")


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> Path:
    with path.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path.with_suffix(".csv")
