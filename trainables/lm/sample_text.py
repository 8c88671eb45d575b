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
    _figure(columns["word"], record, attached is not None).savefig(picture, dpi=120)
    return [table, picture]


def _figure(names: list[str], record: words.WordRecord, is_recoded: bool) -> Figure:
    figure = Figure(figsize=(max(6, 0.28 * len(names)), 4), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(names))
    axes.plot(places, record.nats_before / np.log(2), marker="o", label="before recoding" if is_recoded else None)
    if is_recoded:
        axes.plot(places, record.nats_after / np.log(2), marker=".", label="after recoding")
        axes.legend()
    axes.set_xticks(places, names, rotation=90, parse_math=False)
    axes.set_ylabel("surprisal in bits")
    return figure
