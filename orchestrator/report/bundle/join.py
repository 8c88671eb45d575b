"""Puts what bundles hold beside a study, where parts of one sweep ran on machines that share no store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.records import read_provenance, read_question, read_study
from orchestrator.report.bundle.verify import changed_members, check_names
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Sweep
from trainables.config import key_content
from trainables.errors import InputError

RANK: Final = {"complete": 0, "running": 1, "stopped": 2, "failed": 3}
"""Of two records of a replicate the lower one counts."""


@dataclass(frozen=True)
class Part:
    """What a bundle holds of a sweep."""

    file: Path
    study: Study
    question: Question
    provenance: StudyProvenance


def read_part(file: Path, sweep: Sweep) -> Part:
    """A bundle of `sweep`.

    Raises:
        InputError: if it is none, is not what its manifest says, or has a condition with other settings; of a search.
    """
    if sweep.search:
        raise InputError(f"{sweep.name} must have listed conditions: trials of two searches cannot be put together.")
    manifest, members = read_bundle(file)
    if changed := list(changed_members(manifest, members)):
        raise InputError(f"{file} must be as its manifest says, but {changed[0].member} differs; `ponderay verify` it.")
    study, question = read_study(members["study.json"]), read_question(members["question.json"])
    check_names(file, manifest, study, question)
    if question.sweep != sweep.name:
        raise InputError(f"{file} must be a bundle of {sweep.name}, but is one of {question.sweep}.")
    _check_settings(file, question, sweep)
    diffs = {
        Path(name).stem: text.decode(errors="replace") for name, text in members.items() if name.startswith("diffs/")
    }
    provenance = read_provenance(members["provenance.json"], diffs)
    return Part(file, study, question, provenance)


def join_studies(study: Study, parts: Sequence[Part]) -> tuple[Study, str]:
    """The replicates of all, each once, and a sentence on where they are from.

    A complete replicate counts before one that is not, then that of `study`, then that of an earlier part.
    """
    found = _by_name(study)
    settings, said = dict(study.settings), []
    for part in parts:
        theirs = _by_name(part.study)
        taken = {name: one for name, one in theirs.items() if _counts(one, found.get(name))}
        num_other = sum(_differs(theirs[name], found[name], part.question) for name in theirs.keys() - taken.keys())
        found |= taken
        settings |= part.question.settings
        said.append(_said(part.file.name, len(taken), len(theirs) - len(taken), num_other))
    order = {name: i for i, name in enumerate(dict.fromkeys(name for part in parts for name in part.question.configs))}
    known = sorted(found.values(), key=lambda one: (order.get(one.condition, len(order)), one.condition, one.seed))
    return replace(study, replicates=tuple(known), settings=settings), " ".join(said)


def join_questions(question: Question, study: Study, parts: Iterable[Part]) -> Question:
    """The question of `study` with the configs that the parts give of conditions that only they have run."""
    of_parts = {name: config for part in parts for name, config in part.question.configs.items()}
    only = {name: config for name, config in of_parts.items() if name not in study.conditions}
    return replace(question, configs={**question.configs, **only})


def join_provenance(provenance: StudyProvenance, parts: Iterable[Part]) -> StudyProvenance:
    """What is known of the origin of all."""
    for part in parts:
        both = {field.name: _both(provenance, part.provenance, field.name) for field in fields(StudyProvenance)}
        provenance = StudyProvenance(**both)
    return provenance


def _by_name(study: Study) -> dict[tuple[str, int], Replicate]:
    return {(one.condition, one.seed): one for one in study.replicates}


def _counts(new: Replicate, known: Replicate | None) -> bool:
    return known is None or RANK[new.state] < RANK[known.state]


def _differs(new: Replicate, known: Replicate, question: Question) -> bool:
    """Whether two complete ones have other values of an objective; speeds always differ."""
    names = [objective.metric for objective in question.objectives]
    mine, other = (
        {name: value for name, value in one.metrics.items() if name.partition("@")[0] in names} for one in (new, known)
    )
    return new.state == known.state == "complete" and mine != other


def _said(name: str, num_taken: int, num_left: int, num_other: int) -> str:
    left = f"; {num_left:,} are known already, {num_other:,} of them with other values of an objective"
    return f"Replicates from {name}: {num_taken:,}{left if num_left else ''}."


def _both(one: StudyProvenance, other: StudyProvenance, field: str) -> Any:
    a, b = getattr(one, field), getattr(other, field)
    return {**b, **a} if isinstance(a, Mapping) else tuple(dict.fromkeys((*a, *b)))


def _check_settings(file: Path, question: Question, sweep: Sweep) -> None:
    """Raises InputError at the first condition that the sweep declares with other values of what its key holds."""
    declared = Question.of(sweep).configs
    for condition in sweep.conditions:
        there, here = question.configs.get(condition.name, {}), declared[condition.name]
        in_key = set(_paths(key_content(sweep.config(condition, sweep.seeds[0]))))
        for path in sorted(in_key & there.keys() & here.keys()):
            if there[path] != here[path]:
                raise InputError(
                    f"{file} must have the sweep's settings, but in its condition {condition.name!r} `{path}` is "
                    f"{there[path]}, not {here[path]}."
                )


def _paths(content: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in content.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _paths(value, f"{prefix}{name}.")
