"""Claims by sweep, and published rows as points."""

import pytest

from orchestrator.published.find import claims_of
from search_spaces.claim import StatementClaim


def test_the_small_size_has_the_claims_of_the_whole() -> None:
    assert claims_of("lm.samples.smoke") == claims_of("lm.samples")


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
        ("lm.step_size", "perplexity@test of eq44,step=5", "below", "perplexity@test of baseline"),
        ("lm.step_size", "perplexity@test of mc_dropout,step=0.0001", "above", "perplexity@test of baseline"),
        ("lm.samples", "perplexity@test of ensemble,K=25", "above", "perplexity@test of ensemble,K=10"),
        (
            "lm.samples",
            "eval_tokens_per_s@test of mc_dropout,K=50",
            "below",
            "eval_tokens_per_s@test of mc_dropout,K=25",
        ),
        ("lm.ablation", "perplexity@ensemble_fixed of baseline", "below", "perplexity@test of baseline"),
    ],
)
def test_a_statement_is_there(sweep: str, left: str, relation: str, right: str | float) -> None:
    found = [claim for claim in claims_of(sweep) if isinstance(claim, StatementClaim)]
    sides = [(c.left.text, c.relation, c.right if isinstance(c.right, float) else c.right.text) for c in found]
    assert (left, relation, right) in sides


def test_no_worse_has_a_margin_and_less_has_none() -> None:
    margins = {claim.text: claim.margin for claim in claims_of("asr.table2_timit") if isinstance(claim, StatementClaim)}
    assert margins["Surprisal routing errs no more than big only."] == 0.5
    assert margins["Surprisal routing errs less than random routing."] == 0
