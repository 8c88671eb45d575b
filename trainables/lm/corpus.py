"""The corpus of a language model: a text in three parts as tensors of numbers of words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Int
from torch import Tensor

from trainables.lm import numbered_text
from trainables.lm.numbered_text import PARTS, UNK, NumberedText
from trainables.lm.text_config import Data


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text in three parts.

    Attributes:
        words: the vocabulary; a word's index is its number.
        train: numbers of the running tokens, as are `validation` and `test`.
        num_unknown: by part, how many of its tokens are `<unk>` for want of a number; not those that the text says.
    """

    words: tuple[str, ...]
    train: Int[Tensor, " N"]
    validation: Int[Tensor, " M"]
    test: Int[Tensor, " K"]
    num_unknown: Mapping[str, int]

    @property
    def size(self) -> int:
        """The size of the vocabulary: V."""
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Sequence[str]) -> list[int]:
        """The numbers of `words`; of one without a number that of `<unk>`."""
        return [self.index.get(word, self.index[UNK]) for word in words]


def load(config: Data) -> Corpus:
    """The corpus that `config` names, kept in this process until a file changes.

    Raises:
        InputError: if a text cannot be read, is not in UTF-8 or is too short.
    """
    return _of(numbered_text.load(config))


@lru_cache(maxsize=2)
def _of(text: NumberedText) -> Corpus:
    train, validation, test = (torch.from_numpy(text.parts[part]) for part in PARTS)
    return Corpus(text.words, train, validation, test, text.num_unknown)
