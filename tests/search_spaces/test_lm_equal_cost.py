"""Recoding's rivals cost what the sweep says they do."""

import pytest

from search_spaces.find import find_sweep
from search_spaces.lm_equal_cost import equal_width, evaluations, macs_in_testing, widened
from trainables.config import content_hash
from trainables.lm import numbered_text
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig
from trainables.lm.cost import macs_per_token, training_macs_per_token

SIZES = pytest.mark.parametrize("smoke", [False, True], ids=["full", "smoke"])


def configs(smoke: bool) -> dict[str, LmConfig]:
    sweep = find_sweep("lm.equal_cost", smoke=smoke)
    return {one.name: sweep.config(one, 1) for one in sweep.conditions}


@pytest.mark.parametrize(("smoke", "within"), [(False, 0.002), (True, 0.04)], ids=["full", "smoke"])
def test_the_wider_models_cost_what_recoding_does_in_testing_and_in_training(smoke, within):
    """By the counter; at the small size, which answers nothing, one unit is 4 % of the cost."""
    found, size = configs(smoke), 500 if smoke else 10_000
    recoded, testing, training = found["surprisal"], found["wide,testing"], found["wide,training"]
    wanted = macs_per_token(recoded, recoded.recoder, size)
    assert macs_per_token(testing, None, size) == pytest.approx(wanted, rel=within)
    assert training_macs_per_token(training, size) == pytest.approx(training_macs_per_token(recoded, size), rel=within)
    assert found["wide,testing,surprisal"] == testing.with_value("recoder", recoded.recoder)
    for one in (testing, training):
        assert one.recoder is None and one.embedding_size == one.hidden_size > recoded.hidden_size


def test_at_2_x_200_the_widths_are_those_by_hand():
    """Surprisal: 640,000 + 2 x 2,000,000 + 160,000 in testing; a width w has 16 w^2 + 10,000 w."""
    found = configs(False)
    assert macs_per_token(found["surprisal"], found["surprisal"].recoder, 10_000) == 4_800_000
    assert 16 * 318**2 + 10_000 * 318 == 4_797_984
    assert (found["wide,testing"].hidden_size, found["wide,training"].hidden_size) == (318, 203)
    assert 3 * (16 * 203**2 + 10_000 * 203) - (3 * 2_640_000 + 160_000) == -11_968


@pytest.mark.parametrize(("wanted", "width"), [(1.0, 1), (12.0, 1), (14.0, 2), (150.0, 5), (157.0, 6)])
def test_the_width_closest_in_cost_is_taken(wanted, width):
    assert (
        equal_width(LmConfig(), 1, lambda config, _: config.hidden_size * config.embedding_size * 5.0, wanted) == width
    )


def test_without_a_limit_of_the_vocabulary_the_cost_is_not_known():
    with pytest.raises(ValueError, match="max_size"):
        widened(LmConfig(), macs_in_testing)


@SIZES
def test_every_rival_reads_one_stream_and_nothing_is_trained_twice(smoke):
    found = configs(smoke)
    assert len({content_hash(one) for one in found.values()}) == len(found) == 5
    for name in ("baseline", "surprisal"):
        assert found[name].evaluations == evaluations("smoke" if smoke else "full")
    assert {one.batch_size for config in found.values() for one in config.evaluations} == {1}
    adapted = [one for one in found["baseline"].evaluations if isinstance(one, AdaptedEvaluation)]
    kinds = [getattr(one.adaptation, "weights", "cache") for one in adapted]
    assert kinds == ["bias", "decoder", "all", "cache"]
    of_bias, *others = [one.adaptation.rates for one in adapted[:-1]]
    assert min(of_bias) > max(map(max, others)), "a bias alone has to move further"
    assert len(find_sweep("lm.equal_cost", smoke=smoke).seeds) == (1 if smoke else 5)


def test_the_small_text_fills_the_vocabulary_that_the_widths_are_of():
    assert len(numbered_text.load(configs(True)["baseline"].data).words) == 500


@pytest.mark.data
def test_wikitext_2_fills_the_vocabulary_that_the_widths_are_of(real_data):
    assert len(numbered_text.load(configs(False)["baseline"].data).words) == 10_000


def test_evaluations_that_were_there_keep_their_fingerprints():
    """As recorded before there were adapted ones."""
    assert content_hash(Evaluation()) == "89ab21f06ce5a9a1"
    assert content_hash(LmConfig()) == "efb1faac0656a88f"
    assert content_hash(LmConfig(evaluations=evaluations("full"))) == content_hash(LmConfig())
