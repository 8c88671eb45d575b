"""Studies, questions, searches and provenance as JSON that any reader takes, and back; no digit of a number is lost.

Numbers that JSON does not know are the texts "NaN", "Infinity" and "-Infinity".
"""

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from orchestrator.journal.study_file import to_record
from orchestrator.results.audit import Audited
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from orchestrator.results.trials import Trials
from orchestrator.results.validations import Validations
from trainables.errors import InputError
from trainables.item_errors import LARGEST

NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
Record = TypeVar("Record")


def study_json(study: Study) -> bytes:
    """Every field of every replicate, a line each; configs, curves of validation, errors by test item, audit."""
    records = [{"condition": r.condition, "seed": r.seed} | to_record(r) for r in study.replicates]
    lines = ",\n".join(_text(record) for record in records)
    validations = _text(asdict(study.validations))
    head = f'"sweep": {json.dumps(study.sweep)}, "replicates": [\n{lines}\n]'
    items = _text({"test_sets": study.items.test_sets, "errors": [asdict(one) for one in study.items.errors]})
    configs = _text({name: config for name, config in study.configs.items() if name in study.conditions})
    audit = _text([asdict(one) for one in study.audit])
    others = f'"configs": {configs}, "validations": {validations}, "items": {items}, "audit": {audit}'
    return f"{{{head}, {others}}}\n".encode()


def read_study(content: bytes) -> Study:
    """The study that `study_json` was given, without when its conditions were updated; earlier bundles have no curves.

    Raises:
        InputError: if it is none.
    """
    parsed = parse(content, "study.json")
    if not isinstance(parsed, dict) or not isinstance(parsed.get("sweep"), str):
        raise InputError("study.json must be an object with `sweep` and `replicates`.")
    replicates = validated(tuple[Replicate, ...], parsed.get("replicates"), "study.json")
    validations = validated(Validations, parsed.get("validations", {}), "study.json")
    for curve in validations.curves:
        is_whole = len(curve.steps) == len(curve.values) and all(map(math.isfinite, curve.values))
        if not is_whole or any(a >= b for a, b in itertools.pairwise(curve.steps)):
            raise InputError(
                "study.json must have a finite value at each step of a curve, and steps in order, but that of "
                f"{curve.metric!r} of {curve.condition!r}, seed {curve.seed}, is otherwise."
            )
    items = validated(ItemErrors, parsed.get("items", {}), "study.json")
    for test_set in items.test_sets:
        lengths = [item.length for item in test_set]
        if not all(0 <= length <= LARGEST for length in lengths) or not sum(lengths):
            raise InputError(
                f"study.json must have lengths of items from 0 to {LARGEST:g}, and not all 0, but has others."
            )
    for one in items.errors:
        is_of_set = 0 <= one.test_set < len(items.test_sets) and len(one.errors) == len(items.test_sets[one.test_set])
        if not is_of_set or not all(abs(error) <= LARGEST for error in one.errors):
            raise InputError(
                "study.json must have an error of each item of a test set, but those of "
                f"{one.metric!r} of {one.condition!r}, seed {one.seed}, are others."
            )
    configs = validated(dict[str, dict[str, str]], parsed.get("configs", {}), "study.json")
    audit = validated(tuple[Audited, ...], parsed.get("audit", []), "study.json")
    return Study(parsed["sweep"], replicates, configs=configs, validations=validations, items=items, audit=audit)


def question_json(question: Question) -> bytes:
    """Every field of the question; what it confirms only where it does."""
    found = asdict(question)
    if question.confirms is None:
        del found["confirms"]
    return (_text(found, indent=1) + "\n").encode()


def read_question(content: bytes) -> Question:
    """The question that `question_json` was given.

    Raises:
        InputError: if it is none.
    """
    return validated(Question, parse(content, "question.json"), "question.json")


def search_json(trials: Trials) -> bytes:
    """Every field of the trials."""
    return (_text(asdict(trials), indent=1) + "\n").encode()


def read_search(content: bytes) -> Trials:
    """The trials that `search_json` was given.

    Raises:
        InputError: if it is none, or a trial lacks a parameter or an objective.
    """
    found = validated(Trials, parse(content, "search.json"), "search.json")
    for trial in found.trials:
        is_whole = trial.drawn.keys() == found.distributions.keys() and len(trial.values) == len(found.objectives)
        if not is_whole or not all(map(math.isfinite, trial.values)):
            raise InputError(
                "search.json must have a value of each parameter and a finite one of each objective in each trial, but "
                f"{trial.condition!r} has not."
            )
    return found


def provenance_json(provenance: StudyProvenance) -> bytes:
    """The provenance without its diffs, which are files of their own."""
    content = asdict(provenance)
    del content["diffs"]
    return (_text(content, indent=1) + "\n").encode()


def read_provenance(content: bytes, diffs: Mapping[str, str]) -> StudyProvenance:
    """The provenance that `provenance_json` was given, with its diffs.

    Raises:
        InputError: if it is none.
    """
    parsed = parse(content, "provenance.json")
    if not isinstance(parsed, dict):
        raise InputError("provenance.json must be an object.")
    return validated(StudyProvenance, {**parsed, "diffs": diffs}, "provenance.json")


def parse(content: bytes, name: str) -> Any:
    """The JSON value in the file `name`.

    Raises:
        InputError: if it is no JSON.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} must be JSON, but it cannot be read: {error}.") from None


def validated(kind: type[Record], value: Any, name: str) -> Record:
    """`value` as a `kind`, every field of the right type.

    Raises:
        InputError: if it is none.
    """
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{name} must hold what a report writes, but `{place}`: {first['msg']}.") from None


def _text(value: Any, indent: int | None = None) -> str:
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else NOT_FINITE[str(float(value))]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
