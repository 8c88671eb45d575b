"""Dynamic evaluation and the continuous cache against plain floats, and that neither sees what comes."""

import math

import pytest
import torch
from torch import Tensor

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm import scalar_reference
from tests.trainables.lm.small_runs import ENSEMBLE, config_for
from trainables.lm import (
    adaptation,
    cache,
    corpus,
    dynamic_evaluation,
    evaluation,
    sample_text,
    train,
)
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.config import (
    AdaptedEvaluation,
    AnchoredEnsemble,
    Evaluation,
    FixedStep,
    LearnedStep,
    LmConfig,
    McDropout,
    Recoder,
    Variational,
    WeakSupervision,
)
from trainables.lm.evaluation import Score
from trainables.lm.metrics import METRICS
from trainables.lm.network import Network, Run
from trainables.lm.optimisation import Optimisation

V, SEGMENT, STEP = 4, 3, 0.5
TRAIN = [0, 1, 2, 3, 1, 0, 2, 2, 1, 3, 0, 1, 3]
TOKENS = [2, 0, 1, 2, 3, 0, 1, 1, 3, 2, 0]
RECODER = Recoder(step=FixedStep(size=STEP))
RECODED = {"plain": None, "recoded": RECODER}


def model(recoder: Recoder | None = None, **changes: object) -> Network:
    """In float64, with weights large enough to matter."""
    training = Optimisation(batch_size=2, window=4)
    torch.manual_seed(0)
    network = Network(
        LmConfig(embedding_size=2, hidden_size=2, recoder=recoder, training=training, **changes), V
    ).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2)
    return network.eval()


def nats_of(network: Network, config: DynamicEvaluation | Cache, tokens: list[int], *pair: float) -> list[float]:
    """-log p of every token but the first, whose mean must be the loss."""
    found: list[float] = []
    read, mixed, text = network.forward, cache.mixed, torch.tensor(tokens)

    def note_read(*arguments: object) -> Run:
        run = read(*arguments)
        found.extend(run.nats[:, 0].tolist())
        return run

    def note_mixed(*arguments: Tensor) -> Tensor:
        nats = mixed(*arguments)
        found.extend(nats[0].tolist())
        return nats

    with pytest.MonkeyPatch.context() as patch:
        if isinstance(config, Cache):
            patch.setattr(cache, "mixed", note_mixed)
            (score,) = cache.scores(network, network.own, config, text, 1, [pair])
        else:
            adapted = dynamic_evaluation.prepare(network, network.own, config, torch.tensor(TRAIN), 1)
            patch.setattr(network, "forward", note_read)
            score = dynamic_evaluation.score(adapted, text, *pair)
    assert score.loss_nats == pytest.approx(sum(found) / (len(tokens) - 1), rel=1e-12)
    return found


@pytest.mark.parametrize("decay", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("kind", ["bias", "decoder", "all"])
@pytest.mark.parametrize("name", RECODED)
def test_dynamic_evaluation_is_that_of_plain_floats(name, kind, decay):
    """With a decay of .9 the rate of some weights is cut at 1. For the gradient what recoding subtracts is constant."""
    network = model(RECODED[name])
    weights = scalar_reference.weights_of(network)
    config = DynamicEvaluation(weights=kind, segment=SEGMENT, epsilon=0.01)
    streams = [TRAIN[:7], TRAIN[6:]]
    step = STEP if name == "recoded" else 0.0
    expected = scalar_reference.dynamic_nats(weights, streams, TOKENS, kind, SEGMENT, 0.1, decay, 0.01, step)
    assert nats_of(network, config, TOKENS, 0.1, decay) == pytest.approx(expected, rel=1e-6)
    still, _ = scalar_reference.read(scalar_reference.weights_of(network), scalar_reference.start(2, 2), TOKENS, step)
    assert expected[:SEGMENT] == pytest.approx(still.nats[:SEGMENT], rel=1e-12)
    assert expected[SEGMENT:] != pytest.approx(still.nats[SEGMENT:], rel=1e-3)


@pytest.mark.parametrize("name", RECODED)
@pytest.mark.parametrize(("size", "theta", "share"), [(3, 0.0, 0.3), (3, 2.0, 0.3), (100, 1.0, 0.6)])
def test_a_cache_is_that_of_plain_floats(name, size, theta, share):
    network = model(RECODED[name])
    step = STEP if name == "recoded" else 0.0
    expected = scalar_reference.cached_nats(scalar_reference.weights_of(network), TOKENS, size, theta, share, step)
    assert nats_of(network, Cache(size=size), TOKENS, theta, share) == pytest.approx(expected, rel=1e-6)
    plain = scalar_reference.cached_nats(scalar_reference.weights_of(network), TOKENS, size, theta, 0.0, step)
    assert expected != pytest.approx(plain, rel=1e-3)


ADAPTED = {
    "bias": DynamicEvaluation(weights="bias", segment=SEGMENT),
    "decoder": DynamicEvaluation(weights="decoder", segment=SEGMENT),
    "all": DynamicEvaluation(weights="all", segment=SEGMENT),
    "cache": Cache(size=3),
}


@pytest.mark.parametrize("name", RECODED)
@pytest.mark.parametrize("config", ADAPTED.values(), ids=ADAPTED)
def test_words_that_come_later_change_no_probability_before(name, config):
    """Those of the same segment included; words behind the change are read otherwise."""
    network, pair = model(RECODED[name]), (0.1, 0.1)
    first = nats_of(network, config, TOKENS, *pair)
    for changed in (SEGMENT + 1, 2 * SEGMENT, len(TOKENS) - 1):
        tokens = TOKENS[:changed] + [(word + 1) % V for word in TOKENS[changed:]]
        second = nats_of(network, config, tokens, *pair)
        assert second[: changed - 1] == first[: changed - 1]
        assert second[changed - 1] != first[changed - 1]


@pytest.mark.parametrize("name", RECODED)
@pytest.mark.parametrize("config", ADAPTED.values(), ids=ADAPTED)
def test_where_nothing_moves_it_is_the_plain_test(name, config):
    network, tokens = model(RECODED[name]), torch.tensor(TOKENS)
    plain = evaluation.score(network, tokens, network.own, 1, 1).loss_nats
    if isinstance(config, Cache):
        (found,) = cache.scores(network, network.own, config, tokens, 1, [(1.0, 0.0)])
    else:
        adapted = dynamic_evaluation.prepare(network, network.own, config, torch.tensor(TRAIN), 1)
        found = dynamic_evaluation.score(adapted, tokens, 0.0, 0.5)
    assert found.loss_nats == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("name", RECODED)
@pytest.mark.parametrize("kind", ["bias", "decoder", "all"])
def test_the_trained_weights_are_back_after_a_test_and_only_some_moved(name, kind):
    network = model(RECODED[name])
    before = {key: value.clone() for key, value in network.state_dict().items()}
    config = DynamicEvaluation(weights=kind, segment=SEGMENT)
    adapted = dynamic_evaluation.prepare(network, network.own, config, torch.tensor(TRAIN), 1)
    first = dynamic_evaluation.score(adapted, torch.tensor(TOKENS), 0.1, 0.0)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    assert dynamic_evaluation.score(adapted, torch.tensor(TOKENS), 0.1, 0.0).loss_nats == first.loss_nats
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())
    sizes = {"bias": V, "decoder": V + 2 * V, "all": V + 2 * V + 2 * V + 2 * 4 * 2 * (2 + 2 + 2)}
    assert adapted.num_weights == sizes[kind]


def test_step_sizes_move_where_they_are_used():
    network = model(Recoder(step=LearnedStep(start=0.5)))
    config = DynamicEvaluation()
    with_steps = dynamic_evaluation.moving(network, network.own, config)
    assert len(with_steps) == len(dynamic_evaluation.moving(network, None, config)) + 1
    assert any(one is network.steps.theta for one in with_steps)


def test_settings_are_chosen_by_validation_alone_and_the_first_of_equals_wins():
    asked = []

    def read(tokens, settings):
        asked.append((len(tokens), list(settings)))
        losses = {1.0: math.nan, 2.0: 3.0, 3.0: 2.0, 4.0: 2.0}
        return [Score(losses[rate], 1.0, 0, None, None) for rate, _ in settings]

    settings = [(rate, 0.0) for rate in (1.0, 2.0, 3.0, 4.0)]
    chosen, tried = adaptation.choose(read, settings, torch.arange(7))
    assert chosen == (3.0, 0.0) and [one.loss_nats for one in tried[1:]] == [3.0, 2.0, 2.0]
    assert adaptation.choose(read, settings[:1], torch.arange(7)) == ((1.0, 0.0), [])
    assert asked == [(7, settings)]
    with pytest.raises(ArithmeticError, match="lower the rates"):
        adaptation.choose(read, [settings[0]] * 2, torch.arange(7))


@pytest.mark.parametrize("config", ADAPTED.values(), ids=ADAPTED)
def test_an_evaluation_reports_the_chosen_settings_and_their_cost(baseline, text, tmp_path, config, monkeypatch):
    cfg, drawn = config_for(text), []
    if isinstance(config, DynamicEvaluation):
        config = config.model_copy(update={"rates": (0.01, 0.02), "decays": (0.1,)})
    monkeypatch.setattr(sample_text, "draw", lambda *arguments: drawn.append(arguments[3]) or [])
    tested, plain = FolderTrial(tmp_path), FolderTrial(tmp_path)
    train.evaluate(cfg, baseline.folder / "2.pt", AdaptedEvaluation(name="adapted", adaptation=config), tested)
    train.evaluate(cfg, baseline.folder / "2.pt", Evaluation(batch_size=1), plain)
    assert drawn == ["test"]
    found, still = tested.reports[2], plain.reports[2]
    assert set(found) <= {metric.name for metric in METRICS}
    first, second = ("cache_theta", "cache_share") if isinstance(config, Cache) else ("dynamic_rate", "dynamic_decay")
    grids = (config.thetas, config.shares) if isinstance(config, Cache) else (config.rates, config.decays)
    assert found[first] in grids[0] and found[second] in grids[1]
    assert found["macs_per_token"] > still["macs_per_token"] and found["preparation_macs"] > 0
    assert found["perplexity"] != still["perplexity"] and found["eval_tokens_per_s"] > 0
    network = Network(cfg, corpus.load(cfg.data).size)
    network.load_state_dict(torch.load(baseline.folder / "2.pt", weights_only=True)["network"])
    prepared = adaptation.adapt(network, None, config, corpus.load(cfg.data), 1)
    assert prepared.valid.loss_nats == pytest.approx(found["valid_loss_nats"], rel=1e-6)


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_perplexity_that_is_no_number_is_refused_with_the_settings_that_were_chosen(text, part, monkeypatch):
    """Behind the tokens that they were chosen on, too."""
    cfg = config_for(text)
    words, read, seen = corpus.load(cfg.data), cache.scores, {"validation": 1, "test": 2}[part]
    settings = Cache(size=3, thetas=(0.5,), shares=(0.1,))
    calls = []

    def fails(*arguments):
        calls.append(arguments)
        return [Score(math.nan, 1.0, 0)] if len(calls) == seen else read(*arguments)

    monkeypatch.setattr(cache, "scores", fails)
    message = f"The perplexity of the {part} part is inf with cache_theta = 0.5 and cache_share = 0.1; leave them out"
    with pytest.raises(ArithmeticError, match=message):
        adaptation.adapt(Network(cfg, words.size), None, settings, words, 1)


@pytest.mark.parametrize("config", ADAPTED.values(), ids=ADAPTED)
@pytest.mark.parametrize(
    "recoder", [ENSEMBLE, Recoder(signal=McDropout(num_samples=2)), Recoder(signal=WeakSupervision())]
)
def test_models_with_other_recoders_adapt(config, recoder):
    network, tokens = model(recoder).float(), torch.tensor(TOKENS)
    if isinstance(config, Cache):
        found = cache.scores(network, network.own, config, tokens, 1, [(1.0, 0.0), (1.0, 0.4)])
    else:
        adapted = dynamic_evaluation.prepare(network, network.own, config, torch.tensor(TRAIN), 1)
        found = [dynamic_evaluation.score(adapted, tokens, rate, 0.0) for rate in (0.0, 0.1)]
    assert math.isfinite(found[0].loss_nats) and abs(found[0].loss_nats - found[1].loss_nats) > 1e-4


def test_what_cannot_adapt_is_refused():
    added = Recoder(signal=AnchoredEnsemble(num_members=2))
    with pytest.raises(ValueError, match="must be another than anchored_ensemble in a dynamic evaluation"):
        AdaptedEvaluation(adaptation=DynamicEvaluation(), recoder=added)
    cached = AdaptedEvaluation(adaptation=Cache())
    with pytest.raises(ValueError, match="a cache needs one state a token"):
        LmConfig(recoder=Recoder(signal=Variational()), evaluations=(cached,))
    for field, value in (("batch_size", 2), ("weights", "baseline")):
        with pytest.raises(ValueError, match=field):
            AdaptedEvaluation(adaptation=Cache(), **{field: value})
