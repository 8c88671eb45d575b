"""The test text token by token: against the scores of an evaluation, and by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tests.trainables.lm.analysis.test_trained_model import WORDS
from tests.trainables.lm.test_network import V, make
from trainables.errors import InputError
from trainables.lm import evaluation
from trainables.lm.analysis import delta_and_loss, running_text, trained_model, uncertainty, word_groups
from trainables.lm.analysis.garden_paths import GardenPath
from trainables.lm.config import Evaluation, McDropout, Recoder, Surprisal, Variational
from trainables.lm.corpus import Corpus
from trainables.lm.gate_config import Chance
from trainables.lm.step_config import FixedStep, LearnedStep

SURPRISAL = Recoder(step=FixedStep(size=0.5))
EQ44 = Recoder(signal=Surprisal(variant="eq44"), step=LearnedStep(start=0.25), gate=Chance())
MC_DROPOUT = Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=0.5))
VARIATIONAL = Recoder(signal=Variational(num_samples=2), step=FixedStep(size=0.5))


def trained(recoder: Recoder | None, num_tokens: int = 101, batch_size: int = 3) -> trained_model.Trained:
    network, tokens = make(recoder), torch.randint(V, (num_tokens,))
    network.config = network.config.with_value("training.window", 9)
    text = Corpus(WORDS, tokens, tokens, tokens, {"train": 0, "validation": 0, "test": 0})
    return trained_model.Trained(network, text, network.own, Evaluation(batch_size=batch_size))


@pytest.mark.parametrize("recoder", [None, SURPRISAL, EQ44, MC_DROPOUT, VARIATIONAL])
def test_it_is_what_an_evaluation_makes_of_the_text(recoder):
    """Its means are those of `score`, which adds up windows and knows no tokens; streams of 34, 34 and 32 steps."""
    model = trained(recoder)
    arguments = (model.network, model.text.test)
    with_it, without = (
        evaluation.score(*arguments, attached, 3, model.seed, measures_delta=True)
        for attached in (model.attached, None)
    )
    record = running_text.read(model)
    assert record.tokens.tolist() == model.text.test[1:].tolist()
    assert record.nats.mean() == pytest.approx(with_it.loss_nats) and record.nats_without.mean() == pytest.approx(
        without.loss_nats
    )
    if recoder is None:
        assert record.delta_before is record.delta_after is record.step_sizes is None
        return
    assert record.delta_before.mean() == pytest.approx(with_it.before)
    assert record.delta_after.mean() == pytest.approx(with_it.after)
    is_raised = record.delta_after > record.delta_before + 1e-5 * np.maximum(1, abs(record.delta_before))
    assert is_raised.mean() == pytest.approx(with_it.raised)
    if recoder is EQ44:
        learned = torch.nn.functional.softplus(model.network.steps.theta)[0].item()
        assert set(record.step_sizes.round(6)) == {0.0, round(learned, 6)}
    else:
        assert set(record.step_sizes.round(6)) == {0.5}


def test_the_window_and_the_place_of_a_token_are_those_of_its_stream():
    """100 targets in three streams of 34 steps, the last with 32; windows of the config's length."""
    model = trained(None)
    length = model.network.config.training.window
    record = running_text.read(model)
    steps = [step for count in (34, 34, 32) for step in range(count)]
    assert record.window.tolist() == [step // length for step in steps]
    assert record.place.tolist() == [step % length + 1 for step in steps]


def test_a_text_too_short_for_tenths_is_refused(monkeypatch):
    monkeypatch.setattr(delta_and_loss, "NUM_BINS", 10_000)
    with pytest.raises(InputError, match=r"The analysis `delta` needs 20000 tokens or more of test text, but"):
        delta_and_loss.relation(trained(SURPRISAL))


def test_of_log_p_as_a_signal_delta_is_the_loss_and_both_fall_together():
    """Section 8.1.1's linear relation, which holds of -log p by definition."""
    cells = delta_and_loss.relation(trained(SURPRISAL))
    for tenth in range(1, 11):
        assert cells[tenth, "loss"] == pytest.approx(cells[tenth, "delta"])
        assert (
            cells[tenth, "loss_change"] == pytest.approx(cells[tenth, "delta_change"])
            and cells[tenth, "delta_change"] < 0
        )
        assert (cells[tenth, "correlation"], cells[1, "correlation_of_changes"]) == (pytest.approx(1), pytest.approx(1))
    deltas = [cells[tenth, "delta"] for tenth in range(1, 11)]
    assert deltas == sorted(deltas) and len(set(deltas)) == 10


def test_tenths_and_correlations_are_those_of_the_tokens():
    model = trained(MC_DROPOUT)
    cells, record = delta_and_loss.relation(model), running_text.read(model)
    order = np.argsort(record.delta_before, kind="stable")
    assert cells[3, "delta"] == pytest.approx(record.delta_before[order[20:30]].mean())
    assert cells[10, "loss"] == pytest.approx(record.nats_before[order[90:]].mean())
    behind = [record.nats[place + 1] for place in order[:10] if place + 1 < 100]
    assert cells[1, "next_loss"] == pytest.approx(np.mean(behind))
    changes = record.delta_after - record.delta_before, record.nats_after - record.nats_before
    assert cells[1, "correlation"] == pytest.approx(stats.pearsonr(record.delta_before, record.nats_before)[0])
    assert cells[1, "correlation_of_changes"] == pytest.approx(stats.pearsonr(*changes)[0])
    assert cells[1, "correlation_with_next"] == pytest.approx(
        stats.pearsonr(record.delta_before[:-1], record.nats[1:])[0]
    )


def test_what_never_changes_goes_with_nothing():
    assert delta_and_loss.correlation(np.zeros(3), np.arange(3.0)) == 0


@pytest.mark.parametrize("ask", [delta_and_loss.relation, lambda model: uncertainty.by_batch(model, 1, 5)])
def test_without_a_recoder_a_text_has_no_error_signal(ask):
    with pytest.raises(InputError, match="needs a recoder other than a probe; choose a condition or an `--evaluation`"):
        ask(trained(None))


def test_a_position_counts_from_the_first_end_of_a_sentence():
    ends = np.array([False, False, True, False, True, True, False])
    assert word_groups.sentence_positions(ends).tolist() == [0, 0, 0, 1, 2, 1, 1]
    assert word_groups.sentence_positions(np.zeros(0, dtype=bool)).tolist() == []


def test_groups_of_frequency_are_decades_and_those_of_positions_double():
    counts = np.array([0, 1, 9, 10, 99, 100, 1000])
    found = {name: is_in.nonzero()[0].tolist() for name, is_in in word_groups.by_decade(counts)}
    assert found == {"0": [0], "1 to 9": [1, 2], "10 to 99": [3, 4], "100 to 999": [5], "1,000 to 9,999": [6]}
    places = np.array([0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 900])
    found = {name: places[is_in].tolist() for name, is_in in word_groups.by_position(places)}
    assert found == {
        "1": [1],
        "2": [2],
        "3 to 4": [3, 4],
        "5 to 8": [5, 8],
        "9 to 16": [9, 16],
        "17 to 32": [17],
        "33 on": [33, 900],
    }


def test_the_groups_of_one_kind_make_up_the_text():
    """Their losses, weighed by their tokens, are that of all; of positions in sentences behind the first end of one."""
    model = trained(MC_DROPOUT)
    cells, record = word_groups.perplexities(model), running_text.read(model)
    first_end = record.tokens.tolist().index(model.text.index["<eos>"])
    for kind, start in (
        (word_groups.FREQUENCY, 0),
        (word_groups.IN_WINDOW, 0),
        (word_groups.IN_SENTENCE, first_end + 1),
    ):
        groups = [name for found, name, measure in cells if found == kind and measure == "num_tokens"]
        weights = [cells[kind, name, "num_tokens"] for name in groups]
        assert sum(weights) == 100 - start and all(weights)
        for measure, nats in (("perplexity_with", record.nats), ("perplexity_without", record.nats_without)):
            losses = [math.log(cells[kind, name, measure]) for name in groups]
            assert np.average(losses, weights=weights) == pytest.approx(nats[start:].mean())


def test_a_batch_is_a_window_of_all_streams():
    model = trained(MC_DROPOUT)
    record, cells = running_text.read(model), uncertainty.by_batch(model, 2, 100)
    last = int(record.window.max()) + 1
    assert last > 2 and list(dict.fromkeys(batch for batch, _ in cells)) == list(range(2, last + 1))
    assert cells[2, "delta_before"] == pytest.approx(record.delta_before[record.window == 1].mean())
    assert cells[last, "delta_after"] == pytest.approx(record.delta_after[record.window == last - 1].mean())
    assert cells[2, "loss"] == pytest.approx(record.nats[record.window == 1].mean())
    assert cells[2, "step_size"] == pytest.approx(0.5)
    with pytest.raises(
        InputError, match=f"`first` must be at most {last}, the batches of the test, but got {last + 1}"
    ):
        uncertainty.by_batch(model, last + 1, 1)


def test_delta_is_measured_at_each_word_also_where_nothing_is_recoded():
    """The delta of -log p without recoding is the surprisal without it; with it, another from the second word on."""
    cells = trained_model.of_sentences(trained(SURPRISAL), [GardenPath(("a", "b", "c"), 1)], None)
    for position, word in enumerate("abc", start=1):
        found = {name: cells[1, position, word, name] for name in ("delta_without", "delta_before", "bits_without")}
        assert found["delta_without"] == pytest.approx(found["bits_without"] * math.log(2))
        assert (found["delta_before"] == pytest.approx(found["delta_without"])) == (position == 1)
