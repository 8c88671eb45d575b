"""Holm's correction in bundles: one family, and in those of earlier formats one for each table."""

import pytest

from orchestrator.report.answers import answer
from orchestrator.report.bundle.verify import verify
from orchestrator.statistics.significance import holm
from tests.orchestrator.report.bundle.changed import changed
from tests.orchestrator.report.bundle.test_verify import CLAIM, with_claims
from tests.orchestrator.report.studies import question, small_study


def test_comparisons_and_claims_are_one_family_from_format_6_on(tmp_path):
    """The claim's p is adjusted for the eight comparisons too."""
    alone, together = (answer(small_study(), question(claims=(CLAIM,)), beside) for beside in (None, ()))
    assert len(together.comparisons) == 8
    raw = [one.p for one in alone.comparisons] + [alone.verdicts[0].p]
    assert [one.p_holm for one in together.comparisons] + [together.verdicts[0].p] == pytest.approx(holm(raw))
    assert "p adjusted for 9 tests" in together.verdicts[0].reason
    found = verify(changed(with_claims(tmp_path, (CLAIM,), None), lambda members: 6))
    assert {one.column for one in found.differences} >= {"p_holm", "p"}
