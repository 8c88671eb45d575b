"""Garden-path sentences: classic ones, or a user's own."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainables.errors import InputError
from trainables.lm.analysis.tables import REMEDY
from trainables.texts import read_text

_MARK: Final = "*"
_CLASSIC: Final = """
The horse raced past the barn *fell .
The raft floated down the river *sank .
The tomcat curled up on the cushion *seemed friendly .
The girl told the story *cried .
The florist sent the flowers *was very pleased .
The defendant examined *by the lawyer turned out to be unreliable .
While Anna dressed the baby *spit up on the bed .
While the man hunted the deer *ran into the woods .
While Mary was mending the sock *fell off her lap .
Since Jay always jogs a mile *seems like a short distance to him .
As the woman edited the magazine *amused all the reporters .
Though George kept on reading the story *bothered him .
When Fred eats food *gets thrown .
Until the police arrest the drug dealers *control the street .
The student forgot the solution *was in the back of the book .
I convinced her children *are noisy .
She told me a little white lie *will come back to haunt me .
I told the girl the cat scratched Bill *would help her .
Mary gave the child the dog *bit a bandage .
The cotton clothing is made of *grows in Mississippi .
Have the students who failed the exam *take the supplementary .
The old man *the boat .
The complex houses married and *single soldiers and their families .
The government plans to raise taxes *were defeated .
Fat people eat *accumulates .
The prime number *few .
"""


@dataclass(frozen=True)
class GardenPath:
    """A sentence, and the index of the word at which its first reading breaks down, if that is told."""

    words: tuple[str, ...]
    critical: int | None


def read(path: Path) -> tuple[GardenPath, ...]:
    """The sentences of a file, one on each line: words between blanks, the critical one with `*` directly before it.

    Raises:
        InputError: if the file cannot be read, has no sentence, or has a line with several `*` or a lone one.
    """
    sentences = _sentences(read_text(path, REMEDY), str(path))
    if not sentences:
        raise InputError(f"{path} must have a sentence on each line, but is empty; write at least one.")
    return sentences


def _sentences(text: str, name: str) -> tuple[GardenPath, ...]:
    sentences = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        words, where = line.split(), f"Line {number} of {name}"
        marked = [index for index, word in enumerate(words) if word.startswith(_MARK)]
        if len(marked) > 1:
            rule = f"{where} must mark at most one word with {_MARK}"
            raise InputError(f"{rule}, but marks {len(marked)}; leave one mark.")
        if _MARK in words:
            raise InputError(f"{where} must have {_MARK} directly before a word, but has it alone; remove the blank.")
        if words:
            bare = tuple(word.removeprefix(_MARK) for word in words)
            sentences.append(GardenPath(bare, marked[0] if marked else None))
    return tuple(sentences)


SENTENCES: Final = _sentences(_CLASSIC, "the classic sentences")
"""Each with its critical word, and a full stop as a word of its own."""
