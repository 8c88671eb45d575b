"""A study held against what was published of its sweep."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.published.compound_verdict import (
    CompoundTest,
    front_parts,
    front_test,
    joint_test,
    spread_test,
    trend_test,
)
from orchestrator.published.places import condition_of, left_out, obstacle, reported, values
from orchestrator.published.statement_verdict import StatementTest, every_test, is_paired, statement_test
from orchestrator.published.verdict import Finding, Verdict, number_verdict
from orchestrator.results.improving import change_of
from orchestrator.results.over_items import Place as Side
from orchestrator.results.over_items import over_items
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.results.tied import hides_noise
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import NONE, Interval, summarise
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
    verdicts = []
    for look in found:
        verdict = look if isinstance(look, Verdict) else look.verdict(next(adjusted), num_tests)
        verdict = _settled(verdict, study, question, lambda part: _compared(part, study, question))
        notes = [left_out(verdict.claim, study, question)]
        is_shown = verdict.finding is Finding.reproduced
        # where several things were claimed at once and one is contradicted, the others say nothing of that
        parts = verdict.claim.parts if isinstance(verdict.claim, JointClaim) and is_shown else [verdict.claim]
        if is_shown or verdict.finding is Finding.worse:
            notes += [
                _over_items(part, is_shown, study, question) for part in parts if isinstance(part, StatementClaim)
            ]
        verdicts.append(replace(verdict, reason=" ".join(filter(None, (verdict.reason, *notes)))))
    return tuple(verdicts)


def statement_p_values(study: Study, question: Question) -> list[float]:
    """The p-values of the statements that are tested, not adjusted; NaN where a test says nothing."""
    return _p_values([_first_look(claim, study, question) for claim in question.claims])


def _p_values(found: Sequence[Verdict | Tested]) -> list[float]:
    return [one.p for one in found if not isinstance(one, Verdict)]


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
    right = values(claim.right, study, question) if isinstance(claim.right, Place) else claim.right
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


def _settled(verdict: Verdict, study: Study, question: Question, test: Callable[[StatementClaim], object]) -> Verdict:
    """The verdict; INCONCLUSIVE where a difference that it rests on leaves its interval with a tenth more of training.

    Only conditions that still got better when training ended are taken to go on, by their slope of validation of the
    same metric (`change_of`); what has none, such as a cost, stays.

    Args:
        test: gives the test of a part of a claim that is made of several.
    """
    if verdict.finding in (Finding.inconclusive, Finding.not_comparable) or not study.validations.curves:
        return verdict
    for left, right, difference, interval in _differences(verdict, test):
        moved = _change(left, study, question)
        moved -= _change(right, study, question) if isinstance(right, Place) else 0.0
        after = difference + moved
        if moved and not interval.low <= after <= interval.high:
            ends = f"out of its interval ({interval.low:.4g} to {interval.high:.4g})"
            reason = (
                "Training was stopped while it still improved: a tenth more would take the difference from "
                f"{difference:.4g} to {after:.4g}, {'and it has no spread' if math.isnan(interval.low) else ends}. "
                f"As trained: {verdict.finding.value}. {verdict.reason}"
            )
            return replace(verdict, finding=Finding.inconclusive, reason=reason, seeds_needed=None)
    return verdict


def _differences(
    verdict: Verdict, test: Callable[[StatementClaim], object]
) -> Iterator[tuple[Place, Place | float, float, Interval]]:
    """The differences of means that a verdict rests on: left, right (a place or a number), difference, interval."""
    claim, own = verdict.claim, (verdict.difference, verdict.interval)
    match claim:
        case NumberClaim():
            yield claim.place, claim.published.mean, *own
        case StatementClaim():
            if claim.of == "mean":
                yield claim.left, claim.right, *own
        case TrendClaim():
            yield claim.places[-1], claim.places[0], *own
        case JointClaim() | FrontClaim():
            every = claim.parts if isinstance(claim, JointClaim) else front_parts(claim)
            for part in every:
                found = test(part)
                if isinstance(found, StatementTest) and part.of == "mean":
                    yield part.left, part.right, found.difference.value, found.difference.interval()


def _over_items(claim: StatementClaim, is_shown: bool, study: Study, question: Question) -> str:
    """Whether what a comparison of errors came to holds for other test items too, as a sentence.

    Empty where that is not known: of other than means of one metric, or where items of some seeds were not kept.

    Args:
        is_shown: the claim, not its opposite.
    """
    left, right = claim.left, claim.right
    if not isinstance(right, Place) or claim.of != "mean" or left.over or right.over:
        return ""
    if (left.metric, left.scale) != (right.metric, right.scale):
        return ""
    ours, theirs = (values(place, study, question) for place in (left, right))
    pairs = is_paired(claim, ours, theirs, question.test)
    a, b = (Side(place.text, condition_of(place, question), place.evaluation) for place in (left, right))
    found = next((one for one in over_items(study, a, b, pairs) if one.metric == left.metric), None)
    if found is None or not found.is_whole:
        return ""
    level = 0.9 if claim.relation == "same" and is_shown else 0.95  # as two one-sided tests at 5 % have it
    low, high = (bound * left.scale for bound in found.both.interval(level))
    ends = {"below": (claim.margin,), "above": (-claim.margin,), "same": (-claim.margin, claim.margin)}
    is_open = any(low < end < high for end in ends[claim.relation])
    return (
        f"Over seeds and {found.num_groups:,} groups of test items {left.text} less {right.text} is {low:.4g} to "
        f"{high:.4g} ({100 * level:.0f} %, for this comparison alone), so this "
        f"{'is not shown for other test items' if is_open else 'holds for other test items too'}."
    )


def _change(place: Place, study: Study, question: Question) -> float:
    """By how much a tenth more of training would move a place's number, in the published unit; 0 for a ratio."""
    condition = condition_of(place, question)
    if place.over is not None or condition not in study.conditions:
        return 0.0
    found = change_of(study, condition, place.metric, place.evaluation)
    return 0.0 if math.isnan(found) else found * place.scale
