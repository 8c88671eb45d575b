"""A study held against what was published of its sweep."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.published.compound_test import CompoundTest
from orchestrator.published.compound_verdict import front_test, joint_test
from orchestrator.published.improving import settled
from orchestrator.published.number_verdict import number_verdict
from orchestrator.published.places import left_out, obstacle, reported, values
from orchestrator.published.spread_verdict import spread_test
from orchestrator.published.statement_verdict import StatementTest, every_test, statement_test
from orchestrator.published.trend_verdict import trend_test
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.results.tied import hides_noise
from orchestrator.statistics.intervals import NONE
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import summarise
from search_spaces.claim import Claim, FrontClaim, JointClaim, NumberClaim, Place, StatementClaim, TrendClaim

Tested = StatementTest | CompoundTest


def judge(study: Study, question: Question, beside: Sequence[float] = ()) -> tuple[Verdict, ...]:
    """A verdict on every claim about the question's sweep, in the claims' order; none where nothing is known of it.

    The p-values of all statements that are tested are adjusted together (Holm 1979); numbers are judged one by one.

    Args:
        beside: p-values of other tests that are of the family too.
    """
    found = [_first_look(claim, study, question) for claim in question.claims]
    every = [*_p_values(found), *beside]
    adjusted = iter(holm(every))
    num_tests = sum(not math.isnan(p) for p in every)
    verdicts = [one if isinstance(one, Verdict) else one.verdict(next(adjusted), num_tests) for one in found]
    ended = (settled(one, study, question, lambda part: _compared(part, study, question)) for one in verdicts)
    return tuple(_with_left_out(one, study, question) for one in ended)


def statement_p_values(study: Study, question: Question) -> list[float]:
    """Of the statements that are tested, not adjusted; NaN where a test says nothing."""
    return _p_values([_first_look(claim, study, question) for claim in question.claims])


def _p_values(found: Sequence[Verdict | Tested]) -> list[float]:
    return [one.p for one in found if not isinstance(one, Verdict)]


def _with_left_out(verdict: Verdict, study: Study, question: Question) -> Verdict:
    is_of_every = isinstance(verdict.claim, StatementClaim) and verdict.claim.of == "every"
    note = "" if is_of_every else left_out(verdict.claim, study, question)
    return replace(verdict, reason=f"{verdict.reason} {note}") if note else verdict


def _first_look(claim: Claim, study: Study, question: Question) -> Verdict | Tested:
    """The verdict; of a statement that can be tested, its test."""
    if reason := obstacle(claim, study, question):
        left = values(claim.places[0], study, question)
        ours = summarise(list(left.values())) if left else None
        return Verdict(claim, Finding.not_comparable, ours, math.nan, NONE, math.nan, reason)
    match claim:
        case NumberClaim():
            own = list(values(claim.place, study, question).values())
            has_no_spread = len(own) > 1 and summarise(own).std == 0
            return number_verdict(claim, own, has_no_spread and _hides_noise(claim, study, question))
        case StatementClaim():
            return _compared(claim, study, question)
        case JointClaim():
            return joint_test(claim, lambda part: _compared(part, study, question))
        case FrontClaim():
            return front_test(claim, lambda part: _compared(part, study, question))
        case TrendClaim():
            return trend_test(claim, [values(place, study, question) for place in claim.places])


def _compared(claim: StatementClaim, study: Study, question: Question) -> Verdict | Tested:
    right = _right(claim, study, question)
    if claim.of == "every" and not isinstance(right, Mapping):
        return every_test(claim, reported(claim.left, study, question), right)
    left = values(claim.left, study, question)
    if claim.of == "spread" and isinstance(right, Mapping):
        return spread_test(claim, left, right, question.test)
    found = statement_test(claim, left, right, question.test)
    if isinstance(found, Verdict) or found.tie or not math.isnan(found.p) or not _hides_noise(claim, study, question):
        return found
    return found.uncertain()


def _hides_noise(claim: Claim, study: Study, question: Question) -> bool:
    """Whether one of its metrics has equal values in conditions that vary, so that no spread may be chance."""
    columns = {part.column for place in claim.places for part in place.parts}
    return any(column.partition("@")[0] in question.tied or hides_noise(study, [column]) for column in columns)


def _right(claim: StatementClaim, study: Study, question: Question) -> Mapping[int, float] | float:
    return values(claim.right, study, question) if isinstance(claim.right, Place) else claim.right
