"""The published FLOPs of arXiv:2006.01659 beside what our models count, and the routing rate that each number implies.

    python benchmarks/published_costs.py

Counts are parameters used per frame, in millions, with 39 labels; published numbers are tables 2 to 4 and appendix A.
A row is exact where the count at the rate that the text names prints the published digits. For a controller whose rate
the text does not name, the rate follows from the published number: p = (FLOPs - fixed - small) / (big - small).
"""

from dataclasses import dataclass

from trainables.asr import cost
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Controller,
    Convolutional,
    Learned,
    Random,
    Recurrent,
    Surprisal,
)

NUM_LABELS = 39
MAIN, MODEL1, MODEL3 = Recurrent(), Convolutional(kind="model1"), Convolutional(kind="model3")


@dataclass(frozen=True)
class Row:
    """A published number.

    Attributes:
        rate: of the big network, where the text names it.
    """

    name: str
    network: Recurrent | Convolutional
    controller: Controller
    published: float
    rate: float | None = None
    inputs: str = "ar_features"


ROWS = (
    Row("small only (both sets)", MAIN, AlwaysSmall(), 5.70, 0.0),
    Row("big only (both sets)", MAIN, AlwaysBig(), 7.54, 1.0),
    Row("random, Mini-LibriSpeech", MAIN, Random(), 6.62, 0.5),
    Row("random, TIMIT", MAIN, Random(), 6.63, 0.5),
    Row("learned, Mini-LibriSpeech", MAIN, Learned(), 6.50),
    Row("learned, TIMIT", MAIN, Learned(), 6.63),
    Row("learned, TIMIT, lambda 1e-4", MAIN, Learned(), 6.99),
    Row("surprisal, Mini-LibriSpeech", MAIN, Surprisal(), 6.43),
    Row("surprisal, TIMIT", MAIN, Surprisal(), 6.41),
    Row("no AR, random test, TIMIT", MAIN, Random(), 2.91, 0.5, "frames"),
    Row("no AR, surprisal test, TIMIT", MAIN, Surprisal(), 5.75, None, "frames"),
    Row("models 1, 2: small only", MODEL1, AlwaysSmall(), 5.96, 0.0),
    Row("models 1, 2: big only", MODEL1, AlwaysBig(), 7.07, 1.0),
    Row("models 1, 2: random", MODEL1, Random(), 6.52, 0.5),
    Row("models 1, 2: surprisal", MODEL1, Surprisal(), 6.49),
    Row("model 3: small only", MODEL3, AlwaysSmall(), 3.28, 0.0),
    Row("model 3: big only", MODEL3, AlwaysBig(), 5.96, 1.0),
    Row("model 3: random", MODEL3, Random(), 4.62, 0.5),
    Row("model 3: surprisal", MODEL3, Surprisal(), 4.54),
)


def counted(row: Row, rate: float) -> float:
    """Millions of parameters per frame at a routing rate."""
    config = AsrConfig(network=row.network, controller=row.controller, inputs=row.inputs)
    return cost.paper_flops_per_frame(config, row.controller, NUM_LABELS, rate) / 1e6


def implied_rate(row: Row) -> float:
    """The routing rate at which the count is the published number."""
    small, big = counted(row, 0.0), counted(row, 1.0)
    return (row.published - small) / (big - small) if big != small else row.rate or 0.0


def main() -> None:
    """Prints one line for each published number."""
    print(f"{'published row':32} {'published':>9} {'counted':>9} {'at p':>5} {'implied p':>9}  ")
    for row in ROWS:
        if row.rate is None:
            print(f"{row.name:32} {row.published:9.2f} {'':>9} {'':>5} {implied_rate(row):9.3f}  rate not named")
            continue
        ours = counted(row, row.rate)
        verdict = "exact" if f"{ours:.2f}" == f"{row.published:.2f}" else "differs"
        print(f"{row.name:32} {row.published:9.2f} {ours:9.4f} {row.rate:5.2f} {implied_rate(row):9.3f}  {verdict}")


if __name__ == "__main__":
    main()
