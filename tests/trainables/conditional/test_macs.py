"""The counter against torch's where torch counts, against arithmetic on paper where torch is blind."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode

from trainables.conditional.macs import count_macs
from trainables.conditional.route import mix, route

MODES = pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
ROWS = torch.randn(4, 5, 8)


def counted(run) -> int:
    with count_macs() as macs:
        run()
    return macs.total


def counted_by_torch(run) -> int:
    with FlopCounterMode(display=False) as flops:
        run()
    return flops.get_total_flops() // 2


def back(run):
    return lambda: run().square().sum().backward()


KNOWN = {
    "linear": (lambda: nn.Linear(8, 6)(ROWS), 20 * 8 * 6),
    "linear_without_bias": (lambda: nn.Linear(8, 6, bias=False)(ROWS), 20 * 8 * 6),
    "bmm": (lambda: torch.bmm(ROWS, torch.randn(4, 8, 3)), 4 * 5 * 8 * 3),
    "baddbmm": (lambda: torch.baddbmm(torch.zeros(3), ROWS, torch.randn(4, 8, 3)), 4 * 5 * 8 * 3),
    "einsum": (lambda: torch.einsum("btd,de->bte", ROWS, torch.randn(8, 3)), 20 * 8 * 3),
    "out": (lambda: torch.mm(ROWS[0], torch.ones(8, 2), out=torch.empty(5, 2)), 5 * 8 * 2),
    "convolution": (lambda: nn.Conv1d(5, 6, 3)(ROWS), 4 * 6 * (5 * 3 * 6)),
    "groups": (lambda: nn.Conv1d(5, 10, 3, groups=5)(ROWS), 4 * 6 * (3 * 10)),
    "transposed": (lambda: nn.ConvTranspose1d(5, 6, 3)(ROWS), 4 * 8 * (5 * 3 * 6)),
    "gru": (lambda: nn.GRU(8, 6)(ROWS), 20 * 3 * (8 * 6 + 6 * 6)),
    "backward": (back(lambda: nn.Linear(8, 6)(ROWS)), 20 * 8 * 6 * 2),
    "convolution_backward": (back(lambda: nn.Conv1d(5, 6, 3)(ROWS)), 4 * 6 * (5 * 3 * 6) * 2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_torch_counts_is_counted_as_torch_does_and_as_on_paper(name):
    run, expected = KNOWN[name]
    assert counted(run) == counted_by_torch(run) == expected


def in_place():
    rows, matrix = ROWS.detach(), torch.ones(8, 6)
    torch.zeros(4, 5, 6).baddbmm_(rows, matrix.expand(4, 8, 6))
    torch.zeros(5, 6).addmm_(rows[0], matrix)


def with_vectors():
    return ROWS[0] @ torch.ones(8), torch.ones(8) @ torch.ones(8), torch.addmv(torch.ones(5), ROWS[0], torch.ones(8))


def attend():
    queries, keys = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4)
    return F.scaled_dot_product_attention(queries, keys, keys)


BLIND = {
    "int8": (lambda: torch._int_mm(torch.ones(17, 8, dtype=torch.int8), torch.ones(8, 8, dtype=torch.int8)), 17 * 64),
    "in_place": (in_place, 20 * 8 * 6 + 5 * 8 * 6),
    "with_vectors": (with_vectors, 5 * 8 + 8 + 5 * 8),
    "addbmm": (lambda: torch.addbmm(torch.zeros(5, 6), ROWS, torch.ones(4, 8, 6)), 20 * 8 * 6),
    "activation": (lambda: torch._addmm_activation(torch.zeros(6), ROWS[0], torch.ones(8, 6)), 5 * 8 * 6),
    "lstm": (lambda: nn.LSTM(8, 6, num_layers=2, bidirectional=True)(ROWS), 20 * 2 * 4 * (8 * 6 + 36 + 12 * 6 + 36)),
    "attention": (attend, 2 * 3 * 5 * 7 * (4 + 4)),
    "added_outer_product": (lambda: torch.addr(torch.zeros(3, 4), torch.ones(3), torch.ones(4)), 3 * 4),
    "added_outer_product_in_place": (lambda: torch.zeros(3, 4).addr_(torch.ones(3), torch.ones(4)), 3 * 4),
    "distances": (lambda: torch.cdist(torch.ones(2, 30, 8), torch.ones(2, 40, 8)), 2 * 30 * 40 * (8 + 2)),
}


ELEMENT_BY_ELEMENT = {
    "outer": lambda: torch.outer(torch.ones(3), torch.ones(4)),
    "vecdot": lambda: torch.linalg.vecdot(ROWS, ROWS),
    "few_distances": lambda: torch.cdist(ROWS[0], ROWS[1]),
}


@MODES
@pytest.mark.parametrize("name", ELEMENT_BY_ELEMENT)
def test_what_is_multiplied_element_by_element_is_named_and_not_counted(name, mode):
    with mode():
        assert counted(ELEMENT_BY_ELEMENT[name]) == 0
    told = " ".join(count_macs.__doc__.split()).partition("Not seen")[2]
    assert {"outer": "torch.outer", "vecdot": "torch.linalg.vecdot", "few_distances": "torch.cdist"}[name] in told


@MODES
@pytest.mark.parametrize("name", BLIND)
def test_where_torch_is_blind_it_counts_as_on_paper(name, mode):
    run, expected = BLIND[name]
    with mode():
        assert counted(run) == expected > counted_by_torch(run)


def test_attention_on_a_cpu_counts_as_where_torch_sees_its_products():
    with sdpa_kernel(SDPBackend.MATH):
        assert counted_by_torch(attend) == counted(attend)
    assert counted(attend) == BLIND["attention"][1]


def test_the_gradients_of_attention_on_a_cpu_count_the_scores_again():
    """5 products of the size of the forward pass's 2: scores, and two gradients of each of the two products."""
    queries, keys = torch.randn(2, 3, 5, 4, requires_grad=True), torch.randn(2, 3, 7, 4, requires_grad=True)
    outputs = F.scaled_dot_product_attention(queries, keys, keys)
    assert counted(outputs.sum().backward) == 2 * 3 * 5 * 7 * 4 * 5


def test_the_gradients_of_a_fused_layer_count_twice_its_products():
    outputs = nn.LSTM(8, 6)(ROWS)[0]
    assert counted(outputs.sum().backward) == 2 * 20 * 4 * (8 * 6 + 36)


@MODES
def test_packed_layers_count_no_padding(mode):
    packed = pack_padded_sequence(ROWS, torch.tensor([5, 3, 2, 1]), batch_first=True)
    with mode():
        assert counted(lambda: nn.LSTM(8, 6)(packed)) == 11 * 4 * (8 * 6 + 36)


@MODES
def test_the_fast_path_of_transformers_is_seen(mode):
    """Queries, keys, values and output, two feed-forward layers, and scores and sums of 5 x 5."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with mode():
        assert counted(lambda: layer(ROWS)) == 20 * (4 * 64 + 2 * 8 * 16) + 4 * 25 * 2 * 8
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("num_big", range(7))
def test_routed_rows_count_the_network_that_they_took_and_mixed_rows_both(num_big):
    rows, chosen = torch.randn(6, 4), (torch.arange(6) < num_big)[torch.randperm(6)]
    small, big = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 3))
    assert counted(lambda: route(rows, chosen, small, big)) == num_big * (80 + 60) + (6 - num_big) * 12
    assert counted(lambda: mix(rows, chosen.float(), small, big)) == 6 * (80 + 60 + 12)


def test_the_count_can_be_read_on_the_way_and_starts_anew():
    layer, rows = nn.Linear(8, 6), ROWS[0]
    with count_macs() as outer:
        layer(rows)
        assert outer.total == 240
        with count_macs() as inner:
            layer(rows)
        layer(rows)
    assert (outer.total, inner.total) == (720, 240)
    with count_macs() as other:
        pass
    assert other.total == 0


def test_what_the_counter_says_that_it_does_not_see():
    """Work of other threads and quantised layers count nothing; a product of a nested tensor raises."""
    layer, rows = nn.Linear(8, 6), ROWS[0]
    with ThreadPoolExecutor(1) as pool:
        assert counted(lambda: pool.submit(layer, rows).result()) == 0
    quantised = torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {nn.Linear}, dtype=torch.qint8)
    assert counted(lambda: quantised(rows)) == 0
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([rows, rows[:2]], layout=layout)
        with pytest.raises((RuntimeError, TypeError)):
            counted(lambda nested=nested: layer(nested))
    said = " ".join((count_macs.__doc__ or "").split())
    for unseen in ("quantised layers", "other threads", "nested tensor"):
        assert unseen in said


@pytest.mark.gpu
def test_cudnns_layers_count_every_weight_for_every_row():
    """Two layers of two directions, on 11 packed rows; and twice that for the gradients."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    packed = pack_padded_sequence(ROWS.cuda(), torch.tensor([5, 3, 2, 1]), batch_first=True)
    layers, expected = nn.GRU(8, 6, num_layers=2, bidirectional=True).cuda(), 11 * 2 * 3 * (8 * 6 + 36 + 12 * 6 + 36)
    with count_macs() as macs:
        outputs = layers(packed)[0].data
        assert macs.total == expected
        outputs.sum().backward()
    assert macs.total == 3 * expected
