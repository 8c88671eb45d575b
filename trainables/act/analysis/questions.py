"""What `ponderay analyse` asks of networks with Adaptive Computation Time: where, and for what, they ponder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from trainables.act.analysis import steps, texts
from trainables.act.config import ActConfig, Addition, Evaluation, Sort, Text
from trainables.analysis import Analysis, Cells, Lines, Options
from trainables.errors import InputError

UPDATES, PONDER = "updates N", "updates"
DIFFICULTY: Final = "difficulty (active bits, gates, digits or items)"
OF_TEXT: Final = {
    "updates": UPDATES,
    "ponder": "ponder N + R",
    "surprisal_bits": "surprisal",
    "entropy_bits": "entropy",
}
AXES_OF_TEXT: Final = {
    "updates": PONDER,
    "ponder": PONDER,
    "surprisal_bits": "surprisal of the\nnext byte (bits)",
    "entropy_bits": "entropy of its\nprediction (bits)",
}


def about_counts(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """How often each number of updates is taken."""
    return steps.counts(config, checkpoint, evaluation, _number(options, "most", 2) or 20)


def about_difficulty(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Updates and error over the difficulty of a step."""
    if isinstance(config.data, Text):
        raise InputError("The analysis `difficulty` must be of a generated task, but this is text; ask for `kinds`.")
    return steps.by_difficulty(config, checkpoint, evaluation, _number(options, "length", 1))


def about_steps(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Updates at each step of single sequences."""
    if not isinstance(config.data, Addition | Sort):
        other = "bytes" if isinstance(config.data, Text) else "difficulty"
        raise InputError(
            f"The analysis `steps` must be of addition or sort, but this is {config.data.kind}; ask for `{other}`."
        )
    most = config.data.num_items if isinstance(config.data, Sort) else config.data.num_numbers
    given = str(options.get("lengths", "")).split(",") if "lengths" in options else []
    spread = [max(2, most // 3), max(2, 2 * most // 3), most]
    lengths = [_checked(length, "lengths", 1, "1,2,...") for length in given] or list(dict.fromkeys(spread))
    return steps.by_step(config, checkpoint, evaluation, lengths, config.data)


def about_bytes(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Updates at each byte of a passage, beside surprisal and entropy."""
    _need_text("bytes", config)
    file = Path(options["file"]) if "file" in options else None
    first, count = _number(options, "first", 1), _number(options, "count", 1) or 100
    return texts.by_byte(config, checkpoint, evaluation, file, first, count)


def about_kinds(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Updates at spaces, punctuation, letters, digits and rare bytes, beside surprisal and entropy."""
    _need_text("kinds", config)
    return texts.by_kind(config, checkpoint, evaluation)


def about_sentences(config: ActConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Updates over whole sentences."""
    _need_text("sentences", config)
    return texts.by_sentence(config, checkpoint, evaluation, _number(options, "count", 1) or 20)


def _need_text(name: str, config: ActConfig) -> None:
    if not isinstance(config.data, Text):
        raise InputError(
            f"The analysis `{name}` must be of text, but this is {config.data.kind}; ask for `difficulty`."
        )


def _number(options: Options, name: str, least: int) -> int | None:
    return _checked(options[name], name, least, str(least)) if name in options else None


def _checked(text: str, name: str, least: int, example: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise InputError(
            f"The option `{name}` must be a whole number from {least} up, as in {name}={example}, but got {text!r}."
        )
    return int(text)


COUNTS: Final = Analysis(
    about="The share of the test's steps with each number of updates.",
    columns=("updates",),
    ask=about_counts,
    options={"most": "so many updates and more are counted together; default: 20"},
    lines=Lines(
        panel="",
        tick="updates",
        measures={"share": "all steps"},
        axis="share of the steps",
        along="updates N of a step",
    ),
)
DIFFICULTIES: Final = Analysis(
    about="Updates and error of a step over its difficulty (Graves' figures 6, 10, 14 and 19).",
    columns=("difficulty",),
    ask=about_difficulty,
    options={"length": "only sequences of so many steps, as Graves' 5 of logic and 3 of addition; default: all"},
    lines=Lines(
        panel="",
        tick="difficulty",
        measures={"updates": UPDATES, "ponder": "ponder N + R", "step_error": "share of the steps"},
        axis={"updates": PONDER, "ponder": PONDER, "step_error": "step error\n(share of the steps)"},
        along=DIFFICULTY,
    ),
)
STEPS: Final = Analysis(
    about="Ponder at each step of single sequences of addition or sort (Graves' figures 15 and 20).",
    columns=("sequence", "step", "input", "target", "is_last_item"),
    ask=about_steps,
    options={"lengths": "how many numbers each sequence has, as 5,10,15; default: a third, two thirds and all"},
    headings={"is_last_item": "*"},
    lines=Lines(
        panel="sequence",
        tick="input",
        above="target",
        measures={"updates": UPDATES, "ponder": "ponder N + R", "digits": "digits of the two summands"},
        axis={"updates": PONDER, "ponder": PONDER, "digits": "digits"},
        marked="is_last_item",
        along="input of the step; above: its target",
    ),
)
BYTES: Final = Analysis(
    about="Ponder at each byte of a text, beside surprisal and entropy (Graves' figures 23 and 24).",
    columns=("position", "byte", "is_space"),
    ask=about_bytes,
    options={
        "file": "a passage of your own, as some XML; default: the first sequence of the test",
        "first": "the first byte shown, counted from 1; default: the one in the middle",
        "count": "bytes shown; default: 100",
    },
    headings={"position": "at", "is_space": "*"},
    lines=Lines(
        panel="",
        tick="byte",
        measures=OF_TEXT,
        axis=AXES_OF_TEXT,
        marked="is_space",
        along="byte that is read; spaces are shaded",
    ),
)
KINDS: Final = Analysis(
    about="Ponder, surprisal and entropy at spaces, commas, letters, digits and rare bytes of a text.",
    columns=("kind",),
    ask=about_kinds,
    lines=Lines(
        panel="",
        tick="kind",
        measures=OF_TEXT,
        axis=AXES_OF_TEXT,
        is_joined=False,
        along="kind of the byte that is read; before_rare: of the byte behind it",
    ),
)
SENTENCES: Final = Analysis(
    about="Updates over whole sentences of a text.",
    columns=("sentence", "words"),
    ask=about_sentences,
    options={"count": "sentences; default: the first 20 of the test"},
    lines=Lines(
        panel="",
        tick="sentence",
        measures={"updates": UPDATES, "updates_per_byte": UPDATES, "bits_per_byte": "surprisal"},
        axis={
            "updates": "updates of\nthe sentence",
            "updates_per_byte": "updates per byte",
            "bits_per_byte": "surprisal\n(bits per byte)",
        },
        is_joined=False,
        along="sentence of the test's text",
    ),
)
ANALYSES: Final[Mapping[str, Analysis]] = {
    "counts": COUNTS,
    "difficulty": DIFFICULTIES,
    "steps": STEPS,
    "bytes": BYTES,
    "kinds": KINDS,
    "sentences": SENTENCES,
}
