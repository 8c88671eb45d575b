"""Theorems without rounding and gates; effects and agreement by hand; sentences that others beside do not change."""

import numpy as np
import pytest
import torch

from tests.trainables.lm.test_network import V, make
from trainables.errors import InputError
from trainables.lm.adaptation_config import Cache
from trainables.lm.analysis import agreement, suites, theorems, trained_model, words
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig, McDropout, Recoder
from trainables.lm.corpus import Corpus
from trainables.lm.gate_config import Chance
from trainables.lm.step_config import FixedStep
from trainables.lm.streams import Window

WORDS = ("<eos>", "<unk>", *"abcdefghi")
SUITE = """item_number,condition_name,region_number,region_name,content
1,reduced_ambig,1,Disambiguator,a b
1,reduced_unambig,1,Disambiguator,c b
1,unreduced_ambig,1,Disambiguator,d b
1,unreduced_unambig,1,Disambiguator,e b
2,reduced_ambig,1,Disambiguator,zebra
2,reduced_unambig,1,Disambiguator,c
2,unreduced_ambig,1,Disambiguator,d
2,unreduced_unambig,1,Disambiguator,e
"""


def trained(recoder: Recoder | None) -> trained_model.Trained:
    network, tokens = make(recoder), torch.randint(V, (40,))
    text = Corpus(WORDS, tokens, tokens, tokens, {"train": 0, "validation": 0, "test": 0})
    return trained_model.Trained(network, text, network.own, Evaluation())


def test_theorem_1_is_not_decided_by_rounding_and_every_token_is_recoded():
    recoder = Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=1e-3), gate=Chance(probability=0))
    network = make(recoder).float()
    window = Window(torch.randint(V, (8, 6)), torch.randint(V, (8, 6)))
    shares = theorems.first(network, window, network.own, seed=1)
    assert shares["alpha=0.001"] == shares["alpha=0.5/L"] == 1.0
    assert 0 < theorems.second(network, window, network.own, seed=1)["k=1"] < 1.0
    assert next(network.parameters()).dtype == torch.float32


def test_an_analysis_of_the_baselines_weights_is_refused(tmp_path):
    evaluation = Evaluation(name="added", weights="baseline")
    with pytest.raises(
        InputError, match="a condition's own weights, but the evaluation added has those of the baseline"
    ):
        trained_model.load(LmConfig(), tmp_path / "1.pt", evaluation)


def test_an_analysis_of_a_model_that_adapts_is_refused(tmp_path):
    evaluation = AdaptedEvaluation(name="cache", adaptation=Cache())
    with pytest.raises(InputError, match="as it was trained, but in the evaluation cache it adapts to a text"):
        trained_model.load(LmConfig(), tmp_path / "1.pt", evaluation)


@pytest.mark.parametrize("recoder", [None, Recoder(step=FixedStep(size=0.5)), Recoder(signal=McDropout(num_samples=3))])
def test_an_effect_is_the_contrast_of_what_the_model_gives_out(tmp_path, recoder):
    path = tmp_path / "pairs.csv"
    path.write_text(SUITE)
    model = trained(recoder)
    cells = trained_model.of_suites(model, [suites.read(path)])
    reading = "with" if recoder else "without"
    sums = {}
    for first in "adce":
        numbers = [model.text.index[first], model.text.index["b"]]
        if recoder is None or recoder.signal.kind == "surprisal":
            (record,) = words.read(model.network, [numbers], 0, model.attached, 1)
            sums[first] = record.nats.sum() / np.log(2)
    assert cells["pairs", reading, "num_items"] == 1  # the other has a word that is not known
    if sums:
        effect = (sums["a"] - sums["d"]) - (sums["c"] - sums["e"])
        assert cells["pairs", reading, "effect_bits"] == pytest.approx(effect, rel=1e-9)
        assert cells["pairs", reading, "share_positive"] == (effect > 0)


def test_what_a_model_gives_out_is_before_recoding_for_surprisal_and_after_it_for_the_others():
    sentences = [[3, 1, 4], [1, 5]]
    for recoder, name in ((Recoder(), "nats_before"), (Recoder(signal=McDropout(num_samples=3)), "nats_after")):
        network = make(recoder.model_copy(update={"step": FixedStep(size=0.5)}))
        for record in words.read(network, sentences, 0, network.own, seed=1):
            assert record.nats.tolist() == pytest.approx(getattr(record, name).tolist(), rel=1e-12)
            assert (np.abs(record.nats_before - record.nats_after) > 1e-6).all()


def test_sentences_beside_it_do_not_change_a_sentence_though_masks_are_drawn():
    network = make(Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=0.5)))
    (alone,) = words.read(network, [[3, 1, 4]], 0, network.own, seed=1)
    first, _ = words.read(network, [[3, 1, 4], [1, 5, 9, 2, 6]], 0, network.own, seed=1)
    assert alone.nats_after.tolist() == first.nats_after.tolist()


def test_agreement_without_known_forms_is_refused():
    item = agreement.Item(("a",), "unknown", "b", True, False)
    with pytest.raises(InputError, match=r"Agreement needs items with both forms .* of 1 only 0 are so"):
        trained_model.of_agreement(trained(None), [item])


def test_agreement_counts_the_likelier_forms():
    model = trained(None)
    items = [agreement.Item(("a", "b"), right, wrong, True, True) for right, wrong in ("cd", "dc", "ef")]
    cells = trained_model.of_agreement(model, items)
    nats = words.compare(model.network, [[2, 3]], [(4, 5, 6, 7)], 0, None, 1)[0]
    expected = np.mean([nats[0] < nats[1], nats[1] < nats[0], nats[2] < nats[3]])
    assert cells["generated", "without", "accuracy"] == pytest.approx(expected)
    assert ("original", "without", "accuracy") not in cells
