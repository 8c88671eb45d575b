"""Sentences word by word against one word at a time; comparisons of candidates; probes."""

import math

import pytest
import torch

from tests.trainables.lm.test_network import SIGNALS, V, make
from trainables.lm.analysis import probe_fitting, words
from trainables.lm.config import Recoder
from trainables.lm.network import AttachedRecoder
from trainables.lm.signals.probe import Supervision
from trainables.lm.step_config import FixedStep

SENTENCES = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3, 5, 8, 9, 7]]
START = 0


def one_by_one(network, tokens):
    """-log p of each token but the first, and the distribution behind the last, by the modules themselves."""
    state, nats = [None] * len(network.layers), []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        values = network.embedding(torch.tensor([[token]]))
        for i, layer in enumerate(network.layers):
            values, state[i] = layer(values, state[i])
        log_probs = (values[0, 0] @ network.decoder_weight[0].t() + network.decoder_bias[0]).log_softmax(0)
        nats += [] if following is None else [-log_probs[following].item()]
    return nats, log_probs


def test_sentences_of_many_lengths_equal_each_by_itself():
    network = make(None)
    records = words.read(network, SENTENCES, START, None, seed=1)
    for sentence, record in zip(SENTENCES, records, strict=True):
        nats, _ = one_by_one(network, [START, *sentence])
        assert record.nats_before.tolist() == pytest.approx(nats, rel=1e-12)
        assert record.nats_after.tolist() == record.nats_before.tolist()
        assert not record.delta_before.any()


@pytest.mark.parametrize("name", ["nll", "eq44", "mc_units", "ensemble", "variational"])
def test_more_sentences_than_are_read_at_once_change_nothing(name, monkeypatch):
    network = make(Recoder(signal=SIGNALS[name], step=FixedStep(size=0.5)))
    together = words.read(network, SENTENCES, START, network.own, seed=1)
    monkeypatch.setattr(words, "MAX_SENTENCES", 2)
    apart = words.read(network, SENTENCES, START, network.own, seed=1)
    assert (
        [len(record.delta_after) for record in together] == [len(record.delta_after) for record in apart] == [5, 2, 7]
    )
    if name in ("nll", "eq44", "ensemble"):  # nothing random
        for one, other in zip(together, apart, strict=True):
            assert one.nats_after.tolist() == pytest.approx(other.nats_after.tolist(), rel=1e-12)


def test_a_surprisal_step_makes_the_word_that_came_likelier():
    network = make(Recoder(step=FixedStep(size=0.1)))
    for record in words.read(network, SENTENCES, START, network.own, seed=1):
        assert (record.nats_after < record.nats_before).all()
        assert record.nats_before.tolist() == pytest.approx(record.delta_before.tolist(), rel=1e-12)
        assert record.nats_after.tolist() == pytest.approx(record.delta_after.tolist(), rel=1e-12)


def test_recoding_at_one_word_leaves_those_before_it_alone():
    network = make(Recoder(step=FixedStep(size=0.5)))
    plain = words.read(network, SENTENCES, START, None, seed=1)
    only = words.read(network, SENTENCES, START, network.own, seed=1, recode_at=2)
    for one, other in zip(plain, only, strict=True):
        same = [math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one.nats_before, other.nats_before, strict=True)]
        assert same == [True] * min(3, len(same)) + [False] * (len(same) - 3)


def test_candidates_are_compared_behind_each_prefix():
    network = make(None)
    found = words.compare(network, SENTENCES, [(1, 2), (3, 4), (5, 6)], START, None, seed=1)
    for prefix, candidates, row in zip(SENTENCES, [(1, 2), (3, 4), (5, 6)], found, strict=True):
        _, log_probs = one_by_one(network, [START, *prefix])
        assert row.tolist() == pytest.approx([-log_probs[word].item() for word in candidates], rel=1e-12)


def test_what_surprisal_has_seen_does_not_help_it_at_the_same_word():
    """The output is of the state before recoding, so the first candidate, which has come, gains nothing from that."""
    network = make(Recoder(step=FixedStep(size=0.5)))
    one = words.compare(network, SENTENCES, [(1, 2)] * 3, START, network.own, seed=1)
    other = words.compare(network, SENTENCES, [(2, 1)] * 3, START, network.own, seed=1)
    assert one.tolist() == other[:, ::-1].tolist()


@pytest.mark.parametrize(("layer", "name"), [(1, "probe_low"), (2, "probe_high")])
def test_a_probe_moves_the_output_as_its_label_says(layer, name):
    """Through the decoder's difference of two words as probe, the label raises the one or the other."""
    recoder = Recoder(signal=SIGNALS[name], step=FixedStep(size=0.5))
    network = make(None)
    weight = network.decoder_weight[0][1] - network.decoder_weight[0][2]
    steps = make(recoder).steps
    gaps = {}
    for label in (0.0, 1.0, math.nan):
        told = Supervision(weight.detach(), torch.zeros((), dtype=weight.dtype), torch.full((3,), label).double())
        nats = words.compare(
            network, SENTENCES, [(1, 2)] * 3, START, AttachedRecoder(recoder, steps, None, told), seed=1
        )
        gaps[label] = nats[:, 1] - nats[:, 0]
    plain = words.compare(network, SENTENCES, [(1, 2)] * 3, START, None, seed=1)
    *_, untold = gaps.values()
    assert untold.tolist() == pytest.approx((plain[:, 1] - plain[:, 0]).tolist(), rel=1e-9)
    if layer == 2:
        assert (gaps[1.0] > untold).all() and (gaps[0.0] < untold).all()
    else:
        assert (gaps[1.0] != gaps[0.0]).all()


def test_a_fitted_probe_is_where_its_loss_has_no_slope():
    hidden, labels = torch.randn(40, 6, dtype=torch.float64), (torch.arange(40) % 2).double()
    hidden[:, 0] += 2 * labels
    probe = probe_fitting.fit(hidden, labels)
    error = (hidden @ probe.weight + probe.bias).sigmoid() - labels
    slope = hidden.t() @ error / len(labels) + 2 * probe_fitting.PENALTY * probe.weight
    assert slope.abs().max() < 1e-5 and error.mean().abs() < 1e-5
    is_right = ((hidden @ probe.weight + probe.bias) > 0) == labels.bool()
    assert is_right.double().mean() > 0.8


def test_the_vocabulary_is_large_enough_for_these_sentences():
    assert max(max(sentence) for sentence in SENTENCES) < V
