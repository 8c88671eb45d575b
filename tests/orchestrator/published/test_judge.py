"""Studies of shipped sweeps held against the paper."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from scipy.stats import ttest_1samp

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.question import Question
from orchestrator.results.reference import recorded_question
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.significance import holm, welch_p
from orchestrator.tracking import mlflow_reader
from search_spaces.claim import Claim, NumberClaim, Place, Published, Setting, Source, StatementClaim
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import Store, replicate

SWEEP = "asr.deterministic_timit"

# by condition and column, of seeds 1 to 5
RESULTS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "train_stochastic": {
        "released_per@stochastic": (0.2001, 0.1999, 0.2002, 0.1998, 0.2),  # 20.00 +- .15: within half a point
        "per@stochastic": (0.201, 0.2, 0.202, 0.199, 0.2),
        "test_loss_nats@stochastic": (30.0, 30.1, 29.9, 30.0, 30.0),  # 24.04: worse
        "test_loss_nats@deterministic": (20.0, 27.0, 24.0, 22.0, 26.0),  # 23.88: anything
        "train_loss_nats": (17.5, 17.6, 17.5, 17.6, 17.5),
    },
    "train_deterministic": {
        "released_per@stochastic": (0.19, 0.191, 0.189, 0.19, 0.19),  # 21.00 +- .19 and 20.81 +- .24: better
        "per@stochastic": (0.191, 0.192, 0.19, 0.191, 0.191),  # below the other: contradicted
        "test_loss_nats@stochastic": (25.1, 25.2, 25.0, 25.1, 25.1),
        "test_loss_nats@deterministic": (24.6, 24.7, 24.5, 24.6, 24.6),
        "train_loss_nats": (16.2, 16.3, 16.2, 16.1, 16.2),
    },
}


def replicates(condition: str, suffix: str = "") -> list[Replicate]:
    columns = RESULTS[condition]
    return [
        replicate(condition + suffix, seed, metrics={name: values[seed - 1] for name, values in columns.items()})
        for seed in range(1, 6)
    ]


def study(suffix: str = "") -> Study:
    return Study(SWEEP, tuple(one for condition in RESULTS for one in replicates(condition, suffix)))


def by_id(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    return {verdict.claim.id: verdict for verdict in verdicts}


EXPECTED = {
    "asr.appendix_c.timit.yy.per": Finding.reproduced,
    "asr.appendix_c.timit.nn.per": Finding.better,
    "asr.appendix_c.timit.yy.test_loss": Finding.worse,
    "asr.appendix_c.timit.yn.test_loss": Finding.inconclusive,
    "asr.appendix_c.timit.yy.train_loss": Finding.not_comparable,
    f"{SWEEP}.train_deterministic.above.train_stochastic.per": Finding.worse,
    f"{SWEEP}.train_deterministic.below.train_stochastic.train_loss_nats": Finding.reproduced,
    f"{SWEEP}.train_deterministic.itself.below.train_deterministic.test_loss_nats": Finding.inconclusive,
}


def test_a_study_can_have_one_of_each() -> None:
    found = by_id(judge(study(), Question.of(find_sweep(SWEEP))))
    assert {name: found[name].finding for name in EXPECTED} == EXPECTED
    assert {verdict.finding for verdict in found.values()} == set(Finding)
    assert found["asr.appendix_c.timit.yy.per"].difference == pytest.approx(0, abs=1e-9)
    contradicted = found[f"{SWEEP}.train_deterministic.above.train_stochastic.per"]
    assert "Contradicted" in contradicted.reason and contradicted.difference == pytest.approx(-0.94)


def test_a_recorded_study_is_judged_the_same(tmp_path) -> None:
    store = Store(tmp_path / "mlflow.db", SWEEP)
    for revision, condition in enumerate(RESULTS, start=1):
        store.write(replicates(condition), revision, start_ms=revision)
    read = mlflow_reader.read_study(store.client, SWEEP, store.experiment_id)
    assert read is not None
    question = Question.of(find_sweep(SWEEP))
    assert repr(judge(read, question)) == repr(judge(study(), question))


def test_statements_are_one_family() -> None:
    found = by_id(judge(study(), Question.of(find_sweep(SWEEP))))
    ends = {
        "per@stochastic": "train_deterministic.above.train_stochastic.per",
        "test_loss_nats@stochastic": "train_deterministic.above.train_stochastic.test_loss_nats",
        "train_loss_nats": "train_deterministic.below.train_stochastic.train_loss_nats",
    }
    raw = [welch_p(*(RESULTS[f"train_{kind}"][name] for kind in ("deterministic", "stochastic"))) for name in ends]
    stochastic, deterministic = (
        RESULTS["train_stochastic"][f"test_loss_nats@{kind}"] for kind in ("stochastic", "deterministic")
    )
    higher = [b - a for a, b in zip(stochastic, deterministic, strict=True)]
    raw.append(float(ttest_1samp(higher, 0.5).pvalue))  # no higher, give or take half a nat
    raw.append(2**-4)  # every difference is .5: of the 32 signs of five, two are as far from 0
    itself = [f"train_{kind}.itself.below.train_{kind}.test_loss_nats" for kind in ("stochastic", "deterministic")]
    adjusted = [found[f"{SWEEP}.{end}"].p for end in (*ends.values(), *itself)]
    assert adjusted == pytest.approx(holm(raw)) and raw != adjusted
    assert f"{SWEEP}.{itself[1]}" in found and math.isnan(found[f"{SWEEP}.{itself[1]}"].interval.low)


def tied_study(**values: Sequence[float]) -> Study:
    runs = [
        replicate(name, seed, metrics={"per": value})
        for name, column in values.items()
        for seed, value in enumerate(column, 1)
    ]
    return Study(SWEEP, tuple(runs))


def of_per(claims: Sequence[Claim], found: Study) -> list[Verdict]:
    plain = Question.of(find_sweep(SWEEP))
    return list(judge(found, replace(plain, claims=tuple(claims), configs={name: {} for name in found.conditions})))


SOURCE, SETTING = Source("A paper", "Table 1"), Setting("anywhere")
BELOW = StatementClaim("x", (SWEEP,), "a is below b", Place("a", "per"), "below", Place("b", "per"), SOURCE, SETTING)
NUMBER = NumberClaim("n", (SWEEP,), Place("a", "per"), Published(0.985), 0.001, "a thousandth", SOURCE, SETTING)
NOISY = {"c": (0.97, 0.98, 0.98, 0.99), "d": (0.97, 0.97, 0.99, 0.98)}


def test_no_spread_shows_nothing_where_values_repeat_in_other_conditions_too() -> None:
    tied = tied_study(a=(0.98, 0.98), b=(0.99, 0.99), **NOISY)
    for verdict in of_per([BELOW, NUMBER], tied):
        assert verdict.finding is Finding.inconclusive and "it may be chance" in verdict.reason
    alone = tied_study(a=(0.98, 0.98), b=(0.99, 0.99))
    assert [one.finding for one in of_per([BELOW, NUMBER], alone)] == [Finding.reproduced, Finding.better]


@pytest.mark.parametrize("published", [Published(0.31), Published(0.31, 0.001, 5)])
@pytest.mark.parametrize("own", [(0.3,) * 3, (0.1 * 3, 0.3, 0.3)])
def test_hidden_noise_decides_nothing_of_a_number_whatever_spread_was_published_and_however_it_is_rounded(
    own: Sequence[float], published: Published
) -> None:
    """.1 * 3 is more than .3 by 6e-17."""
    claim = replace(NUMBER, published=published)
    (verdict,) = of_per([claim], tied_study(a=own, **NOISY))
    assert verdict.finding is Finding.inconclusive and "it may be chance" in verdict.reason
    (verdict,) = of_per([claim], tied_study(a=own, c=(0.97, 0.98, 0.99)))
    assert verdict.finding is Finding.better
    (verdict,) = of_per([claim], tied_study(a=(0.3, 0.3, 0.3001), **NOISY))
    assert verdict.finding is Finding.better


def test_numbers_too_far_apart_for_a_difference_are_not_comparable() -> None:
    (verdict,) = of_per([BELOW], tied_study(a=(1.7e308, 1.6e308), b=(-1.7e308, -1.6e308)))
    assert verdict.finding is Finding.not_comparable and "no difference below 1.8e308" in verdict.reason
    (verdict,) = of_per([BELOW], tied_study(a=(1.1e308, 1.2e308, 1.15e308), b=(1.6e308, 1.7e308, 1.62e308)))
    assert verdict.finding is Finding.reproduced


def test_a_value_that_is_not_finite_breaks_what_is_said_of_every_replicate() -> None:
    never = replace(BELOW, relation="same", right=0.0, of="every")
    (verdict,) = of_per([never], tied_study(a=(0.0, math.nan, math.inf, 0.0)))
    assert verdict.finding is Finding.worse
    assert verdict.reason == "Contradicted: per of a is not 0 in 2 of 4 replicates, but nan."
    (verdict,) = of_per([never], tied_study(a=(math.nan, 0.0, 0.0)))
    assert verdict.finding is Finding.worse
    (verdict,) = of_per([never], tied_study(a=(math.nan, math.nan)))
    assert verdict.reason == "Contradicted: per of a is not 0 in 2 of 2 replicates, but nan."


def test_seeds_with_nothing_below_the_line_are_counted() -> None:
    ratio = replace(BELOW, left=Place("a", "per", over=Place("b", "per")), relation="above", right=1.0)
    (verdict,) = of_per([ratio], tied_study(a=(0.1, 0.2, 0.3, 0.4), b=(0.0, 0.1, 0.11, 0.12)))
    assert verdict.ours.n == 3 and verdict.reason.endswith(" Left out: 1 seed whose per of b is 0.")
    (verdict,) = of_per([ratio], tied_study(a=(0.0, 0.2, 0.3, 0.4), b=(0.1, 0.1, 0.11, 0.12)))
    assert verdict.ours.n == 4 and "Left out" not in verdict.reason


def test_what_has_not_run_is_inconclusive() -> None:
    only = Study(SWEEP, tuple(replicates("train_stochastic")))
    found = by_id(judge(only, Question.of(find_sweep(SWEEP))))
    assert found["asr.appendix_c.timit.nn.per"].finding is Finding.inconclusive
    assert "No complete replicate" in found["asr.appendix_c.timit.nn.per"].reason
    assert found["asr.appendix_c.timit.yy.per"].finding is Finding.reproduced
    statement = found[f"{SWEEP}.train_deterministic.above.train_stochastic.per"]
    assert (statement.finding, statement.ours, statement.seeds_needed) == (Finding.inconclusive, None, 2)


def test_an_unfinished_replicate_does_not_count() -> None:
    running = [*replicates("train_stochastic")[:4], replicate("train_stochastic", 5, state="running", metrics={})]
    found = by_id(judge(Study(SWEEP, tuple(running)), Question.of(find_sweep(SWEEP))))
    ours = found["asr.appendix_c.timit.yy.per"].ours
    assert ours and ours.n == 4


@pytest.mark.parametrize(
    ("path", "value", "is_comparable", "reason"),
    [
        ("controller.fit", "one_pass_adam", True, ""),
        ("training.num_epochs", 3, False, "training.num_epochs is 3, not 50"),
        ("controller.mu", 0.8, False, "it was run with controller.mu=0.8"),
        ("data.split", {"kind": "held_out_speakers"}, False, "data.split.kind is held_out_speakers, not standard"),
    ],
)
def test_an_override_is_another_setting_unless_it_does_not_matter(path, value, is_comparable, reason) -> None:
    sweep = find_sweep(SWEEP).with_values({path: value})
    suffix = sweep.conditions[0].name.removeprefix("train_stochastic")
    assert suffix.startswith(",")
    found = by_id(judge(study(suffix), Question.of(sweep)))["asr.appendix_c.timit.yy.per"]
    assert found.ours and found.ours.mean == pytest.approx(20)
    assert (found.finding is Finding.reproduced) == is_comparable
    assert (found.finding is Finding.not_comparable) != is_comparable
    assert reason in found.reason and (is_comparable or math.isnan(found.difference))


@pytest.mark.parametrize(("path", "value"), [("controller.fit", "one_pass_adam"), ("controller.mu", 0.8)])
def test_what_ran_with_settings_only_is_judged_by_them_without_being_asked(path, value) -> None:
    """Their config is the recorded one; `controller.fit` is free, `controller.mu` is not."""
    asked = find_sweep(SWEEP).with_values({path: value})
    of_asked = Question.of(asked)
    suffix = asked.conditions[0].name.removeprefix("train_stochastic")
    recorded = replace(study(suffix), settings=of_asked.settings, configs=of_asked.configs)
    question = recorded_question(find_sweep(SWEEP), recorded)
    assert repr(judge(recorded, question)) == repr(judge(recorded, of_asked))
    assert any(verdict.ours for verdict in judge(recorded, question))


def test_what_ran_with_several_settings_only_is_not_comparable_until_one_is_shown() -> None:
    asked = [Question.of(find_sweep(SWEEP).with_values({"controller.mu": mu})) for mu in (0.8, 0.9)]
    both = [study(f",mu={mu}") for mu in (0.8, 0.9)]
    settings = {**asked[0].settings, **asked[1].settings}
    configs = {**asked[0].configs, **asked[1].configs}
    recorded = Study(SWEEP, (*both[0].replicates, *both[1].replicates), settings=settings, configs=configs)
    question = recorded_question(find_sweep(SWEEP), recorded)
    verdict = by_id(judge(recorded, question))["asr.appendix_c.timit.yy.per"]
    assert (verdict.finding, verdict.ours) == (Finding.not_comparable, None)
    several = "'train_stochastic' is there with several settings, train_stochastic,mu=0.8 and train_stochastic,mu=0.9"
    assert several in verdict.reason


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ({}, Finding.reproduced),
        ({"data.phones": "textgrid"}, Finding.reproduced),
        ({"data.phones": "dictionary"}, Finding.not_comparable),
        ({"validation_decoding.kind": "greedy"}, Finding.not_comparable),
    ],
    ids=["as shipped", "aligner", "39 labels", "greedy"],
)
def test_error_rates_need_the_papers_41_labels_and_its_decoder(values: Mapping[str, str], finding: Finding) -> None:
    """Of the dictionary with spn or of an aligner: how they differ from the paper's is said by the claim."""
    name, error, cost = "asr.table2_mini_librispeech", "released_per@stochastic", "released_flops_per_frame@stochastic"
    sweep = find_sweep(name).with_values(values)
    runs = [
        replicate(sweep.conditions[0].name, seed, metrics={error: rate, cost: 6.43e6})
        for seed, rate in enumerate((0.258, 0.259, 0.257, 0.258, 0.258), start=1)
    ]
    found = by_id(judge(Study(name, tuple(runs)), Question.of(sweep)))
    verdict = found["asr.table2.mini_librispeech.surprisal.per"]
    assert verdict.finding is finding
    assert verdict.ours and verdict.ours.mean == pytest.approx(25.8)
    if "data.phones" in values and finding is Finding.not_comparable:
        assert "data.phones is dictionary, not dictionary_spn or textgrid" in verdict.reason
    costs = found["asr.table2.mini_librispeech.surprisal.flops"]
    assert costs.finding is Finding.reproduced, "costs need no labels"


def test_what_was_recorded_of_other_data_under_a_name_is_not_comparable() -> None:
    """Appendix A's models were on Mini-LibriSpeech under names that are now on TIMIT."""
    sweep = find_sweep("asr.model1")
    runs = [
        replicate("ar,random", seed, metrics={"released_per@surprisal": 0.2689 + seed / 1e4}) for seed in range(1, 6)
    ]
    study, today = Study(sweep.name, tuple(runs)), Question.of(sweep).configs
    older = {"data.kind": "librispeech", "validation_decoding.kind": "greedy"}
    for recorded, finding in ((today, Finding.reproduced), ({"ar,random": older}, Finding.not_comparable)):
        question = recorded_question(sweep, replace(study, configs=recorded))
        verdict = by_id(judge(study, question))["asr.appendix_a.model1.y-y.per"]
        assert verdict.finding is finding
    assert "data.kind is librispeech, not timit" in verdict.reason


BIASES = "asr.controller_bias"
ERRORS = {  # of ten biases of the surprisal model
    "as appendix B says": (0.258, 0.256, 0.254, 0.252, 0.250, 0.251, 0.253, 0.256, 0.259, 0.263),
    "the other way round": (0.245, 0.247, 0.249, 0.251, 0.258, 0.257, 0.255, 0.252, 0.249, 0.245),
}
BIG_ONLY = 0.2569


@pytest.mark.parametrize(
    ("errors", "finding"), zip(ERRORS.values(), (Finding.reproduced, Finding.worse), strict=True), ids=ERRORS
)
def test_appendix_b_is_held_against_a_study(errors: Sequence[float], finding: Finding) -> None:
    runs, sign = [], 1 if finding is Finding.reproduced else -1
    for seed in range(1, 6):
        metrics = {f"per@bias_{step}": error + seed / 1e4 for step, error in enumerate(errors)}
        metrics |= {f"routing_rate@bias_{step}": 0.8 + sign * step / 50 + seed / 1e3 for step in range(10)}
        runs.append(replicate("surprisal", seed, metrics=metrics))
        runs.append(replicate("always_big", seed, metrics={"per@stochastic": BIG_ONLY - seed / 1e4}))
    found = by_id(judge(Study(BIASES, tuple(runs)), Question.of(find_sweep(BIASES))))
    trends = ("bias_0.rises.bias_9.routing_rate", "bias_0.falls.bias_4.per", "bias_5.rises.bias_9.per")
    assert {found[f"{BIASES}.{name}"].finding for name in (*trends, "bias_9.above.always_big.per")} == {finding}
    big_only = found["asr.table2.mini_librispeech.big_only.per.controller_bias"]
    assert big_only.claim.places[0].condition == "always_big"


@pytest.mark.parametrize(
    ("vocabulary", "is_thesis"), [(37_732, True), (37_734, True), (33_278, False), (10_000, False)]
)
def test_the_baselines_arithmetic_tells_the_text(vocabulary: int, is_thesis: bool) -> None:
    """A 2 x 650 LSTM has 2 * 4 * 650 * 1300 multiply-accumulates, and 650 for each word."""
    macs = 2 * 4 * 650 * 1300 + 650 * vocabulary
    runs = []
    for seed in range(1, 6):
        own = {
            "perplexity@test": 126.6 + seed / 10,
            "macs_per_token@test": macs,
            "eval_tokens_per_s@test": 1310.0 + seed,
        }
        slow = {"perplexity@test": 140.0 + seed, "eval_tokens_per_s@test": (1310.0 + seed) / (13 + seed / 10)}
        runs += [replicate("baseline", seed, metrics=own), replicate("mc_dropout,K=10", seed, metrics=slow)]
    verdicts = by_id(judge(Study("lm.samples", tuple(runs)), Question.of(find_sweep("lm.samples"))))
    ratio, statement = (
        verdicts["lm.table5_2.mc_dropout.10.slowdown"],
        "lm.samples.mc_dropout,K=10@test.above.baseline.perplexity",
    )
    assert ratio.ours and ratio.ours.mean == pytest.approx(13.3)
    assert (ratio.finding is Finding.reproduced) == is_thesis
    assert is_thesis or f"here it is {macs:,}" in ratio.reason
    assert verdicts["lm.baseline"].finding is not Finding.worse
    assert verdicts[statement].finding is Finding.reproduced
    alone = Study("lm.samples", tuple(run for run in runs if run.condition != "baseline"))
    unknown = by_id(judge(alone, Question.of(find_sweep("lm.samples"))))["lm.table5_2.mc_dropout.10"]
    assert unknown.finding is Finding.not_comparable and "will tell" in unknown.reason


def test_a_small_size_is_comparable_with_nothing() -> None:
    question = Question.of(find_sweep(SWEEP, smoke=True))
    verdicts = judge(Study(f"{SWEEP}.smoke", tuple(replicates("train_stochastic"))), question)
    assert verdicts and {verdict.finding for verdict in verdicts} == {Finding.not_comparable}


def test_of_a_sweep_of_ones_own_nothing_is_published() -> None:
    question = Question("mine.sweep", "", (), "", "welch", (1,), {})
    assert judge(Study("mine.sweep", ()), question) == ()
