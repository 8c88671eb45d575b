"""What learning during a test costs, against torch's counts and by hand, and what an evaluation reports of it."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.small_runs import config_for
from tests.trainables.lm.test_adaptation import RECODER, TOKENS, V, model
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
    LmConfig,
    McDropout,
    PredictedStep,
    Recoder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.gate_config import Always, Chance, Threshold
from trainables.lm.network import Network, Run
from trainables.lm.streams import Window


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
    "inject": Surprisal(variant="inject"),
    "mc_dropout": McDropout(num_samples=3),
    "variational": Variational(num_samples=3),
    "ensemble": AnchoredEnsemble(num_members=3),
}


GATES = {"open": Always(), "threshold": None, "by chance": Chance(probability=0.4), "shut": Chance(probability=0)}


KINDS, STEPS = ("bias", "decoder", "all"), (FixedStep(), PredictedStep())
CASES = [
    (name, KINDS[(i + j) % 3], gate, STEPS[(i + j // 2) % 2])
    for i, name in enumerate(SIGNALS)
    for j, gate in enumerate(GATES)
]
"""Every pair of two of the four."""


@pytest.mark.parametrize(("name", "kind", "gate", "step"), CASES)
def test_the_backward_pass_costs_what_torch_counts(name, kind, gate, step):
    recoder, dynamic = Recoder(signal=SIGNALS[name], step=step), DynamicEvaluation(weights=kind)
    recoder = recoder.model_copy(update={"gate": GATES[gate] or half_open(recoder, dynamic)})
    config = LmConfig(embedding_size=5, hidden_size=6, recoder=recoder)
    found, share = counted(config, dynamic)
    assert share == {"open": 1, "shut": 0}[gate] if gate in ("open", "shut") else 0 < share < 1
    expected = cost.macs_per_token(config, recoder, 17, share)
    expected += adaptation_cost.backward_macs_per_token(config, recoder, 17, dynamic, share)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["bias", "decoder", "all"])
def test_without_a_recoder_torch_counts_all_but_the_fused_layers(kind):
    config, dynamic = LmConfig(embedding_size=5, hidden_size=6), DynamicEvaluation(weights=kind)
    layers = cost.macs_per_token(config, None, 0)
    fused = 3 * layers if kind == "all" else layers
    expected = cost.macs_per_token(config, None, 17)
    expected += adaptation_cost.backward_macs_per_token(config, None, 17, dynamic)
    assert counted(config, dynamic)[0] == expected - fused


NUM_TOKENS = 9


def counted(config: LmConfig, dynamic: DynamicEvaluation) -> tuple[float, float | None]:
    """Per token of a segment of one stream, forward and backward; and the share of the tokens that was recoded."""
    flops, share, _ = ran(config, dynamic)
    return flops / 2 / NUM_TOKENS, share


def half_open(recoder: Recoder, dynamic: DynamicEvaluation) -> Threshold:
    """A gate at the median of delta where all tokens are recoded."""
    _, _, run = ran(LmConfig(embedding_size=5, hidden_size=6, recoder=recoder), dynamic)
    return Threshold(min_delta=float(torch.stack(run.trace.before).median()))


def ran(config: LmConfig, dynamic: DynamicEvaluation) -> tuple[int, float | None, Run]:
    """Floating-point operations by torch's count, the share of the tokens that was recoded, and the run."""
    torch.manual_seed(1)
    network = Network(config, 17)
    for parameter in network.requires_grad_(False).parameters():
        parameter.requires_grad_(
            any(parameter is one for one in dynamic_evaluation.moving(network, network.own, dynamic))
        )
    shape = (NUM_TOKENS, 1)
    window = Window(torch.randint(17, shape), torch.randint(17, shape))
    drawn = noise.draw(config, config.recoder, shape, 17, torch.Generator().manual_seed(0), is_training=False)
    with pytest.MonkeyPatch.context() as patch, FlopCounterMode(display=False) as counter:
        patch.setattr(torch.linalg, "vecdot", lambda a, b: (a * b).sum(-1))
        run = network(window, network.zeros(1, config.recoder), drawn, network.own)
        run.loss.mean().backward()
    share = evaluation.share_recoded(evaluation.count_recoded(run) / NUM_TOKENS, network.own)
    return counter.get_total_flops(), share, run


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


def test_an_adapted_evaluation_reports_its_share_and_costs_what_it_recoded(baseline, text, tmp_path, monkeypatch):
    """A cache moves no state, so that it recodes what the plain test does."""
    monkeypatch.setattr(sample_text, "draw", lambda *arguments: [])
    cfg, recoder, found = config_for(text), Recoder(gate=Threshold(min_delta=2.5)), {}
    for one in (
        Evaluation(name="plain", recoder=recoder, batch_size=1),
        AdaptedEvaluation(name="cache", recoder=recoder, adaptation=Cache(size=3)),
        AdaptedEvaluation(name="probe", recoder=Recoder(signal=WeakSupervision()), adaptation=Cache(size=3)),
    ):
        train.evaluate(cfg, baseline.folder / "2.pt", one, trial := FolderTrial(tmp_path))
        found[one.name] = trial.reports[2]
    plain, cached = found["plain"], found["cache"]
    assert 0 < plain["share_recoded"] < 1 and cached["share_recoded"] == plain["share_recoded"]
    assert cached["macs_per_token"] == pytest.approx(plain["macs_per_token"] + 8 * (3 + 5), rel=1e-12)
    assert "delta_before" not in cached and "share_recoded" not in found["probe"]
    words = corpus.load(cfg.data)
    network = Network(cfg, words.size)
    network.load_state_dict(torch.load(baseline.folder / "2.pt", weights_only=True)["network"])
    evaluated = evaluation.recoder_of(network, Evaluation(recoder=recoder))
    share = evaluation.score(network, words.validation, evaluated, 1, 1).share_recoded
    of_read = cost.macs_per_token(cfg, recoder, words.size, share) + 8 * (3 + 5)
    assert cached["preparation_macs"] == pytest.approx((len(words.validation) - 1) * of_read, rel=1e-12)


@pytest.mark.parametrize("kind", ["bias", "all"])
def test_a_dynamic_evaluation_behind_a_gate_costs_what_it_recoded(baseline, text, kind):
    """Its pass over the training text recodes what a plain reading in as many streams does."""
    cfg, recoder = config_for(text), Recoder(gate=Threshold(min_delta=2.5))
    words = corpus.load(cfg.data)
    network = Network(cfg, words.size)
    network.load_state_dict(torch.load(baseline.folder / "2.pt", weights_only=True)["network"])
    attached = evaluation.recoder_of(network, Evaluation(recoder=recoder))
    config = DynamicEvaluation(weights=kind, segment=5, rates=(0.01, 0.5), decays=(0.1,), num_tuning_tokens=40)
    found = adaptation.adapt(network, attached, config, words, 1)
    plain = evaluation.score(network, words.train, attached, cfg.training.batch_size, 1)
    adapted = dynamic_evaluation.prepare(network, attached, config, words.train, 1)
    arguments = cfg, recoder, words.size, config, adapted.num_weights
    expected = adaptation_cost.statistics_macs(*arguments, len(words.train) - 1, plain.share_recoded)
    shares = [dynamic_evaluation.score(adapted, words.validation[:40], r, 0.1).share_recoded for r in (0.01, 0.5)]
    assert len({plain.share_recoded, *shares, found.test.share_recoded, 1.0}) > 3
    for share in shares:
        added = adaptation_cost.dynamic_macs_per_token(*arguments, share)
        expected += 39 * (cost.macs_per_token(cfg, recoder, words.size, share) + added)
    assert found.metrics["preparation_macs"] == pytest.approx(expected, rel=1e-12)
    added = adaptation_cost.dynamic_macs_per_token(*arguments, found.test.share_recoded)
    assert found.added_macs_per_token == pytest.approx(added, rel=1e-12)
