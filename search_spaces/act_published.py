"""What Graves published of Adaptive Computation Time, and its main statement asked at a laptop's sizes.

Most of it is said in words ("about 40 %") or read off figures over the time penalty tau. Sections and figures are
numbered as in version 6 of the paper.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal

from search_spaces.act_sizes import ADDITION, LOGIC, PARITY, SORT, TEXT, Task
from search_spaces.claim import (
    Claim,
    NumberClaim,
    Place,
    Published,
    Setting,
    Source,
    StatementClaim,
    TrendClaim,
    sentence,
)
from trainables.config import flatten

Relation = Literal["below", "above", "same"]

PAPER: Final = "Graves 2016 (arXiv:1603.08983)"
OURS: Final = "Ponderay"
"""Of what no source says."""
NUM_NETWORKS: Final = 20

ABOUT: Final = 0.15, "15 % of the number, which is said in words or read off a figure"
UNDER: Final = 5.0
ZERO_MARGIN: Final = 2.0, "2 points of sequence error; about 0, as a figure shows it"
SOLVED_MARGIN: Final = 1.0, "1 point of sequence error; perfectly solved, where the figure has no bar to be seen"
ONE_UPDATE_MARGIN: Final = 0.05, "a twentieth of an update; ponder falls to 1"
CLUSTER_MARGIN: Final = 0.5, "the paper says 5 to 6"
SLOPE_MARGIN: Final = 0.25, "a quarter of an update a digit; the slope is said to be close to 1"
CALM_MARGIN: Final = 0.1, "a tenth of an update more counts as no increase"
GAIN_MARGIN: Final = 0.02, "a gain below .02 bits per character counts as none"
WORKERS: Final = "The paper's networks were trained by 16 asynchronous processes, ours by one."
RARE: Final = "Bytes of under 1 in 1,000 stand for the paper's identification numbers, which cannot be foretold."
ANY_TEXT: Final = "On whatever text is set; the shipped one is the documentation of Python's language."

GRID: Final = PARITY.grid
SHORT_GRID: Final = PARITY.short_grid
TRAINING: Final = {"training.num_iterations": "1000000", "training.learning_rate": "0.0001"}
SIZES: Final[Mapping[str, Mapping[str, str]]] = {
    "parity": {"data.num_bits": "64", "cell": "rnn", "hidden_size": "128", "training.batch_size": "128"},
    "logic": {
        "data.num_gates": "10",
        "data.num_vectors": "10",
        "cell": "lstm",
        "hidden_size": "128",
        "training.batch_size": "16",
    },
    "addition": {
        "data.num_digits": "5",
        "data.num_numbers": "5",
        "cell": "lstm",
        "hidden_size": "512",
        "training.batch_size": "32",
    },
    "sort": {"data.num_items": "15", "cell": "lstm", "hidden_size": "512", "training.batch_size": "16"},
    "text": {
        "data.num_steps": "500",
        "cell": "lstm",
        "hidden_size": "1500",
        "training.num_iterations": "10000",
    },
}
LAPTOP_PATHS: Final = ("cell", "hidden_size", "training.batch_size", "training.num_iterations")

# sequence error without ACT, in per cent, and the figure
WITHOUT: Final = (("parity", 40.0, 4), ("logic", 20.0, 8), ("sort", 12.0, 17))

# time penalties at which ACT errs less than the network without it, of those in every sweep, and the figure
HELPS: Final = (
    ("parity", SHORT_GRID[:3], 4),
    ("logic", SHORT_GRID[:3], 8),
    ("addition", SHORT_GRID, 12),
    ("sort", SHORT_GRID[:1], 17),
)

# what is said along the time penalty, and the figure
OF_TAU: Final = (
    ("parity", "sequence_error", "the lower the time penalty, the more accurate the solutions of parity", 5),
    ("logic", "mean_updates", "the higher the time penalty, the less ACT ponders on logic", 9),
)

# what a text shows beside the bytes that are read: a metric against another
OF_BYTES: Final[tuple[tuple[str, str, Relation, str, str], ...]] = (
    ("word", "mean_updates_space", "above", "mean_updates_letter", "it ponders longer at spaces than within words"),
    (
        "clause",
        "mean_updates_boundary",
        "above",
        "mean_updates_space",
        "it ponders longer at commas and full stops than at spaces",
    ),
    (
        "loss",
        "surprisal_bits_boundary",
        "below",
        "bits_per_character",
        "the byte behind a comma or full stop is less surprising than the mean byte",
    ),
    (
        "noise",
        "surprisal_bits_before_rare",
        "above",
        "bits_per_character",
        "a rare byte is more surprising than the mean byte",
    ),
    (
        "calm",
        "mean_updates_before_rare",
        "below",
        "mean_updates",
        "it ponders no longer than on average where a rare byte comes next",
    ),
)


def claims() -> Iterator[Claim]:
    """Numbers, then statements."""
    yield from numbers()
    yield from statements()
    yield from trends()


def numbers() -> Iterator[NumberClaim]:
    """What is said of sequence error and updates."""
    for task, error, figure in WITHOUT:
        claim = _number(f"act.{task}.no_act", task, "no_act", error, "without ACT", figure)
        yield claim
        place = replace(claim.place, condition="updates=1")
        yield replace(claim, id=f"{claim.id}.updates", sweeps=(f"act.fixed_updates_{task}",), place=place)
    at, error, updates = f"tau={SHORT_GRID[0]:g}", 6.0, 9.0
    bar = f"the paper says it of its best time penalty, without its value; shown is {at}, the smallest"
    claim = replace(_number("act.sort.act", "sort", at, error, "with ACT", 17), bar=bar)
    yield claim
    yield replace(
        claim,
        id="act.sort.updates",
        place=Place(at, "mean_updates", "test"),
        published=Published(updates, None, NUM_NETWORKS),
        source=Source(PAPER, "sort, with ACT, figure 18"),
        margin=ABOUT[0] * updates,
        objective="mean_updates",
    )


def statements() -> Iterator[StatementClaim]:
    """What is said of ACT against the same network without it, and of where it ponders."""
    yield from _of_errors()
    yield from _of_difficulty()
    yield from _of_steps()
    yield from _of_text()
    for laptop in (PARITY, LOGIC, ADDITION, SORT):
        task, text = laptop.title, "at a laptop's size ACT errs less than the network without"
        claim = _statement(f"act.laptop.{task}.helps", task, 1e-3, text, "below", _error("no_act"))
        source, sweeps = Source(OURS, f"{task}, asked of it here"), (f"act.tau_{task}_laptop",)
        yield replace(claim, sweeps=sweeps, source=source, setting=_laptop(laptop), note="")


def trends() -> Iterator[TrendClaim]:
    """What is said along the time penalty (sections 3.1 and 3.2), at the four values that every sweep has."""
    for task, metric, text, figure in OF_TAU:
        places = tuple(Place(f"tau={tau:g}", metric, "test") for tau in SHORT_GRID)
        yield TrendClaim(
            id=f"act.{task}.{metric}.by_tau",
            sweeps=_sweeps(task, SHORT_GRID[0]),
            text=sentence(text),
            places=places,
            relation="falls" if metric == "mean_updates" else "rises",
            source=Source(PAPER, f"{task}, figure {figure}"),
            setting=_setting(task),
            note=WORKERS,
        )


def _of_errors() -> Iterator[StatementClaim]:
    for tau in (tau for tau in GRID if tau <= 0.03):
        text = f"with tau {tau:g} ACT errs less than {UNDER:g} %"
        yield _statement(f"act.parity.under.{tau:g}", "parity", tau, text, "below", UNDER, 4)
    for tau in (tau for tau in GRID if tau <= 0.01):
        text = f"with tau {tau:g} ACT errs about 0 %"
        yield _near(_statement(f"act.logic.zero.{tau:g}", "logic", tau, text, "same", 0.0, 8), ZERO_MARGIN)
    for tau in GRID:
        text = f"with tau {tau:g} ACT solves addition perfectly"
        yield _near(_statement(f"act.addition.solved.{tau:g}", "addition", tau, text, "same", 0.0, 12), SOLVED_MARGIN)
    for task, taus, figure in HELPS:
        for tau in taus:
            text = f"with tau {tau:g} ACT errs less than the network without"
            yield _statement(f"act.{task}.helps.{tau:g}", task, tau, text, "below", _error("no_act"), figure)


def _of_difficulty() -> Iterator[StatementClaim]:
    """How the updates of a step follow its bits, gates, digits or items."""
    slope = "updates_per_difficulty"
    for task, taus, unit, figure in (("parity", SHORT_GRID[1:3], "bits", 6), ("addition", SHORT_GRID, "digits", 14)):
        for tau in taus:
            text = f"with tau {tau:g} ACT ponders longer the more {unit} there are"
            yield _measured(f"act.{task}.rises.{tau:g}", task, tau, text, slope, "above", 0.0, figure)
    low, high = SHORT_GRID[1:3]
    text = f"the ponder of parity rises more steeply over bits with tau {low:g} than with {high:g}"
    claim = _measured(f"act.parity.steeper.{low:g}", "parity", low, text, slope, "above", 0.0, 6)
    yield replace(claim, right=Place(f"tau={high:g}", slope, "test"))
    text = "with the largest tau ACT takes about one update more for each digit"
    claim = _measured("act.addition.slope.1", "addition", GRID[-1], text, slope, "same", 1.0, 14)
    yield _near(claim, SLOPE_MARGIN)
    for tau in SHORT_GRID[:3]:
        text = f"with tau {tau:g} ACT ponders longer over 10 gates than over 5"
        many, few = (f"mean_updates_difficulty_{count}" for count in (10, 5))
        claim = _measured(f"act.logic.rises.{tau:g}", "logic", tau, text, many, "above", 0.0, 10)
        yield replace(claim, right=Place(f"tau={tau:g}", few, "test"))
    for name, tau, mean, near, text in (
        ("one", GRID[-1], 1.0, ONE_UPDATE_MARGIN, "with the largest tau ACT takes one update on logic"),
        ("cluster", GRID[0], 5.5, CLUSTER_MARGIN, "with the smallest tau ACT takes 5 to 6 updates on logic"),
    ):
        claim = _measured(f"act.logic.{name}.{tau:g}", "logic", tau, text, "mean_updates", "same", mean, 9)
        yield _near(claim, near)
    at = f"tau={SHORT_GRID[0]:g}"
    text = f"with tau {SHORT_GRID[0]:g} updates grow less than in proportion to the items of sort"
    longest, shorter = (Place(at, f"mean_updates_difficulty_{count}", "test") for count in (15, 5))
    claim = _measured("act.sort.sublinear", "sort", SHORT_GRID[0], text, longest.metric, "below", 15 / 5, 19)
    yield replace(claim, left=replace(longest, over=shorter))


def _of_steps() -> Iterator[StatementClaim]:
    """Where in a sequence it ponders; with the time penalties of the networks that the figures draw."""
    text = "the digits of the two summands are a lower bound on the ponder of a step"
    yield _measured("act.addition.bound", "addition", 9e-4, text, "ponder_above_digits", "above", 0.0, 15)
    text = "it ponders longer near the end of the items that it sorts than at other steps"
    claim = _measured("act.sort.spike", "sort", 1e-3, text, "mean_updates_end_of_input", "above", 0.0, 20)
    yield replace(claim, right=Place("tau=0.001", "mean_updates_elsewhere", "test"))


def _of_text() -> Iterator[StatementClaim]:
    short = TEXT.short_grid
    for tau in short:
        text = f"with tau {tau:g} ACT gains nothing in bits per character"
        claim = _measured(f"act.text.no_gain.{tau:g}", "text", tau, text, "bits_per_character", "above", 0.0, 21)
        yield replace(_near(claim, GAIN_MARGIN), right=Place("no_act", "bits_per_character", "test"))
    for tau in (*short[:2], 6e-3):  # the figures draw a network of tau .006
        for name, left, relation, right, text in OF_BYTES:
            figure, text = (24 if name in ("noise", "calm") else 23), f"with tau {tau:g} {text}"
            claim = _measured(f"act.text.{name}.{tau:g}", "text", tau, text, left, relation, 0.0, figure)
            claim = replace(claim, right=Place(f"tau={tau:g}", right, "test"))
            if figure == 24:
                claim = replace(claim, note=f"{RARE} {claim.note}")
            yield _near(claim, CALM_MARGIN) if name == "calm" else claim


def _number(
    identity: str, task: str, condition: str, error: float, place: str, figure: int | None = None
) -> NumberClaim:
    share, reason = ABOUT
    return NumberClaim(
        id=identity,
        sweeps=_sweeps(task, None if condition == "no_act" else SHORT_GRID[0]),
        place=_error(condition),
        published=Published(error, None, NUM_NETWORKS),
        margin=share * error,
        margin_reason=reason,
        source=Source(PAPER, f"{task}, {place}{f', figure {figure}' if figure else ''}"),
        setting=_setting(task),
        objective="sequence_error",
        row=f"{task}, {place}",
        note=WORKERS,
    )


def _statement(
    identity: str,
    task: str,
    tau: float,
    text: str,
    relation: Relation,
    right: Place | float,
    figure: int | None = None,
) -> StatementClaim:
    """About the sequence error at a time penalty, in per cent."""
    return StatementClaim(
        id=identity,
        sweeps=_sweeps(task, tau),
        text=sentence(text),
        left=_error(f"tau={tau:g}"),
        relation=relation,
        right=right,
        source=Source(PAPER, f"{task}, figure {figure}" if figure else task),
        setting=_setting(task),
        note=f"{ANY_TEXT} {WORKERS}" if task == "text" else WORKERS,
    )


def _measured(
    identity: str, task: str, tau: float, text: str, metric: str, relation: Relation, right: float, figure: int
) -> StatementClaim:
    """About another metric."""
    claim = _statement(identity, task, tau, text, relation, right, figure)
    return replace(claim, left=Place(f"tau={tau:g}", metric, "test"))


def _near(claim: StatementClaim, margin: tuple[float, str]) -> StatementClaim:
    return replace(claim, margin=margin[0], margin_reason=margin[1])


def _sweeps(task: str, tau: float | None) -> tuple[str, ...]:
    """Those that have a time penalty, or the network without ACT; smaller ones to say that they are others."""
    whole = f"act.tau_{task}"
    short = TEXT.short_grid if task == "text" else SHORT_GRID
    return (whole, f"{whole}_short", f"{whole}_laptop") if tau is None or tau in short else (whole,)


def _error(condition: str) -> Place:
    return Place(condition, "sequence_error", "test", scale=100)


def _setting(task: str) -> Setting:
    return Setting(f"of {task} at the paper's sizes", {"data.kind": task, **TRAINING, **SIZES[task]})


def _laptop(task: Task) -> Setting:
    values = flatten(task.laptop)
    paths = [path for path in values if path in LAPTOP_PATHS or path.startswith("data.num_")]
    requires = {"data.kind": task.title} | {path: str(values[path]) for path in paths}
    return Setting(f"of {task.title} at a laptop's sizes", requires)
