"""Puts what bundles hold beside a study, where parts of one sweep ran on machines that share no store."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.records import read_provenance, read_question, read_study
from orchestrator.report.bundle.verify import changed_members, check_names
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question, key_paths
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Sweep
from trainables.errors import InputError

RANK: Final = {"complete": 0, "pruned": 1, "running": 2, "stopped": 3, "failed": 4}
"""The rank of a record of a replicate: of two records the lower one counts."""

OF_DRIVERS: Final = ("commits", "packages", "commands", "configs", "diffs", "notes")
"""What only the drivers that ran a part know of its origin; the rest stands in its replicates."""

Name = tuple[str, int]
"""Condition and seed."""


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
    manifest, members = read_bundle(file)
    if changed := list(changed_members(manifest, members)):
        raise InputError(f"{file} must be as its manifest says, but {changed[0].member} differs; `ponderay verify` it.")
    study, question = read_study(members["study.json"]), read_question(members["question.json"])
    check_names(file, manifest, study, question)
    if question.sweep != sweep.name:
        raise InputError(f"{file} must be a bundle of {sweep.name}, but is one of {question.sweep}.")
    if sweep.search or not question.configs:
        raise InputError(f"{sweep.name} must have listed conditions: trials of two searches cannot be put together.")
    diffs = {
        Path(name).stem: text.decode(errors="replace") for name, text in members.items() if name.startswith("diffs/")
    }
    provenance, declared = read_provenance(members["provenance.json"], diffs), Question.of(sweep).configs
    for condition in sweep.conditions:
        there = {**question.configs.get(condition.name, {}), **provenance.configs.get(condition.name, {})}
        in_key = key_paths(sweep.config(condition, sweep.seeds[0]))
        here = {path: text for path, text in declared[condition.name].items() if path in in_key}
        if condition.name in study.conditions and (path := _different(there, here)):
            raise InputError(
                f"{file} must have the sweep's settings, but in its condition {condition.name!r} `{path}` is "
                f"{there.get(path, 'no such setting')}, not {here.get(path, 'no such setting')}."
            )
    return Part(file, study, question, provenance)


def join_studies(study: Study, parts: Sequence[Part], order: Sequence[str]) -> tuple[Study, str]:
    """The replicates of all, each once, and a sentence on where they are from, where they are from several places.

    A complete replicate counts before one that is not, then that of `study`, then that of an earlier part.

    Args:
        order: of conditions, as far as it is declared; others follow.

    Raises:
        InputError: if a part was trained or tested with other settings under the same names.
    """
    found, settings, sentences, elsewhere = _by_name(study), dict(study.settings), [], set[Name]()
    validations, items, configs, audit = study.validations, study.items, dict(study.configs), study.audit
    for part in parts:
        theirs = _by_name(part.study)
        _check_equal(part.file, theirs, found)
        taken = {
            name: one for name, one in theirs.items() if name not in found or RANK[one.state] < RANK[found[name].state]
        }
        num_other = sum(_differs(theirs[name], found[name], part.question) for name in theirs.keys() - taken.keys())
        found |= taken
        settings |= part.question.settings
        configs = {**part.study.configs, **configs}
        audit = (*audit, *(one for one in part.study.audit if one not in audit))
        elsewhere |= taken.keys()
        same = {
            name
            for name, one in theirs.items()
            if one.state == found[name].state and not _differs(one, found[name], part.question)
        }
        curves = tuple(one for one in part.study.validations.curves if (one.condition, one.seed) in same)
        errors = tuple(one for one in part.study.items.errors if (one.condition, one.seed) in same)
        validations = validations.joined(replace(part.study.validations, curves=curves))
        items = items.joined(replace(part.study.items, errors=errors))
        num_left = len(theirs) - len(taken)
        left = f"; {num_left:,} are known already, {num_other:,} of them with other values of an objective"
        sentences.append(f"Replicates from {part.file.name}: {len(taken):,}{left if num_left else ''}.")
    places = {name: i for i, name in enumerate(dict.fromkeys((*order, *(condition for condition, _ in found))))}
    known = sorted(found.values(), key=lambda one: (places[one.condition], one.seed))
    is_alone = len(parts) == 1 and not study.replicates
    joined = replace(
        study,
        replicates=tuple(known),
        settings=settings,
        configs=configs,
        audit=audit,
        validations=validations,
        items=items,
        elsewhere=elsewhere,
    )
    return joined, "" if is_alone else " ".join(sentences)


def join_questions(question: Question, study: Study, parts: Iterable[Part]) -> Question:
    """The question of `study` with the configs that the parts give of conditions that only they have run."""
    of_parts = {name: part.question.configs.get(name, {}) for part in parts for name in part.study.conditions}
    only = {name: config for name, config in of_parts.items() if name not in study.conditions}
    return replace(question, configs={**question.configs, **only})


def join_provenance(provenance: StudyProvenance, study: Study, parts: Iterable[Part]) -> StudyProvenance:
    """What is known of the origin of all.

    Args:
        provenance: of `study`, whose replicates say already which code, data and machines they are of.
        study: that the parts were put beside.
    """
    runs = {one.run_id for one in study.replicates}
    for part in parts:
        if any(one.run_id in runs for one in part.study.replicates):
            both: dict[str, Any] = {}
            for field in OF_DRIVERS:
                a, b = getattr(provenance, field), getattr(part.provenance, field)
                both[field] = {**b, **a} if isinstance(a, Mapping) else tuple(dict.fromkeys((*a, *b)))
            provenance = replace(provenance, **both)
    return provenance


def _by_name(study: Study) -> dict[Name, Replicate]:
    return {(one.condition, one.seed): one for one in study.replicates}


def _differs(new: Replicate, known: Replicate, question: Question) -> bool:
    """Whether two complete ones have other values of an objective that both have; speeds always differ."""
    names = [objective.metric for objective in question.objectives]
    both = [name for name in new.metrics.keys() & known.metrics.keys() if name.partition("@")[0] in names]
    pairs = [(new.metrics[name], known.metrics[name]) for name in both]
    return new.state == known.state == "complete" and any(
        a != b and not (math.isnan(a) and math.isnan(b)) for a, b in pairs
    )


def _check_equal(file: Path, theirs: Mapping[Name, Replicate], ours: Mapping[Name, Replicate]) -> None:
    """Raises InputError where a replicate of the same name and data has another key, or a test another meaning."""
    tests: dict[tuple[str, str], str] = {}
    for (condition, _), one in (*ours.items(), *theirs.items()):
        for id in one.evaluations:
            name = id.rpartition(".")[0]
            if tests.setdefault((condition, name), id) != id:
                raise InputError(f"{file} must have the sweep's evaluations, but {name!r} of {condition!r} is another.")
    for (condition, seed), one in theirs.items():
        known = ours.get((condition, seed), one)
        if one.data_fingerprint == known.data_fingerprint and one.key != known.key:
            raise InputError(f"{file} must have the sweep's settings, but {condition!r} seed {seed} has others.")


def _different(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """The first path with another value, or that is a part of one on one side and a value on the other; or none."""
    for path, text in sorted(here.items()):
        is_part = any(one.startswith(f"{path}.") for one in there)
        is_of_value = any(path.startswith(f"{one}.") for one in there)
        if there.get(path, text) != text or (path not in there and (is_part or is_of_value)):
            return path
    return ""
