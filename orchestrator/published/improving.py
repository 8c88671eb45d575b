"""A verdict that one more tenth of training would overturn is none yet."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from orchestrator.published.compound_verdict import front_parts
from orchestrator.published.places import recorded_name
from orchestrator.published.statement_verdict import StatementTest
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.improving import change_of
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.statistics.intervals import Interval
from search_spaces.claim import FrontClaim, JointClaim, NumberClaim, Place, StatementClaim, TrendClaim


@dataclass(frozen=True)
class Compared:
    """A difference that a verdict rests on: `left` minus `right`, or minus a number."""

    left: Place
    right: Place | float
    difference: float
    interval: Interval


def settled(verdict: Verdict, study: Study, question: Question, test: Callable[[StatementClaim], object]) -> Verdict:
    """The verdict; INCONCLUSIVE where a difference that it rests on leaves its interval with a tenth more of training.

    Only conditions that still got better when training ended are taken to go on, by their slope of validation of the
    same metric (`change_of`); what has none, such as a cost, stays.

    Args:
        test: gives the test of a part of a claim that is made of several.
    """
    if verdict.finding in (Finding.inconclusive, Finding.not_comparable) or not study.validations.curves:
        return verdict
    for one in _compared(verdict, test):
        moved = _change(one.left, study, question)
        moved -= _change(one.right, study, question) if isinstance(one.right, Place) else 0.0
        after = one.difference + moved
        if moved and not one.interval.low <= after <= one.interval.high:
            reason = (
                "Training was stopped while it still improved: a tenth more would take the difference from "
                f"{one.difference:.4g} to {after:.4g}, out of its interval ({one.interval.low:.4g} to "
                f"{one.interval.high:.4g}). As trained: {verdict.finding.value}. {verdict.reason}"
            )
            return replace(verdict, finding=Finding.inconclusive, reason=reason, seeds_needed=None)
    return verdict


def _compared(verdict: Verdict, test: Callable[[StatementClaim], object]) -> Iterator[Compared]:
    """The differences of means that a verdict rests on, with intervals."""
    claim, own = verdict.claim, (verdict.difference, verdict.interval)
    match claim:
        case NumberClaim():
            yield Compared(claim.place, claim.published.mean, *own)
        case StatementClaim():
            if claim.of == "mean":
                yield Compared(claim.left, claim.right, *own)
        case TrendClaim():
            yield Compared(claim.places[-1], claim.places[0], *own)
        case JointClaim() | FrontClaim():
            every = claim.parts if isinstance(claim, JointClaim) else front_parts(claim)
            for part in every:
                found = test(part)
                if isinstance(found, StatementTest) and part.of == "mean":
                    yield Compared(part.left, part.right, found.difference.value, found.difference.interval())


def _change(place: Place, study: Study, question: Question) -> float:
    """Of a ratio nothing is foreseen."""
    condition = recorded_name(place.condition, question) or place.condition
    if place.over is not None or condition not in study.conditions:
        return 0.0
    found = change_of(study, condition, place.metric, place.evaluation)
    return 0.0 if math.isnan(found) else found * place.scale
