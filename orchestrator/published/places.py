"""Where the numbers of a claim are in a study, and whether they are of what was published."""

import difflib
import math
from collections.abc import Iterator, Mapping

from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from orchestrator.results.where import is_same
from search_spaces.claim import Claim, JointClaim, NumberClaim, Place, Setting, sentence


def values(place: Place, study: Study, question: Question) -> dict[int, float]:
    """The finite numbers at `place` by seed, of complete replicates, in the published unit."""
    return {seed: value for seed, value in reported(place, study, question).items() if math.isfinite(value)}


def reported(place: Place, study: Study, question: Question) -> dict[int, float]:
    """All numbers at `place` by seed, of complete replicates, in the published unit; a ratio to 0 is not finite."""
    found = {
        replicate.seed: replicate.metrics[place.column] * place.scale
        for replicate in _complete(study, place, question)
        if place.column in replicate.metrics
    }
    if place.over is None:
        return found
    below = reported(place.over, study, question)
    return {
        seed: value / below[seed] if below[seed] else math.copysign(math.inf, value) if value else math.nan
        for seed, value in found.items()
        if seed in below
    }


def left_out(claim: Claim, study: Study, question: Question) -> str:
    """How many seeds of the claim's ratios have nothing below the line, as a sentence; empty where none has.

    What is said of every replicate counts a ratio to 0 as reported, so none is left out of it.
    """
    found, parts = [], claim.parts if isinstance(claim, JointClaim) else [claim]
    places = [place for one in parts if getattr(one, "of", "") != "every" for place in one.places]
    for below in (part for place in places for part in place.parts[1:]):
        num_seeds = sum(value == 0 for value in reported(below, study, question).values())
        if num_seeds:
            seeds = "1 seed" if num_seeds == 1 else f"{num_seeds} seeds"
            found.append(f"Left out: {seeds} whose {below.text} is 0.")
    return " ".join(dict.fromkeys(found))


def obstacle(claim: Claim, study: Study, question: Question) -> str:
    """Why the study is not comparable with what was published, as a sentence; empty where it is."""
    conditions = list(dict.fromkeys(name for place in claim.places for name in place.conditions))
    named = {name: recorded_name(name, question) for name in conditions}
    recorded = [given for given in named.values() if given]
    found = list(_differences(claim.setting, [question.configs[given] for given in recorded]))
    for name in (name for name, given in named.items() if not given):
        if several := question.names_of(name):
            there = f"{name!r} is there with several settings, {' and '.join(several)}"
            found.append(f"{there}; `ponderay report SWEEP --where PATH=VALUE` shows one")
        else:
            found.append(f"there is no condition {name!r}")
    # Settings that the sweep was given by hand, and that are neither required nor free.
    allowed = {*claim.setting.requires, *claim.setting.any_of, *claim.setting.free}
    changes = dict.fromkeys(change for given in recorded for change in question.settings.get(given, {}).items())
    found += [f"it was run with {path}={text}" for path, text in changes if path not in allowed]
    if found:
        others = f" (differences in all: {len(found)})" if len(found) > 1 else ""
        origin = claim.published.origin if isinstance(claim, NumberClaim) else "published"
        return f"{origin.capitalize()} {claim.setting.title}; here {found[0]}{others}."
    if isinstance(claim, NumberClaim) and claim.bar:
        return sentence(claim.bar)
    if lack := _missing_fact(claim.setting, study, question) or _unknown_column(claim, study, question):
        return lack
    numbers = [value for place in claim.places for value in values(place, study, question).values()]
    if not numbers or math.isfinite(max(numbers) - min(numbers)):
        return ""
    ends = f"{min(numbers):.3g} to {max(numbers):.3g}"
    return f"Numbers from {ends} have no difference below 1.8e308, the largest number."


def _differences(setting: Setting, configs: list[Mapping[str, str]]) -> Iterator[str]:
    for path, allowed in ({path: (one,) for path, one in setting.requires.items()} | dict(setting.any_of)).items():
        wanted = " or ".join(allowed)
        for other in dict.fromkeys(config.get(path, "") for config in configs):
            if not any(is_same(other, one) for one in allowed):
                yield f"{path} is {other}, not {wanted}" if other else f"there is no {path}, which is {wanted} there"


def _missing_fact(setting: Setting, study: Study, question: Question) -> str:
    fact = setting.fact
    if fact is None:
        return ""
    published, where = f"Published {setting.title} with {fact.text}", fact.place.text
    found = values(fact.place, study, question)
    if not found:
        return f"{published}; {where} will tell whether it is so here, but is not there yet."
    other = next((value for value in found.values() if abs(value - fact.value) > fact.tolerance), None)
    if other is None:
        return ""
    return f"{published}, which makes {where} {_written(fact.value)}; here it is {_written(other)}."


def _written(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def _unknown_column(claim: Claim, study: Study, question: Question) -> str:
    """What is said where a condition is complete, but no replicate of the study has the claim's metric."""
    known = {column for one in study.replicates if one.state == "complete" for column in one.metrics}
    for part in (part for place in claim.places for part in place.parts):
        if part.column not in known and any(_complete(study, part, question)):
            near = " or ".join(difflib.get_close_matches(part.column, sorted(known), n=2, cutoff=0)) or "no metric"
            return f"No replicate has reported {part.column}, but {near}."
    return ""


def _complete(study: Study, place: Place, question: Question) -> Iterator[Replicate]:
    """The complete replicates of the condition that a place names, recorded or not."""
    condition = condition_of(place, question)
    recorded = study.of(condition) if condition in study.conditions else ()
    return (one for one in recorded if one.state == "complete")


def condition_of(place: Place, question: Question) -> str:
    """The condition that a place names, as it is recorded; its own name where none or several are meant."""
    return recorded_name(place.condition, question) or place.condition


def recorded_name(condition: str, question: Question) -> str | None:
    """The only name that a shipped condition has in the question, plain or with settings; None if none or several."""
    found = question.names_of(condition)
    return found[0] if len(found) == 1 else None
