"""Beam search against the sum over all alignments, and against a plain prefix beam search written with dictionaries."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
import torch

from trainables.asr.decode import beam_search, greedy, prefixes


def collapse(alignment, blank):
    merged = [symbol for symbol, _ in itertools.groupby(alignment)]
    return tuple(symbol for symbol in merged if symbol != blank)


def sums_over_alignments(probs):
    num_frames, num_symbols = probs.shape
    sums = defaultdict(float)
    for alignment in itertools.product(range(num_symbols), repeat=num_frames):
        sums[collapse(alignment, num_symbols - 1)] += np.prod([probs[t, s] for t, s in enumerate(alignment)])
    return sums


def plain_beam_search(probs, width):
    blank = probs.shape[1] - 1
    beams = {(): (1.0, 0.0)}
    for row in probs:
        grown = defaultdict(lambda: [0.0, 0.0])
        for prefix, (ends_blank, ends_label) in beams.items():
            grown[prefix][0] += (ends_blank + ends_label) * row[blank]
            for label in range(blank):
                if prefix and prefix[-1] == label:
                    grown[prefix][1] += ends_label * row[label]
                    grown[(*prefix, label)][1] += ends_blank * row[label]
                else:
                    grown[(*prefix, label)][1] += (ends_blank + ends_label) * row[label]
        beams = dict(sorted(grown.items(), key=lambda item: -sum(item[1]))[:width])
    return max(beams, key=lambda prefix: sum(beams[prefix]))


def random_log_probs(seed, *shape, sharpness=2.0):
    generator = torch.Generator().manual_seed(seed)
    return (sharpness * torch.randn(*shape, generator=generator, dtype=torch.float64)).log_softmax(-1)


@pytest.mark.parametrize("seed", range(12))
def test_a_wide_beam_finds_the_most_probable_sequence_of_all(seed):
    log_probs = random_log_probs(seed, 1, 5, 3)
    sums = sums_over_alignments(log_probs[0].exp().numpy())
    assert sum(sums.values()) == pytest.approx(1)
    assert beam_search(log_probs, torch.tensor([5]), width=64) == [max(sums, key=sums.get)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("width", [1, 3, 10])
def test_batched_search_equals_the_plain_one(seed, width):
    lengths = [40, 17, 1, 33]
    log_probs = random_log_probs(seed, 4, 40, 6, sharpness=1.5)
    expected = [plain_beam_search(log_probs[i, :n].exp().numpy(), width) for i, n in enumerate(lengths)]
    found = prefixes(log_probs, torch.tensor(lengths), width)
    assert [some[0] for some in found] == expected
    assert all(len(some) == len(set(some)) <= width for some in found)


@pytest.mark.parametrize("seed", range(8))
def test_all_prefixes_in_a_wide_beam_are_ranked_by_the_sum_over_their_alignments(seed):
    log_probs = random_log_probs(seed, 1, 4, 3)
    sums = sums_over_alignments(log_probs[0].exp().numpy())
    (found,) = prefixes(log_probs, torch.tensor([4]), width=64)
    assert found == sorted(sums, key=sums.get, reverse=True)


@pytest.mark.parametrize("seed", range(20))
def test_a_narrow_search_chooses_by_exact_score_among_its_beams_and_the_greedy_labelling(seed):
    log_probs = random_log_probs(seed, 1, 7, 4, sharpness=0.7)
    sums = sums_over_alignments(log_probs[0].exp().numpy())
    length = torch.tensor([7])
    candidates = [*prefixes(log_probs, length, 2)[0], *greedy(log_probs, length)]
    assert sums[beam_search(log_probs, length, width=2)[0]] == pytest.approx(max(sums[c] for c in candidates))


def test_silence_only_is_decoded_as_nothing():
    log_probs = torch.tensor([[[-9.0, 0.0]] * 3], dtype=torch.float32).log_softmax(-1)
    assert beam_search(log_probs, torch.tensor([3]), width=10) == [()]


def test_sums_beat_the_best_alignment():
    probs = torch.tensor([[[0.4, 0.6], [0.4, 0.6]]], dtype=torch.float64)
    assert greedy(probs.log(), torch.tensor([2])) == [()]
    assert beam_search(probs.log(), torch.tensor([2])) == [(0,)]


def test_greedy_merges_repeats_and_drops_blanks_and_padding():
    best = torch.tensor([[0, 0, 2, 0, 1, 1, 2, 1, 0]])
    log_probs = torch.nn.functional.one_hot(best, 3).double().log_softmax(-1)
    assert greedy(log_probs, torch.tensor([8])) == [(0, 0, 1, 1)]


def test_ten_beams_are_no_worse_than_greedy():
    log_probs, lengths = random_log_probs(5, 6, 30, 5), torch.full((6,), 30)
    losses = []
    for decoded in (beam_search(log_probs, lengths), greedy(log_probs, lengths)):
        targets, sizes = torch.tensor([x for row in decoded for x in row]), torch.tensor([len(row) for row in decoded])
        losses.append(torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), targets, lengths, sizes, 4, "none"))
    assert (losses[0] <= losses[1] + 1e-9).all()
