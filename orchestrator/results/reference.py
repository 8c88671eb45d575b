"""What a sweep asks of a study: the condition that all others are held against, and the configs as recorded."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.results.lookup import find_condition
from orchestrator.results.question import Question, config_texts, key_paths
from orchestrator.results.study import Study
from search_spaces.known_names import known_names
from search_spaces.settings import declared_name, text_of
from search_spaces.sweep import Condition, Sweep
from trainables.config import PLAIN, flatten

MOST_NAMED: Final = 5
LOOKED_AT: Final = 1000
"""Characters of a value: MLflow has the first thousands of it."""


@dataclass(frozen=True)
class Reference:
    """A study's reference.

    Attributes:
        name: empty where there is none, or several could be it.
        note: a sentence on a reference that is not the declared one, or on the several.
    """

    name: str
    note: str = ""


def recorded_question(sweep: Sweep, study: Study, reference: str | None = None) -> Question:
    """What `sweep` asks of what is recorded in `study`, with the reference of `find_reference`.

    A listed condition that is not recorded itself, but with settings, is there under those names. What was recorded
    under an older declaration counts as it was recorded, not as it is declared now, and a note says so.

    Args:
        reference: a condition's name; see `find_reference`.

    Raises:
        InputError: if the study has no condition of the reference's name, or several with settings.
    """
    plain, found = Question.of(sweep), find_reference(sweep, study, reference)
    configs, settings, changed = dict(plain.configs), dict(plain.settings), dict[str, str]()

    def logged(name: str) -> dict[str, str]:
        return config_texts(study.configs.get(name, {}))

    for condition in sweep.conditions:
        name = condition.name
        if name in study.conditions:
            own = configs[name]
            if own.keys() == {"condition"}:  # of a sweep whose code is not loaded, the name of a condition is all
                configs[name] = logged(name)
            elif study.configs.get(name, {}).items() - own.items() - {("seed", str(sweep.seeds[0]))}:
                configs[name] = {**own, **logged(name)}
                if what := _changed(sweep, condition, own, configs[name]):
                    changed[name] = what
        elif given := with_settings(condition, sweep, study):
            configs.pop(name)
            settings.pop(name, None)
            configs |= {recorded_name: logged(recorded_name) for recorded_name in given}
            settings |= given
    changed_note = ""
    if changed:
        first, what = next(iter(changed.items()))
        listed = known_names(changed, most=MOST_NAMED)
        changed_note = f"Ran with other settings than are declared now: {listed}; of {first} {what}."
    return replace(
        plain,
        reference=found.name,
        configs=configs,
        settings=settings,
        reference_note=found.note,
        changed_note=changed_note,
    )


def _changed(sweep: Sweep, condition: Condition, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """The fields of a condition's key that it ran with otherwise than they are declared; empty where there are none."""
    config = sweep.config(condition, sweep.seeds[0])
    # Of a list or mapping the text has more than the key: parts that are not in it, and an order.
    plain = {path for path, value in flatten(config).items() if isinstance(value, PLAIN)} & key_paths(config)
    both = (path for path in now if path in plain and path in before)
    paths = [path for path in both if before[path][:LOOKED_AT] != now[path][:LOOKED_AT]]
    return "; ".join(f"{path} was {before[path]}, now {now[path]}" for path in paths[:MOST_NAMED])


def find_reference(sweep: Sweep, study: Study, asked: str | None = None) -> Reference:
    """The reference that was `asked` for; else the declared one, or the only condition that is it with settings.

    With `--set` the declared one is that with these settings. Where several conditions are the declared reference with
    settings, there is none until the user says which.

    Raises:
        InputError: if the study has no condition of the name asked for, or several with settings.
    """
    if asked is not None:
        return Reference(find_condition(study, asked))
    if not sweep.reference:
        return Reference("")
    complete = {replicate.condition for replicate in study.replicates if replicate.state == "complete"}
    if sweep.reference in complete:
        return Reference(sweep.reference)
    (declared,) = (c for c in sweep.conditions if c.name == sweep.reference)
    found = [name for name in with_settings(declared, sweep, study) if name in complete]
    if not found:
        return Reference(sweep.reference)
    if len(found) == 1:
        note = f"The reference is {found[0]}; {sweep.reference} is recorded with these settings only."
        return Reference(found[0], note)
    names = known_names(found, most=MOST_NAMED)
    note = (
        f"Nothing is compared with the reference, for {sweep.reference} is recorded with several settings: {names}. "
        f"Choose one by --reference {shlex.quote(found[0])}, or show less by --where PATH=VALUE."
    )
    return Reference("", note)


def with_settings(condition: Condition, sweep: Sweep, study: Study) -> dict[str, Mapping[str, str]]:
    """The recorded conditions that are `condition` with settings, and their settings as text by config path.

    Where `condition` has settings of its own, only recorded conditions with the same ones count.
    """
    own = {path: text_of(value) for path, value in condition.settings.items()}
    others = {name for c in sweep.conditions for name in (c.name, c.declared)}
    found = {}
    for name in study.conditions:
        given = study.settings.get(name) or ({} if name in others else _in_older_name(name, condition.declared))
        if given and declared_name(name, given) == condition.declared and own in ({}, given):
            found[name] = given
    return found


def _in_older_name(name: str, declared: str) -> dict[str, str]:
    """The settings in a condition's name as an earlier version wrote it: `declared,PATH=VALUE,PATH=VALUE`."""
    if not name.startswith(f"{declared},"):
        return {}
    parts = name.removeprefix(f"{declared},").split(",")
    return {path: text for path, sign, text in (part.partition("=") for part in parts) if sign}
