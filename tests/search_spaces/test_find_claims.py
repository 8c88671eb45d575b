"""Claims by sweep, and published rows as points."""

import math
from collections.abc import Callable, Iterator

import pytest

from search_spaces.claim import Place, Published, Setting, Source, StatementClaim
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep
from tests.integration.sweeps import tiny
from trainables.errors import InputError


def test_the_small_size_has_the_claims_of_the_whole() -> None:
    assert claims_of(find_sweep("lm.samples.smoke")) == claims_of(find_sweep("lm.samples"))


@pytest.mark.parametrize(
    ("sweep", "left", "relation", "right"),
    [
        ("asr.table2_timit", "per@stochastic of surprisal", "below", "per@stochastic of random"),
        ("asr.table2_mini_librispeech", "per@stochastic of surprisal", "below", "per@stochastic of random"),
        ("asr.table2_timit", "per@stochastic of surprisal", "below", "per@stochastic of always_big"),
        (
            "asr.table2_timit",
            "paper_flops_per_frame@stochastic of surprisal",
            "below",
            "paper_flops_per_frame@stochastic of always_big",
        ),
        ("asr.model2", "per@stochastic of always_small", "above", "per@stochastic of always_big"),
        (
            "asr.lambda_grid_timit",
            "per@stochastic of released,lambda=0.0001",
            "above",
            "per@stochastic of released,lambda=0.001",
        ),
        ("asr.deterministic", "per@stochastic of train_deterministic", "above", "per@stochastic of train_stochastic"),
        ("act.tau_parity", "sequence_error@test of tau=0.03", "below", 5.0),
        ("act.tau_logic_short", "sequence_error@test of tau=0.001", "below", "sequence_error@test of no_act"),
        ("act.tau_logic", "sequence_error@test of tau=0.002", "same", 0.0),
        ("act.tau_text", "bits_per_character@test of tau=0.01", "above", "bits_per_character@test of no_act"),
        (
            "act.tau_text_short",
            "mean_updates_space@test of tau=0.001",
            "above",
            "mean_updates_letter@test of tau=0.001",
        ),
        ("lm.step_size", "perplexity@test of eq44,step=5", "above", "perplexity@test of baseline"),
        ("lm.step_size", "perplexity@test of mc_dropout,step=0.0001", "above", "perplexity@test of baseline"),
        ("lm.samples", "perplexity@test of ensemble,K=25", "above", "perplexity@test of ensemble,K=10"),
        (
            "lm.samples",
            "eval_tokens_per_s@test of mc_dropout,K=50",
            "below",
            "eval_tokens_per_s@test of mc_dropout,K=25",
        ),
        ("lm.ablation", "perplexity@ensemble_fixed of baseline", "above", "perplexity@test of baseline"),
    ],
)
def test_a_statement_is_there(sweep: str, left: str, relation: str, right: str | float) -> None:
    found = [claim for claim in claims_of(find_sweep(sweep)) if isinstance(claim, StatementClaim)]
    sides = [(c.left.text, c.relation, c.right if isinstance(c.right, float) else c.right.text) for c in found]
    assert (left, relation, right) in sides


def test_no_worse_has_a_margin_and_less_has_none() -> None:
    margins = {
        claim.text: claim.margin
        for claim in claims_of(find_sweep("asr.table2_timit"))
        if isinstance(claim, StatementClaim)
    }
    assert margins["Surprisal routing errs no more than big only."] == 0.5
    assert margins["Surprisal routing errs less than random routing."] == 0


def test_a_sweep_that_names_no_claims_has_none() -> None:
    assert claims_of(tiny({"a": {}})) == ()


def of_this_module() -> Iterator[object]:
    yield StatementClaim("x", ("tiny.sweep",), "A.", Place("a", "e"), "below", 1.0, Source("p", "t"), Setting("here"))


def not_claims() -> list[str]:
    return ["a errs less"]


def of_letters() -> Iterator[object]:
    """Whose sweep would be any part of the text."""
    yield StatementClaim("x", "tiny.sweep", "A.", Place("a", "e"), "below", 1.0, Source("p", "t"), Setting("here"))  # type: ignore[arg-type]


def test_a_function_at_an_import_path_yields_them() -> None:
    (claim,) = claims_of(tiny({"a": {}}, claims=f"{__name__}:of_this_module"))
    assert claim.id == "x"
    assert claims_of(tiny({"a": {}}, name="tiny.other", claims=f"{__name__}:of_this_module")) == ()


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ("claims.json", "tiny.sweep: `claims` must be `package.module:function` or the path of a .toml file, but got"),
        (
            "no_such_package:claims",
            "tiny.sweep: `claims` 'no_such_package:claims' cannot be imported: ModuleNotFoundError: No module named",
        ),
        (
            f"{__name__}:nothing",
            f"tiny.sweep: `claims` must name a function, but {__name__} has no function 'nothing'.",
        ),
        (f"{__name__}:not_claims", f"tiny.sweep: {__name__}:not_claims must yield claims, but yielded 'a errs less'."),
        (f"{__name__}:of_letters", "tiny.sweep: `sweeps` of a claim must be a list, but "),
    ],
)
def test_what_names_no_claims_is_one_sentence(claims: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        claims_of(tiny({"a": {}}, claims=claims))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Published(math.nan), "The mean of a claim must be a finite number, but got nan."),
        (lambda: Published(1.0, -1.0, 2), "The std of a claim must be a finite number from 0, but got -1.0."),
        (lambda: Published(1.0, 1.0, 0), "The n of a claim must be a finite number from 1, but got 0."),
        (lambda: Place("a", "e", scale=0.0), "The scale of a claim must be above 0, but got 0.0."),
    ],
)
def test_a_claim_of_impossible_numbers_cannot_be_made(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as error:
        build()
    assert str(error.value) == message
