"""What Graves published of Adaptive Computation Time, and a public log of runs on a CPU.

Most of it is said in words ("about 40 %") or read off figures over the time penalty tau.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal

from search_spaces.act import GRID, SHORT_GRID
from search_spaces.act_sizes import ADDITION, LOGIC, PARITY, SORT, Task
from search_spaces.claim import Claim, NumberClaim, Place, Published, Setting, Source, StatementClaim, sentence
from trainables.config import flatten

PAPER: Final = "Graves 2016 (arXiv:1603.08983)"
LOG: Final = "a public log of runs on a CPU"
NUM_NETWORKS: Final = 20

ABOUT: Final = 0.15, "15 % of the number, which is said in words or read off a figure"
UNDER: Final = 5.0
ZERO_MARGIN: Final = 2.0, "2 points of sequence error; about 0, as a figure shows it"
SOLVED: Final = f"Solved is read as a sequence error under {UNDER:g} %."
GAIN_MARGIN: Final = 0.02, "a gain below .02 bits per character counts as none"
WORKERS: Final = "The paper's networks were trained by 16 asynchronous processes, ours by one."
ANY_TEXT: Final = "On whatever text is set; the shipped one is the documentation of Python's language."

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
    "text": {"data.num_steps": "500", "cell": "lstm", "hidden_size": "1500"},
}
LAPTOP_PATHS: Final = ("cell", "hidden_size", "training.batch_size", "training.num_iterations")

# sequence error without ACT, in per cent
WITHOUT: Final = (("parity", 40.0), ("logic", 20.0), ("sort", 12.0))

# sequence error without and with ACT in the log, in per cent
OF_THE_LOG: Final = ((PARITY, 43.8, 10.5), (LOGIC, 21.3, 0.0), (ADDITION, 59.4, 12.0), (SORT, 12.1, 10.1))

# time penalties at which ACT errs less than the network without it, of those in every sweep
HELPS: Final = (
    ("parity", SHORT_GRID[:3]),
    ("logic", SHORT_GRID[:3]),
    ("addition", SHORT_GRID),
    ("sort", SHORT_GRID[:1]),
)


def claims() -> Iterator[Claim]:
    """Numbers, then statements."""
    yield from numbers()
    yield from statements()


def numbers() -> Iterator[NumberClaim]:
    """What is said of sequence error and updates."""
    for task, error in WITHOUT:
        claim = _number(f"act.{task}.no_act", task, "no_act", error, "without ACT")
        yield claim
        place = replace(claim.place, condition="updates=1")
        yield replace(claim, id=f"{claim.id}.updates", sweeps=(f"act.fixed_updates_{task}",), place=place)
    at, error, updates = f"tau={SHORT_GRID[0]:g}", 6.0, 9.0
    bar = f"the paper does not say at which time penalty; shown is {at}, the smallest"
    claim = replace(_number("act.sort.act", "sort", at, error, "with ACT"), bar=bar)
    yield claim
    yield replace(
        claim,
        id="act.sort.updates",
        place=Place(at, "mean_updates", "test"),
        published=Published(updates, None, NUM_NETWORKS),
        margin=ABOUT[0] * updates,
        objective="mean_updates",
    )
    for laptop, without, with_act in OF_THE_LOG:
        yield _logged(laptop.title, "no_act", without, "without ACT")
        yield _logged(laptop.title, "tau=0.001", with_act, "with ACT")


def _logged(task: str, condition: str, error: float, place: str) -> NumberClaim:
    return replace(
        _number(f"act.log.{task}.{condition}", task, condition, error, place),
        sweeps=(f"act.tau_{task}_laptop",),
        published=Published(error),
        source=Source(LOG, f"{task}, {place}"),
        row=f"{task}, {place}, log",
        bar="the log's sizes and time penalty are not known",
        note="",
    )


def statements() -> Iterator[StatementClaim]:
    """What is said of ACT against the same network without it, and of where it ponders."""
    for tau in (tau for tau in GRID if tau <= 0.03):
        text = f"with tau {tau:g} ACT errs less than {UNDER:g} %"
        yield _statement(f"act.parity.under.{tau:g}", "parity", tau, text, "below", UNDER)
    for tau in (tau for tau in GRID if tau <= 0.01):
        text, (margin, reason) = f"with tau {tau:g} ACT errs about 0 %", ZERO_MARGIN
        claim = _statement(f"act.logic.zero.{tau:g}", "logic", tau, text, "same", 0.0)
        yield replace(claim, margin=margin, margin_reason=reason)
    for tau in GRID:
        text = f"with tau {tau:g} ACT solves addition"
        claim = _statement(f"act.addition.solved.{tau:g}", "addition", tau, text, "below", UNDER)
        yield replace(claim, note=f"{SOLVED} {WORKERS}")
    for task, taus in HELPS:
        for tau in taus:
            text = f"with tau {tau:g} ACT errs less than the network without"
            yield _statement(f"act.{task}.helps.{tau:g}", task, tau, text, "below", _error("no_act"))
    yield from _of_text()
    for laptop, *_ in OF_THE_LOG:
        task, text = laptop.title, "at a laptop's size ACT errs less than the network without"
        claim = _statement(f"act.log.{task}.helps", task, 1e-3, text, "below", _error("no_act"))
        source, sweeps = Source(LOG, task), (f"act.tau_{task}_laptop",)
        yield replace(claim, sweeps=sweeps, source=source, setting=_laptop(laptop), note="")


def _of_text() -> Iterator[StatementClaim]:
    for tau in SHORT_GRID:
        bits, plain = (Place(name, "bits_per_character", "test") for name in (f"tau={tau:g}", "no_act"))
        text = f"with tau {tau:g} ACT gains nothing in bits per character"
        claim = _statement(f"act.text.no_gain.{tau:g}", "text", tau, text, "above", plain)
        margin, reason = GAIN_MARGIN
        yield replace(claim, left=bits, margin=margin, margin_reason=reason, note=f"{ANY_TEXT} {WORKERS}")
    for tau in SHORT_GRID[:2]:
        for kind, metric in (("word", "mean_updates_space"), ("clause", "mean_updates_punctuation")):
            left, right = (Place(f"tau={tau:g}", name, "test") for name in (metric, "mean_updates_letter"))
            text = f"with tau {tau:g} it ponders longer at the boundaries of a {kind} than within words"
            claim = _statement(f"act.text.{kind}.{tau:g}", "text", tau, text, "above", right)
            yield replace(claim, left=left, note=f"{ANY_TEXT} {WORKERS}")


def _number(identity: str, task: str, condition: str, error: float, place: str) -> NumberClaim:
    share, reason = ABOUT
    return NumberClaim(
        id=identity,
        sweeps=_sweeps(task, None if condition == "no_act" else SHORT_GRID[0]),
        place=_error(condition),
        published=Published(error, None, NUM_NETWORKS),
        margin=share * error,
        margin_reason=reason,
        source=Source(PAPER, f"{task}, {place}"),
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
    relation: Literal["below", "above", "same"],
    right: Place | float,
) -> StatementClaim:
    return StatementClaim(
        id=identity,
        sweeps=_sweeps(task, tau),
        text=sentence(text),
        left=_error(f"tau={tau:g}"),
        relation=relation,
        right=right,
        source=Source(PAPER, task),
        setting=_setting(task),
        note=WORKERS,
    )


def _sweeps(task: str, tau: float | None) -> tuple[str, ...]:
    """Those that have a time penalty, or the network without ACT; smaller ones to say that they are others."""
    whole = f"act.tau_{task}"
    return (whole, f"{whole}_short", f"{whole}_laptop") if tau is None or tau in SHORT_GRID else (whole,)


def _error(condition: str) -> Place:
    return Place(condition, "sequence_error", "test", scale=100)


def _setting(task: str) -> Setting:
    return Setting(f"of {task} at the paper's sizes", {"data.kind": task, **SIZES[task], **TRAINING})


def _laptop(task: Task) -> Setting:
    values = flatten(task.laptop)
    paths = [path for path in values if path in LAPTOP_PATHS or path.startswith("data.num_")]
    requires = {"data.kind": task.title} | {path: str(values[path]) for path in paths}
    return Setting(f"of {task.title} at a laptop's sizes", requires)
