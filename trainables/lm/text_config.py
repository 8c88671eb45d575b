"""What can be set of the text that a language model reads."""

from typing import Annotated, Literal

from pydantic import Field

from trainables.config import Config, Count, Place

Share = Annotated[float, Field(gt=0, lt=0.5)]
Tokens = Literal["spaces", "words"]


class Files(Config):
    """Three text files, such as WikiText-2 or Mikolov's Penn Treebank, as they are; every line ends in `<eos>`."""

    kind: Literal["files"] = "files"
    root: Place = Field(None, description="default: the setting PONDERAY_DATA")
    train: str = Field("wikitext2/train.txt", description="path below the root")
    validation: str = "wikitext2/valid.txt"
    test: str = "wikitext2/test.txt"
    tokens: Tokens = Field(
        "spaces", description="spaces: what stands between blanks; words: words and signs of punctuation, for raw text"
    )


class OneFile(Config):
    """One text file; its last lines are for validation and test."""

    kind: Literal["one_file"] = "one_file"
    path: Place = Field(
        None, description="any text; default: the documentation of Python's language that comes with Python"
    )
    validation_share: Share = Field(0.05, description="of the lines")
    test_share: Share = 0.05
    tokens: Tokens = "words"


class Vocabulary(Config):
    """Which words of the training text have a number of their own; all others are `<unk>`."""

    max_size: Annotated[int, Field(ge=2)] | None = Field(None, description="with `<eos>` and `<unk>`; default: all")
    min_count: Count = 1


class Data(Config):
    """A text in three parts, and its vocabulary."""

    text: Annotated[Files | OneFile, Field(discriminator="kind")] = OneFile()
    vocabulary: Vocabulary = Vocabulary()
    num_train_tokens: Annotated[int, Field(ge=2)] | None = Field(None, description="the first so many; default: all")
    num_validation_tokens: Annotated[int, Field(ge=2)] | None = None
    num_test_tokens: Annotated[int, Field(ge=2)] | None = None
