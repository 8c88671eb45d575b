"""A study held against what was published of its sweep."""

import math
from collections.abc import Mapping

from orchestrator.published.number_verdict import number_verdict
from orchestrator.published.places import obstacle, values
from orchestrator.published.statement_verdict import StatementTest, statement_test
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.statistics.intervals import NONE
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import summarise
from search_spaces.claim import Claim, NumberClaim, Place, StatementClaim


def judge(study: Study, question: Question) -> tuple[Verdict, ...]:
    """A verdict on every claim about the question's sweep, in the claims' order; none where nothing is known of it.

    The p-values of all statements that are tested are adjusted together (Holm 1979); numbers are judged one by one.
    """
    found = [_first_look(claim, study, question) for claim in question.claims]
    tests = [one for one in found if isinstance(one, StatementTest)]
    adjusted = iter(holm([test.p for test in tests]))
    num_tests = sum(not math.isnan(test.p) for test in tests)
    return tuple(one.verdict(next(adjusted), num_tests) if isinstance(one, StatementTest) else one for one in found)


def _first_look(claim: Claim, study: Study, question: Question) -> Verdict | StatementTest:
    """The verdict; of a statement that can be tested, its test."""
    left = values(claim.places[0], study, question)
    if reason := obstacle(claim, study, question):
        ours = summarise(list(left.values())) if left else None
        return Verdict(claim, Finding.not_comparable, ours, math.nan, NONE, math.nan, reason)
    if isinstance(claim, NumberClaim):
        return number_verdict(claim, list(left.values()))
    return statement_test(claim, left, _right(claim, study, question), question.test)


def _right(claim: StatementClaim, study: Study, question: Question) -> Mapping[int, float] | float:
    return values(claim.right, study, question) if isinstance(claim.right, Place) else claim.right
