"""Errors between phone sequences: the corpus-level rate, and the released code's."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rapidfuzz.distance import Levenshtein

Labels = Sequence[int]


@dataclass(frozen=True)
class Edits:
    """The fewest changes that turn a reference into a hypothesis, by kind, and the reference's length."""

    substitutions: int
    insertions: int
    deletions: int
    num_labels: int

    @property
    def total(self) -> int:
        """The edit distance."""
        return self.substitutions + self.insertions + self.deletions


def edits(reference: Labels, hypothesis: Labels) -> Edits:
    """The edits of one utterance."""
    kinds = [operation.tag for operation in Levenshtein.editops(list(reference), list(hypothesis))]
    return Edits(kinds.count("replace"), kinds.count("insert"), kinds.count("delete"), len(reference))


def released_error_rate(reference: Labels, hypothesis: Labels, silence: int | None) -> float:
    """The error rate of one utterance as the released code of arXiv:2006.01659 counts.

    Runs of silence are one in both sequences, and what the hypothesis has beyond the reference's length is cut off.
    Rates are then averaged over utterances.
    """
    reference, hypothesis = (
        [label for label, run in groupby(labels) for _ in ([label] if label == silence else run)]
        for labels in (reference, hypothesis)
    )
    if not reference:
        return 0.0
    return edits(reference, hypothesis[: len(reference)]).total / len(reference)
