"""What `ponderay analyse` asks of language models: sentences, minimal pairs, agreement, and the thesis's theorems."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trainables.analysis import Analysis, Cells, Lines, Options
from trainables.errors import InputError
from trainables.lm.analysis import agreement, garden_paths, suites, trained_model
from trainables.lm.analysis.text_questions import BATCHES, DELTA_AND_LOSS, WORD_GROUPS
from trainables.lm.config import Evaluation, LmConfig


def about_sentences(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """Each word of the sentences in a file, by default classic garden paths; recoded everywhere, or at one position."""
    sentences = garden_paths.read(Path(options["file"])) if "file" in options else garden_paths.SENTENCES
    longest = max(len(item.words) for item in sentences)
    recode_at = None
    if "step" in options:
        text = options["step"]
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= longest):
            raise InputError(
                f"The option `step` must be a number from 1 to {longest}, the words of the longest sentence, "
                f"but got {text!r}."
            )
        recode_at = int(text) - 1
    cells = trained_model.of_sentences(trained_model.load(config, checkpoint, evaluation), sentences, recode_at)
    return {
        (sentence, position, word, sentences[sentence - 1].critical == position - 1, measure): value
        for (sentence, position, word, measure), value in cells.items()
    }


def about_suites(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """The effect in each suite of minimal pairs."""
    chosen = [suites.read(Path(file)) for file in _file(options, "a suite of minimal pairs")]
    return trained_model.of_suites(trained_model.load(config, checkpoint, evaluation), chosen)


def about_agreement(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """The accuracy in agreement items."""
    items = agreement.read(Path(_file(options, "agreement items")))
    return trained_model.of_agreement(trained_model.load(config, checkpoint, evaluation), items)


def about_theorems(config: LmConfig, checkpoint: Path, evaluation: Evaluation, options: Options) -> Cells:
    """How often the theorems hold."""
    return trained_model.of_theorems(trained_model.load(config, checkpoint, evaluation))


def _compared(options: Options) -> tuple[str, str]:
    """Recoding at one word alone changes the words behind it; recoding everywhere each word itself."""
    return ("bits_without", "bits_before") if "step" in options else ("bits_before", "bits_after")


def _file(options: Options, about: str) -> Any:
    if "file" not in options:
        raise InputError(f"The option `file` must name {about}; give `--option file=PATH`.")
    return options["file"]


SENTENCES: Final = Analysis(
    about="Surprisal at each word of sentences, and the error signal, before and after recoding.",
    columns=("sentence", "position", "word", "is_critical"),
    ask=about_sentences,
    compared=_compared,
    options={
        "file": "one sentence a line, * before its critical word; default: classic garden paths",
        "step": "recode at this word only, counted from 1; default: at each word",
    },
    headings={
        "sentence": "",
        "position": "at",
        "is_critical": "*",
        "bits_without": "without",
        "bits_before": "before",
        "bits_after": "after",
        "delta_without": "delta without",
        "delta_before": "delta",
        "delta_after": "delta'",
    },
    lines=Lines(
        panel="sentence",
        tick="word",
        measures={
            "bits_without": "without recoder",
            "bits_before": "before recoding",
            "bits_after": "after recoding",
            "delta_without": "without recoding",
            "delta_before": "before recoding",
            "delta_after": "after recoding",
        },
        axis=dict.fromkeys(("bits_without", "bits_before", "bits_after"), "surprisal in bits")
        | dict.fromkeys(("delta_without", "delta_before", "delta_after"), "error signal delta"),
        marked="is_critical",
    ),
)
SUITE: Final = Analysis(
    about="The effect in suites of minimal pairs.",
    columns=("suite", "reading"),
    ask=about_suites,
    options={"file": "minimal pairs as SyntaxGym's CSV; may be repeated"},
    repeatable=("file",),
)
AGREEMENT: Final = Analysis(
    about="How often the right form of a verb is the likelier one.",
    columns=("kind", "reading"),
    ask=about_agreement,
    options={"file": "subject-verb agreement items of Gulordava et al. (.tab)"},
)
THEOREMS: Final = Analysis(
    about="How often theorems 1 and 2 of the thesis hold.",
    columns=("theorem", "setting"),
    ask=about_theorems,
)
ANALYSES: Final[Mapping[str, Analysis]] = {
    "sentences": SENTENCES,
    "suite": SUITE,
    "agreement": AGREEMENT,
    "theorems": THEOREMS,
    "delta": DELTA_AND_LOSS,
    "groups": WORD_GROUPS,
    "batches": BATCHES,
}
