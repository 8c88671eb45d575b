import random

import pytest
from torchaudio.functional import edit_distance

from trainables.asr.phone_errors import edits, released_error_rate


def test_a_hand_worked_example():
    """0 is put in before, 9 stands for 4, 7 is missing; any other alignment changes more."""
    found = edits((1, 2, 3, 4, 5, 6, 7, 8), (0, 1, 2, 3, 9, 5, 6, 8))
    assert (found.substitutions, found.insertions, found.deletions, found.num_labels) == (1, 1, 1, 8)
    assert found.total == 3


@pytest.mark.parametrize("seed", range(50))
def test_the_total_is_the_edit_distance_of_another_implementation(seed):
    draw = random.Random(seed)
    reference, hypothesis = ([draw.randrange(4) for _ in range(draw.randrange(12))] for _ in range(2))
    found = edits(reference, hypothesis)
    assert found.total == edit_distance(reference, hypothesis)
    assert found.insertions - found.deletions == len(hypothesis) - len(reference)


def test_the_released_rate_merges_silences_and_cuts_the_hypothesis():
    sil, a, b = 0, 1, 2
    assert released_error_rate((sil, sil, a, b, sil), (sil, a, sil, sil, b, sil, a, a), silence=sil) == 2 / 4
    assert released_error_rate((a, a, b), (a, a, b, b, b, b), silence=sil) == 0
    assert released_error_rate((a, a, b), (a, a, b, b, b, b), silence=None) == 0
    assert edits((a, a, b), (a, a, b, b, b, b)).total == 3
