"""Top-k routing against its definition, row by row; what is promised of choice, gradient, causality and cost."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from trainables.conditional.route import mix, route
from trainables.conditional.top_k import TopKRouter, highest, num_chosen, router_macs, weighted

WIDTH, PREDICTOR_WIDTH = 6, 5


def routed(x, router, block, k, is_masked=False):
    """x + r f(x) for chosen rows; masked: the block runs on all of them, and is multiplied by 0 or 1."""
    found = router(x, k)
    rows, chosen = x.flatten(0, 1), found.chosen.flatten()
    both = (
        mix(rows, chosen.float(), torch.zeros_like, block)
        if is_masked
        else route(rows, chosen, torch.zeros_like, block)
    )
    return x + weighted(both, found.scores.flatten(), chosen).view_as(x), found


def built(seed: int = 0):
    torch.manual_seed(seed)
    block = nn.Sequential(nn.Linear(WIDTH, 7), nn.GELU(), nn.Linear(7, WIDTH))
    return TopKRouter(WIDTH, PREDICTOR_WIDTH), block, torch.randn(3, 11, WIDTH)


@pytest.mark.parametrize("seed", range(3))
def test_outputs_are_those_of_the_definition_row_by_row(seed):
    router, block, x = built(seed)
    outputs, found = routed(x, router, block, k=4)
    (w,) = router.score.weight.tolist()
    for sequence, output, chosen in zip(x, outputs, found.chosen.tolist(), strict=True):
        scores = [sum(a * b for a, b in zip(w, row.tolist(), strict=True)) for row in sequence]
        top = sorted(range(11), key=lambda t: -scores[t])[:4]
        assert [t for t in range(11) if chosen[t]] == sorted(top)
        for t, row in enumerate(sequence):
            expected = row + scores[t] * block(row) if t in top else row
            torch.testing.assert_close(output[t], expected)


@pytest.mark.parametrize("is_training", [True, False])
def test_routed_and_masked_agree_in_outputs_and_gradients(is_training):
    router, block, x = built()
    router.train(is_training)
    leaves = [x.requires_grad_(), router.score.weight, *block.parameters()]
    found = []
    for is_masked in (False, True):
        outputs, _ = routed(x, router, block, 4, is_masked)
        weights = torch.linspace(-1, 1, outputs.numel()).view_as(outputs)
        found.append([outputs, *torch.autograd.grad((outputs * weights).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    assert all(one.abs().sum() > 0 for one in found[0])


def test_the_score_has_the_gradient_of_a_weight():
    router, block, x = built()
    outputs, found = routed(x, router, block, 4)
    (gradient,) = torch.autograd.grad(outputs.sum(), found.scores)
    torch.testing.assert_close(gradient, block(x).sum(-1) * found.chosen)


def test_the_predictor_learns_alone_and_what_the_router_chooses():
    router, block, x = built()
    _, found = routed(x.requires_grad_(), router, block, 4)
    gradients = torch.autograd.grad(
        found.predictor_loss, [x, router.score.weight, *router.predictor.parameters()], allow_unused=True
    )
    assert gradients[:2] == (None, None)
    p = router.predictor(x)[..., 0].sigmoid()
    likelihood = torch.where(found.chosen, p, 1 - p).log().mean()
    torch.testing.assert_close(found.predictor_loss, -likelihood)
    optimiser = torch.optim.Adam(router.predictor.parameters(), lr=0.01)
    texts = torch.randn(32, 40, WIDTH)
    for _ in range(400):
        optimiser.zero_grad()
        router(texts, 10).predictor_loss.backward()
        optimiser.step()
    wanted = router(texts, 10).chosen
    router.eval()
    assert (router(texts, 10).chosen == wanted).float().mean() > 0.93  # of guessing "never": .75


def test_in_evaluation_a_choice_uses_its_own_row_alone_where_training_uses_all():
    router, _, x = built()
    with torch.no_grad():
        router.predictor[-1].bias.zero_()
    other = x.clone()
    other[:, 5:] += 10 * torch.randn_like(other[:, 5:])
    assert not torch.equal(router(x, 4).chosen[:, :5], router(other, 4).chosen[:, :5])
    router.eval()
    assert torch.equal(router(x, 4).chosen[:, :5], router(other, 4).chosen[:, :5])
    assert torch.equal(router(x, 4).chosen[:, 3:4], router(x[:, 3:4], 1).chosen)
    assert router(x, 4).predictor_loss == 0


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_exactly_k_are_chosen_and_of_equal_scores_the_earlier(rows, k):
    chosen = highest(torch.tensor(rows, dtype=torch.float32), k)
    for row, found in zip(rows, chosen.tolist(), strict=True):
        top = sorted(range(6), key=lambda t: (-row[t], t))[:k]
        assert found == [t in top for t in range(6)]


@pytest.mark.parametrize("k", [0, 7])
def test_more_than_there_are_and_none_are_refused(k):
    with pytest.raises(ValueError, match=rf"`k` must be in \[1, 6\], the rows of a sequence, but got {k}"):
        highest(torch.zeros(1, 6), k)


def test_a_share_of_a_sequence_is_at_least_one_row():
    assert [num_chosen(rate, 16) for rate in (0.001, 0.125, 0.25, 1.0)] == [1, 2, 4, 16]


@pytest.mark.parametrize("is_training", [True, False])
def test_counted_is_what_ran(is_training):
    router, block, x = built()
    router.train(is_training)
    num_rows, block_macs = 33, 2 * WIDTH * 7
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        _, found = routed(x, router, block, 4)
    counted = num_rows * router_macs(WIDTH, PREDICTOR_WIDTH) + int(found.chosen.sum()) * block_macs
    assert counter.get_total_flops() == 2 * counted
    assert 0 < found.chosen.sum() < num_rows
