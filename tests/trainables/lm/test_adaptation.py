"""Dynamic evaluation and the continuous cache against plain floats, and that neither sees what comes."""

import math

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm import scalar_reference
from tests.trainables.lm.small_runs import ENSEMBLE, config_for
from trainables.lm import (
    adaptation,
    adaptation_cost,
    cache,
    corpus,
    cost,
    dynamic_evaluation,
    evaluation,
    noise,
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
    PredictedStep,
    Recoder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.evaluation import Score
from trainables.lm.metrics import METRICS
from trainables.lm.network import Network, Run
from trainables.lm.streams import Window
from trainables.lm.training_config import Optimisation

V, SEGMENT, STEP = 4, 3, 0.5
TRAIN = [0, 1, 2, 3, 1, 0, 2, 2, 1, 3, 0, 1, 3]
TOKENS = [2, 0, 1, 2, 3, 0, 1, 1, 3, 2, 0]
RECODER = Recoder(step=FixedStep(size=STEP))
RECODED = {"plain": None, "recoded": RECODER}
KINDS = [("plain", "bias"), ("plain", "decoder"), ("plain", "all"), ("recoded", "bias"), ("recoded", "decoder")]
"""What recoding subtracts is a constant for the gradient, which differences of a loss do not know."""


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
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_dynamic_evaluation_is_that_of_plain_floats(name, kind, decay):
    """With a decay of .9 the rate of some weights is cut at 1."""
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


class Moves(TorchDispatchMode):
    """Counts what in-place operations of `move` touch."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        costs = {"lerp_": 2, "addcmul_": 1}
        self.count += costs.get(operation.__name__.split(".")[0], 0) * arguments[0].numel() if arguments else 0
        return operation(*arguments, **(keywords or {}))


def test_a_move_is_three_operations_of_each_weight():
    parts = [torch.rand(4, 5) for _ in range(5)]
    with Moves() as moves:
        dynamic_evaluation.move(*parts)
    assert moves.count == 20 * adaptation_cost.OPERATIONS_OF_A_MOVE == 60


SIGNALS = {
    "surprisal": Surprisal(),
    "eq44": Surprisal(variant="eq44"),
    "sigmoid": Surprisal(variant="sigmoid"),
    "mc_dropout": McDropout(num_samples=3),
    "variational": Variational(num_samples=3),
    "ensemble": AnchoredEnsemble(num_members=3),
}


@pytest.mark.parametrize("step", [FixedStep(), PredictedStep()], ids=["fixed", "predicted"])
@pytest.mark.parametrize("kind", ["bias", "decoder", "all"])
@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS)
def test_the_backward_pass_costs_what_torch_counts(signal, kind, step):
    config = LmConfig(embedding_size=5, hidden_size=6, recoder=Recoder(signal=signal, step=step))
    dynamic = DynamicEvaluation(weights=kind)
    expected = cost.macs_per_token(config, config.recoder, 17)
    expected += adaptation_cost.backward_macs_per_token(config, config.recoder, 17, dynamic)
    assert counted(config, dynamic) == expected


@pytest.mark.parametrize("kind", ["bias", "decoder", "all"])
def test_without_a_recoder_torch_counts_all_but_the_fused_layers(kind):
    config, dynamic = LmConfig(embedding_size=5, hidden_size=6), DynamicEvaluation(weights=kind)
    layers = cost.macs_per_token(config, None, 0)
    fused = 3 * layers if kind == "all" else layers
    expected = cost.macs_per_token(config, None, 17)
    expected += adaptation_cost.backward_macs_per_token(config, None, 17, dynamic)
    assert counted(config, dynamic) == expected - fused


def counted(config: LmConfig, dynamic: DynamicEvaluation) -> float:
    """Per token of a segment of three in one stream, forward and backward."""
    network = Network(config, 17)
    for parameter in network.requires_grad_(False).parameters():
        parameter.requires_grad_(
            any(parameter is one for one in dynamic_evaluation.moving(network, network.own, dynamic))
        )
    window = Window(torch.randint(17, (3, 1)), torch.randint(17, (3, 1)))
    drawn = noise.draw(config, config.recoder, (3, 1), 17, torch.Generator().manual_seed(0), is_training=False)
    with pytest.MonkeyPatch.context() as patch, FlopCounterMode(display=False) as counter:
        patch.setattr(torch.linalg, "vecdot", lambda a, b: (a * b).sum(-1))
        network(window, network.zeros(1, config.recoder), drawn, network.own).loss.mean().backward()
    return counter.get_total_flops() / 2 / 3


def test_a_cache_costs_what_torch_counts():
    """Beside the model's own; of whole windows."""
    network, config = model(RECODER), Cache(size=5)
    with FlopCounterMode(display=False) as counter:
        cache.scores(network, network.own, config, torch.tensor((TOKENS * 2)[:21]), 1, [(1.0, 0.1), (0.5, 0.2)])
    own = cost.macs_per_token(network.config, RECODER, V)
    assert counter.get_total_flops() / 2 / 20 == own + adaptation_cost.cache_macs_per_token(network.config, config)
    assert adaptation_cost.cache_macs_per_token(network.config, config) == 2 * (5 + 4)


def test_the_thesis_model_adapts_at_these_costs_by_hand():
    """2 x 650, V = 10,000, 13.26M for a token: a decoder of 6.51M weights moves every 20 tokens."""
    decoder = DynamicEvaluation(weights="decoder", segment=20)
    added = adaptation_cost.dynamic_macs_per_token(LmConfig(), None, 10_000, decoder, 6_510_000)
    assert added == 6_500_000 + 3 * 6_510_000 / 20
    statistics = adaptation_cost.statistics_macs(LmConfig(), None, 10_000, decoder, 6_510_000, 1280)
    assert statistics == 1280 * (13_260_000 + 6_500_000) + 6_510_000


def test_settings_are_chosen_by_validation_alone_and_the_first_of_equals_wins():
    asked = []

    def read(tokens, settings):
        asked.append((len(tokens), list(settings)))
        losses = {1.0: math.nan, 2.0: 3.0, 3.0: 2.0, 4.0: 2.0}
        return [Score(losses[rate], 1.0, 0, None, None) for rate, _ in settings]

    settings = [(rate, 0.0) for rate in (1.0, 2.0, 3.0, 4.0)]
    assert adaptation.choose(read, settings, torch.arange(7)) == (3.0, 0.0)
    assert adaptation.choose(read, settings[:1], torch.arange(7)) == (1.0, 0.0)
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
