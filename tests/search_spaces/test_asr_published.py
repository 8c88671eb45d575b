"""The surprisal paper's figures and sentences, each held with the paper's own number."""

import pytest

from search_spaces.asr import SWEEPS
from search_spaces.claim import NumberClaim, Place, StatementClaim, TrendClaim
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep
from search_spaces.sources import claims_in
from trainables.config import flatten

MODELS = ("model1", "model2", "model3")
CLAIMS = claims_in("asr")


def number(identity: str) -> NumberClaim:
    (found,) = (claim for claim in CLAIMS if isinstance(claim, NumberClaim) and claim.id == identity)
    return found


def printed(identity: str) -> tuple[float, float | None, int | None]:
    of = number(identity).published
    return of.mean, of.std, of.n


def text_of(side: Place | float) -> str:
    return side.text if isinstance(side, Place) else f"{side:g}"


def said(sweep: str) -> dict[tuple[str, str, str], StatementClaim]:
    """The statements about a sweep by left side, relation and right side."""
    found = [claim for claim in claims_of(find_sweep(sweep)) if isinstance(claim, StatementClaim)]
    return {(claim.left.text, claim.relation, text_of(claim.right)): claim for claim in found}


def test_every_place_is_in_its_sweeps_and_every_identity_is_one_claims() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 230
    places = {(sweep, place) for claim in CLAIMS for sweep in claim.sweeps for place in claim.places}
    for name, place in places:
        sweep = find_sweep(name)
        names = [one.name for one in sweep.config(sweep.condition(place.condition), 1).evaluations]
        assert place.evaluation in ("", *names), (name, place)


@pytest.mark.parametrize("model", MODELS)
def test_appendix_a_is_about_timit(model: str) -> None:
    """ "We re-ran the ablation experiment on TIMIT" with "mean 0.65 for p_big, instead of 0.5"."""
    config = find_sweep(f"asr.{model}").base
    assert (config.data.kind, config.data.split.kind, config.controller.mu) == ("timit", "standard", 0.65)
    claims = claims_of(find_sweep(f"asr.{model}"))
    of_tables = [c for c in claims if isinstance(c, NumberClaim) and "Appendix A, Model" in c.source.place]
    assert len(of_tables) == 12, "6 rows of PER and FLOPs in each of tables 5 to 7"
    assert {claim.setting.requires["data.kind"] for claim in claims} == {"timit"}


@pytest.mark.parametrize("model", MODELS)
def test_on_mini_librispeech_appendix_a_is_a_variant_without_published_numbers(model: str) -> None:
    variant = find_sweep(f"asr.{model}_mini_librispeech")
    assert variant.base.data.kind == "librispeech" and claims_of(variant) == ()
    assert f"{model}_timit" not in SWEEPS, "one name for one sweep"


@pytest.mark.parametrize("model", MODELS)
def test_appendix_a_says_that_surprisal_in_testing_improves(model: str) -> None:
    """ "The results show that using surprisal for effort allocation at test time improves PER": less, not "no more"."""
    (claim,) = (
        one
        for left_relation_right, one in said(f"asr.{model}").items()
        if left_relation_right
        == (
            "per@surprisal of ar,random",
            "below",
            "per@random of ar,random",
        )
    )
    assert claim.margin == 0 and "no more" not in claim.text


@pytest.mark.parametrize(
    ("identity", "mean", "std"),
    [
        ("asr.appendix_c.mini_librispeech.nn.train_loss", 69.96, 0.41),
        ("asr.appendix_c.mini_librispeech.ny.train_loss", 69.72, 0.43),
        ("asr.appendix_c.mini_librispeech.yn.train_loss", 73.76, 0.31),
        ("asr.appendix_c.mini_librispeech.yy.train_loss", 74.30, 0.52),
        ("asr.appendix_c.mini_librispeech.nn.test_loss", 62.80, 0.76),
        ("asr.appendix_c.mini_librispeech.ny.test_loss", 63.69, 0.36),
        ("asr.appendix_c.mini_librispeech.yn.test_loss", 62.15, 0.60),
        ("asr.appendix_c.mini_librispeech.yy.test_loss", 62.18, 0.64),
        ("asr.appendix_c.timit.nn.train_loss", 16.19, 0.14),
        ("asr.appendix_c.timit.ny.train_loss", 16.21, 0.08),
        ("asr.appendix_c.timit.yn.train_loss", 17.58, 0.20),
        ("asr.appendix_c.timit.yy.train_loss", 17.55, 0.26),
        ("asr.appendix_c.timit.nn.test_loss", 24.61, 0.52),
        ("asr.appendix_c.timit.ny.test_loss", 25.11, 0.24),
        ("asr.appendix_c.timit.yn.test_loss", 23.88, 0.31),
        ("asr.appendix_c.timit.yy.test_loss", 24.04, 0.22),
    ],
)
def test_tables_8_and_9_print_losses_with_their_spread(identity: str, mean: float, std: float) -> None:
    assert printed(identity) == (mean, std, 5)
    assert "no spread" not in number(identity).margin_reason


@pytest.mark.parametrize(("corpus", "flops"), [("mini_librispeech", 6.43), ("timit", 6.41)])
@pytest.mark.parametrize("flags", ["nn", "ny", "yn", "yy"])
def test_tables_8_and_9_print_one_cost_for_all_rows(corpus: str, flops: float, flags: str) -> None:
    claim = number(f"asr.appendix_c.{corpus}.{flags}.flops")
    assert (claim.published.mean, claim.place.metric, claim.objective) == (
        flops,
        "released_flops_per_frame",
        "macs_per_frame",
    )
    assert claim.row == number(f"asr.appendix_c.{corpus}.{flags}.per").row


@pytest.mark.parametrize(("end", "mean"), [("per", 23.97), ("flops", 6.99)])
def test_lambda_of_a_ten_thousandth_stands_in_section_4_3(end: str, mean: float) -> None:
    """ "when lambda is set to 0.0001 instead of 0.001, its PER and FLOPs for TIMIT increase to 23.97% and 6.99M"."""
    claim = number(f"asr.appendix_d.1e-4.{end}")
    assert claim.published.mean == mean and claim.source.place.startswith("Section 4.3")
    for statement in said("asr.lambda_grid_timit").values():
        assert statement.source.place.startswith("Section 4.3")


@pytest.mark.parametrize(("corpus", "table"), [("timit", "Table 3"), ("mini_librispeech", "Table 4")])
def test_the_small_network_alone_stands_in_the_ablations(corpus: str, table: str) -> None:
    assert number(f"asr.table2.{corpus}.small_only.per").source.place.startswith(f"{table}, ")
    (claim,) = (c for c in said(f"asr.table2_{corpus}").values() if c.text == "Small only errs more than big only.")
    assert claim.source.place.startswith(f"{table}, ")


def test_trained_without_surprisal_its_use_in_testing_helps_two_of_three() -> None:
    """Section 4.4: "slightly better" on Mini-LibriSpeech (26.16 vs. 26.04) and on TIMIT without AR features (22.81 vs.

    22.49), "but not for TIMIT when using autoregressive features (both 20.52%)".
    """
    better = {
        "asr.ablation_mini_librispeech": ("per@surprisal of ar,random", "below", "per@random of ar,random"),
        "asr.ablation_timit": ("per@surprisal of no_ar,random", "below", "per@random of no_ar,random"),
    }
    for sweep, sides in better.items():
        assert said(sweep)[sides].margin == 0
    alike = said("asr.ablation_timit")["per@surprisal of ar,random", "same", "per@random of ar,random"]
    assert alike.margin == 0.5 and printed("asr.table3.y--.per")[0] == printed("asr.table3.y-y.per")[0] == 20.52


def test_autoregressive_features_help_across_all_experiments() -> None:
    """Section 4.4, of the four pairs of rows in Table 3."""
    found = said("asr.ablation_timit")
    for training in ("random", "surprisal"):
        for testing in ("random", "surprisal"):
            assert (f"per@{testing} of ar,{training}", "below", f"per@{testing} of no_ar,{training}") in found


@pytest.mark.parametrize("sweep", ["asr.ablation_timit", "asr.ablation_mini_librispeech"])
def test_figure_2_is_about_validation(sweep: str) -> None:
    claim = said(sweep)["valid_per@surprisal of ar,surprisal", "below", "valid_per@random of ar,random"]
    assert claim.source.place.startswith("Figure 2")


def test_appendix_b_raises_the_bias_by_four_beside_each_network_alone() -> None:
    """ "from (average bias value learned when training the controller) to (that value + 4) in uniform increments"."""
    sweep = find_sweep("asr.controller_bias")
    raises = [one.bias_raise for one in sweep.config(sweep.condition("surprisal"), 1).evaluations]
    assert (raises[0], raises[-1]) == (0, 4)
    assert raises == pytest.approx([4 * step / (len(raises) - 1) for step in range(len(raises))])
    for alone in ("always_small", "always_big"):
        assert [one.name for one in sweep.config(sweep.condition(alone), 1).evaluations] == ["stochastic"]


def test_what_appendix_b_says_is_held_on_mini_librispeech() -> None:
    """ "Using the big network more does decrease PER up to a point", then it "begins to increase"."""
    found = said("asr.controller_bias")
    assert set(found) == {("per@bias_9 of surprisal", "above", "per@stochastic of always_big")}
    trends = [claim for claim in claims_of(find_sweep("asr.controller_bias")) if isinstance(claim, TrendClaim)]
    columns = [(claim.relation, [place.column for place in claim.places]) for claim in trends]
    assert columns == [
        ("rises", [f"routing_rate@bias_{step}" for step in range(10)]),
        ("falls", [f"per@bias_{step}" for step in range(5)]),
        ("rises", [f"per@bias_{step}" for step in range(5, 10)]),
    ]
    places = {claim.source.place for claim in (*found.values(), *trends)}
    assert places == {"Appendix B and Figure 3, Mini-LibriSpeech"}
    assert said("asr.controller_bias_timit") == {}
    assert number("asr.table2.mini_librispeech.big_only.per.controller_bias").published.mean == 25.69


PUBLISHED = [name for name in SWEEPS if claims_of(find_sweep(f"asr.{name}"))]


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in ("demo", "laptop_librispeech")])
def test_every_error_rate_is_compared_as_the_sweep_is_shipped(name: str) -> None:
    """Data, labels, sizes and the decoder of validation are those that the claims ask for."""
    sweep = find_sweep(f"asr.{name}")
    configs = {one.name: flatten(sweep.config(one, 1)) for one in sweep.conditions}
    for claim in claims_of(sweep):
        for place in claim.places:
            config = {path: str(value) for path, value in configs[place.condition].items()}
            assert {path: config.get(path) for path in claim.setting.requires} == dict(claim.setting.requires), claim.id
            for path, allowed in claim.setting.any_of.items():
                assert config[path] in allowed, claim.id


def test_labels_that_differ_from_the_papers_are_said_in_a_sentence() -> None:
    """Mini-LibriSpeech: "we used the Montreal Forced Aligner to obtain label sequences from the transcripts"."""
    claim = number("asr.table2.mini_librispeech.surprisal.per")
    assert claim.setting.any_of == {"data.phones": ("dictionary_spn", "textgrid", "released_csv")}
    assert "an aligner" in claim.note and "dictionary" in claim.note and "data.phones=textgrid" in claim.note
    assert number("asr.table2.timit.surprisal.per").setting.any_of == {}


def test_validation_decodes_as_the_test_does_with_a_beam_of_ten() -> None:
    """ "The test set is decoded using a beam search of width 10"; decoding made validation slow, so it is one too."""
    for name in ("table2_timit", "table2_mini_librispeech", "model1", "controller_bias"):
        decoding = find_sweep(f"asr.{name}").base.validation_decoding
        assert (decoding.kind, decoding.width) == ("beam", 10)
    of_error = number("asr.table2.timit.surprisal.per").setting.requires
    assert (of_error["validation_decoding.kind"], of_error["validation_decoding.width"]) == ("beam", "10")
    assert "validation_decoding.kind" not in number("asr.table2.timit.surprisal.flops").setting.requires


@pytest.mark.parametrize("sweep", ["asr.deterministic", "asr.deterministic_timit"])
def test_appendix_c_says_that_deterministic_tests_err_more_at_no_higher_loss(sweep: str) -> None:
    """ "deterministic execution at test time causes a small increase in PER", "not reflected in the test loss"."""
    found, net = said(sweep), "train_stochastic"
    assert found[f"per@deterministic of {net}", "above", f"per@stochastic of {net}"].margin == 0
    loss = found[f"test_loss_nats@deterministic of {net}", "below", f"test_loss_nats@stochastic of {net}"]
    assert loss.margin == 0.5 and "nat" in loss.margin_reason
