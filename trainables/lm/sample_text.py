"""A sample of the test text, its beginning, word by word, as a table and a figure for people."""

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from trainables.lm.analysis import words
from trainables.lm.corpus import Corpus
from trainables.lm.network import AttachedRecoder, Network
from trainables.lm.numbered_text import EOS

NUM_WORDS = 40


def draw(
    network: Network, text: Corpus, attached: AttachedRecoder | None, name: str, seed: int, folder: Path
) -> list[Path]:
    """`passage_NAME.csv` and `.png` in `folder`: surprisal in bits before and after recoding, and delta."""
    tokens = text.test[:NUM_WORDS].tolist()
    (record,) = words.read(network, [tokens], text.index[EOS], attached, seed)
    columns = {
        "word": [text.words[token] for token in tokens],
        "bits_before": record.nats_before / np.log(2),
        "bits_after": record.nats_after / np.log(2),
        "delta_before": record.delta_before,
        "delta_after": record.delta_after,
    }
    table, picture = (folder / f"passage_{name}.{ending}" for ending in ("csv", "png"))
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    figure = Figure(figsize=(max(6, 0.28 * len(tokens)), 4), layout="constrained")
    axes, places = figure.subplots(), np.arange(len(tokens))
    axes.plot(places, columns["bits_before"], marker="o", label="before recoding" if attached else None)
    if attached:
        axes.plot(places, columns["bits_after"], marker=".", label="after recoding")
        axes.legend()
    axes.set_xticks(places, columns["word"], rotation=90, parse_math=False)
    axes.set_ylabel("surprisal in bits")
    figure.savefig(picture, dpi=120)
    return [table, picture]
