"""The published numbers are all there, typed a second time by hand, and stand where a shipped sweep measures them."""

from collections import Counter

import pytest

from orchestrator.claims import asr
from orchestrator.claims.claim import Claim, NumberClaim, Place, Published, StatementClaim
from orchestrator.claims.find import all_claims, claims_of
from orchestrator.claims.places import obstacle
from orchestrator.report.question import Question
from orchestrator.study import Study
from search_spaces.find import find_sweep, sweep_functions
from trainables.act.metrics import METRICS as ACT_METRICS
from trainables.asr.metrics import METRICS as ASR_METRICS
from trainables.lm.metrics import METRICS as LM_METRICS

FAMILIES = ("asr", "act", "lm")
METRICS = {
    family: {metric.name for metric in metrics}
    for family, metrics in zip(FAMILIES, (ASR_METRICS, ACT_METRICS, LM_METRICS), strict=True)
}

# sweep, condition, metric with evaluation, scale, mean, standard deviation, seeds
SAMPLE = (
    ("asr.table2_timit", "surprisal", "released_per@stochastic", 100, 20.00, 0.15, 5),
    ("asr.table2_timit", "surprisal", "released_flops_per_frame@stochastic", 1e-6, 6.41, None, None),
    ("asr.table2_timit", "learned_released", "released_per@stochastic", 100, 19.91, 0.58, 5),
    ("asr.table2_timit", "always_small", "paper_flops_per_frame@stochastic", 1, 5_703_448, None, None),
    ("asr.table2_timit", "always_big", "paper_flops_per_frame@stochastic", 1e-6, 7.54, None, None),
    ("asr.table2_mini_librispeech", "random", "released_per@stochastic", 100, 26.16, 0.35, 5),
    ("asr.table2_mini_librispeech", "learned_released", "released_flops_per_frame@stochastic", 1e-6, 6.50, None, None),
    ("asr.table2_mini_librispeech", "always_small", "released_per@stochastic", 100, 26.31, 0.33, 5),
    ("asr.ablation_timit", "no_ar,random", "released_per@surprisal", 100, 22.49, 0.28, 5),
    ("asr.ablation_timit", "no_ar,surprisal", "released_per@random", 100, 22.73, 0.44, 5),
    ("asr.ablation_timit", "ar,surprisal", "released_flops_per_frame@random", 1e-6, 6.63, None, None),
    ("asr.ablation_mini_librispeech", "ar,surprisal", "released_per@random", 100, 26.44, 0.06, 5),
    ("asr.model1", "ar,surprisal", "released_per@random", 100, 28.86, 0.31, 5),
    ("asr.model2", "always_big", "released_per@stochastic", 100, 25.91, 0.41, 5),
    ("asr.model3", "ar,random", "released_flops_per_frame@surprisal", 1e-6, 4.54, None, None),
    ("asr.model3", "always_small", "paper_flops_per_frame@stochastic", 1e-6, 3.28, None, None),
    ("asr.model3_timit", "always_small", "paper_flops_per_frame@stochastic", 1, 3_280_152, None, None),
    ("asr.deterministic", "train_deterministic", "test_loss_nats@deterministic", 1, 62.80, None, None),
    ("asr.deterministic", "train_stochastic", "train_loss_nats", 1, 74.30, None, None),
    ("asr.deterministic_timit", "train_deterministic", "released_per@stochastic", 100, 21.00, 0.19, 5),
    ("asr.deterministic_timit", "train_stochastic", "test_loss_nats@stochastic", 1, 24.04, None, None),
    ("asr.lambda_grid_timit", "released,lambda=0.0001", "released_per@stochastic", 100, 23.97, None, None),
    ("asr.lambda_grid_timit", "released,lambda=0.0001", "released_flops_per_frame@stochastic", 1e-6, 6.99, None, None),
    ("asr.joint_training", "frozen", "released_per@stochastic", 100, 25.80, 0.10, 5),
    ("act.tau_parity", "no_act", "sequence_error@test", 100, 40, None, 20),
    ("act.tau_sort_short", "tau=0.0001", "mean_updates@test", 1, 9, None, 20),
    ("act.tau_addition_laptop", "tau=0.001", "sequence_error@test", 100, 12, None, None),
    ("lm.step_size", "baseline", "perplexity@test", 1, 126.60, 4.06, 4),
    ("lm.step_size", "eq44,step=25", "perplexity@test", 1, 235.14, 76.99, 4),
    ("lm.step_size", "mc_dropout,step=0.1", "perplexity@test", 1, 157.91, 22.03, 4),
    ("lm.step_size", "ensemble,step=5", "perplexity@test", 1, 204.00, 12.12, 4),
    ("lm.samples", "mc_dropout,K=50", "perplexity@test", 1, 143.85, 2.81, 4),
    ("lm.samples", "ensemble,K=25", "perplexity@test", 1, 215.23, 12.16, 4),
    ("lm.mc_dropout_rate", "rate=0.4", "perplexity@test", 1, 139.14, 8.29, 4),
    ("lm.dynamic_step", "mc_dropout,predicted", "perplexity@test", 1, 154.48, 14.32, 4),
    ("lm.ablation", "eq44,predicted", "perplexity@without", 1, 129.01, None, None),
    ("lm.ablation", "ensemble,learned", "perplexity@without", 1, 142.36, 7.76, 4),
    ("lm.ablation", "baseline", "perplexity@mc_dropout_predicted", 1, 127.11, 4.14, 4),
    ("lm.signals", "ensemble,released", "perplexity@test", 1, 161.30, 9.22, 4),
)


def _all() -> list[Claim]:
    return [claim for family in FAMILIES for claim in all_claims(family)]


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: f"{row[0]}:{row[1]}:{row[2]}")
def test_a_number_stands_where_it_is_measured(
    row: tuple[str, str, str, float, float, float | None, int | None],
) -> None:
    sweep, condition, column, scale, *published = row
    at_place = [
        claim
        for claim in claims_of(sweep)
        if isinstance(claim, NumberClaim)
        and (claim.place.condition, claim.place.column, claim.place.scale) == (condition, column, scale)
        and claim.place.over is None
    ]
    assert Published(*published) in [claim.published for claim in at_place]


@pytest.mark.parametrize(
    ("start", "count"),
    [
        ("asr.table2.timit.", 5 * 2),
        ("asr.table2.mini_librispeech.", 5 * 2),
        ("asr.table3.", 8 * 2),
        ("asr.table4.", 4 * 2),
        ("asr.appendix_a.model1.", 6 * 2),
        ("asr.appendix_a.model2.", 6 * 2),
        ("asr.appendix_a.model3.", 6 * 2),
        ("asr.appendix_c.timit.", 4 * 3),
        ("asr.appendix_c.mini_librispeech.", 4 * 3),
        ("asr.appendix_d.", 2),
        ("asr.sizes.", 10),
        ("lm.table5_1.eq44.", 5),
        ("lm.table5_1.mc_dropout.", 6),
        ("lm.table5_1.ensemble.", 6),
        ("lm.table5_2.mc_dropout.", 5 * 2),
        ("lm.table5_2.ensemble.", 4 * 2),
        ("lm.figure5_4.", 6),
        ("lm.figure5_5.", 3 * 2),
        ("lm.figure5_6.", 3 * 3 * 2),
        ("act.log.", 4 * 2),
    ],
)
def test_a_table_has_all_of_its_rows(start: str, count: int) -> None:
    elsewhere = ("lambda_grid", "controller_bias", "ar_corpus", "ar_encoder", "joint_training", "ablation", "budget")
    elsewhere = (*elsewhere, "confounds", "signals")
    numbers = [c.id for c in _all() if isinstance(c, NumberClaim) and c.id.startswith(start)]
    assert len([one for one in numbers if one.rpartition(".")[2] not in elsewhere]) == count


def test_slowdowns_are_the_baselines_speed_over_the_models() -> None:
    claims = [c for c in claims_of("lm.samples") if isinstance(c, NumberClaim) and c.place.over]
    found = {c.place.over.condition: c.published.mean for c in claims if c.place.over}
    assert found == {
        "mc_dropout,K=1": 6.1, "mc_dropout,K=5": 8.4, "mc_dropout,K=10": 13.0, "mc_dropout,K=25": 29,
        "mc_dropout,K=50": 55, "ensemble,K=1": 6.9, "ensemble,K=5": 12.6, "ensemble,K=10": 21.9, "ensemble,K=25": 50,
    }  # fmt: skip
    assert {c.place.condition for c in claims} == {"baseline"}


def test_identities_differ_and_name_their_family() -> None:
    counts = Counter(claim.id for claim in _all())
    assert counts.most_common(1)[0][1] == 1
    for family in FAMILIES:
        assert all(claim.id.startswith(f"{family}.") for claim in all_claims(family))


def test_every_place_is_in_its_shipped_sweeps() -> None:
    for family in FAMILIES:
        for sweep in {sweep for claim in all_claims(family) for sweep in claim.sweeps}:
            built = find_sweep(sweep, smoke=False)
            evaluations = {
                c.name: {one.name for one in built.config(c, 1).evaluations}  # type: ignore[attr-defined]
                for c in built.conditions
            }
            for claim in claims_of(sweep):
                for place in _with_overs(claim):
                    assert place.condition in evaluations, (sweep, claim.id)
                    assert not place.evaluation or place.evaluation in evaluations[place.condition], (sweep, claim.id)
                    assert place.metric in METRICS[family], (sweep, claim.id)


def _with_overs(claim: Claim) -> list[Place]:
    fact = claim.setting.fact
    places = [*claim.places, *([fact.place] if fact else [])]
    return places + [place.over for place in places if place.over]


def test_shipped_sweeps_at_full_size_are_what_was_published() -> None:
    """But where the text or the labels are not, or nobody knows what was."""
    for name in sweep_functions():
        question = Question.of(find_sweep(name, smoke=False))
        nothing = Study(name, ())
        for claim in claims_of(name):
            reason = obstacle(claim, nothing, question)
            is_small = name.endswith("_laptop") or name in ("asr.demo", "asr.laptop_librispeech", "lm.laptop")
            if claim.id.startswith("act.log.") and isinstance(claim, StatementClaim):
                assert not reason
            elif isinstance(claim, NumberClaim) and claim.bar:
                assert reason
            elif is_small:
                assert reason, (name, claim.id)
            elif "data.phones" in claim.setting.requires:
                assert "data.phones is dictionary, not textgrid" in reason, (name, claim.id)
            elif claim.setting.fact:
                assert "will tell" in reason, (name, claim.id)
            else:
                assert not reason, (name, claim.id, reason)


def test_small_sizes_are_comparable_with_nothing() -> None:
    num_claims = 0
    for name in sweep_functions():
        question = Question.of(find_sweep(name, smoke=True))
        claims = claims_of(f"{name}.smoke")
        assert claims == claims_of(name)
        assert all(obstacle(claim, Study(f"{name}.smoke", ()), question) for claim in claims)
        num_claims += len(claims)
    assert num_claims > 400


def test_a_demo_says_on_what_data_it_was() -> None:
    question = Question.of(find_sweep("asr.demo", smoke=False))
    claim = claims_of("asr.demo")[0]
    reason = obstacle(claim, Study("asr.demo", ()), question)
    assert reason.startswith("Published on TIMIT at the paper's sizes; here data.kind is synthetic, not timit (")


def test_a_margin_has_a_reason_and_a_doubtful_number_a_note() -> None:
    for claim in _all():
        if isinstance(claim, NumberClaim):
            assert claim.margin_reason and (claim.margin > 0 or claim.bar)
        assert bool(claim.margin) == bool(claim.margin_reason) or isinstance(claim, NumberClaim)
    notes = {claim.id: claim.note for claim in _all()}
    assert "padding" in notes["asr.table2.timit.surprisal.flops"]
    assert "decoded stochastically" in notes["asr.appendix_c.timit.yn.per"]
    assert "Equation 4.4" in notes["lm.table5_1.eq44.5"]
    assert "chose its checkpoints on this test set" in notes["asr.table2.mini_librispeech.surprisal.per"]


def test_a_sweep_of_ones_own_has_no_claims() -> None:
    assert claims_of("mine.table2_timit") == claims_of("asr.search") == ()


def test_rows_that_the_paper_prints_in_two_tables_are_the_same() -> None:
    table_2 = {name: columns for name, _, *columns in asr.TABLE_2}
    for column, corpus in enumerate(("timit", "mini_librispeech")):
        rows = dict(asr.ABLATIONS[corpus])
        assert rows["y--"] == table_2["random"][column] and rows["yyy"] == table_2["surprisal"][column]
        assert asr.APPENDIX_C[corpus][3][3:] == table_2["surprisal"][column][:2]


def test_the_published_numbers_bear_the_statements_out() -> None:
    """Each statement with two printed sides agrees with the numbers that are printed of them."""
    num_checked = 0
    for family in FAMILIES:
        claims = list(all_claims(family))
        printed = {
            (sweep, *_place_key(claim.place)): claim.published.mean
            for claim in claims
            if isinstance(claim, NumberClaim) and not claim.place.over
            for sweep in claim.sweeps
        }
        for claim in claims:
            if isinstance(claim, StatementClaim) and isinstance(claim.right, Place):
                left, right = (printed.get((claim.sweeps[0], *_place_key(p))) for p in (claim.left, claim.right))
                if left is not None and right is not None:
                    gap = {"below": right - left, "above": left - right, "same": -abs(left - right)}[claim.relation]
                    assert gap + claim.margin > 0, claim.id
                    num_checked += 1
    assert num_checked > 80


def _place_key(place: Place) -> tuple[str, str, str]:
    """Error rates are printed by the released code's counting, and statements are about the corrected one."""
    return place.condition, place.evaluation, "released_per" if place.metric == "per" else place.metric
