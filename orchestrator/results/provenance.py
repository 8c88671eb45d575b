"""Where a study's results came from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orchestrator.results.study import Study
from search_spaces.redaction import without_secrets


@dataclass(frozen=True)
class StudyProvenance:
    """What is known of how a study was made; each tuple holds distinct values in the order first seen.

    Passwords and tokens in commands and configs are redacted.

    Attributes:
        configs: of each condition, leaf values by dotted path, as logged; of many conditions only some.
        diffs: what was changed and not committed, by the name of the first driver's session that had it so.
        fingerprints: of data.
        notes: what was left out, in sentences.
    """

    commits: tuple[str, ...]
    code_versions: tuple[str, ...]
    packages: tuple[str, ...]
    commands: tuple[str, ...]
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    fingerprints: tuple[str, ...]
    seeds: tuple[int, ...]
    configs: Mapping[str, Mapping[str, str]]
    diffs: Mapping[str, str]
    notes: tuple[str, ...] = ()


def provenance_in(study: Study) -> StudyProvenance:
    """The provenance as far as the replicates themselves say it."""
    replicates = study.replicates
    return StudyProvenance(
        commits=_distinct(origin.commit for origin in study.origins.values()),
        code_versions=_distinct(replicate.code_version for replicate in replicates),
        packages=_distinct(origin.packages for origin in study.origins.values()),
        commands=_distinct(without_secrets(origin.command) for origin in study.origins.values()),
        hosts=_distinct(replicate.host for replicate in replicates),
        devices=_distinct(replicate.device for replicate in replicates),
        fingerprints=_distinct(replicate.data_fingerprint for replicate in replicates),
        seeds=tuple(dict.fromkeys(replicate.seed for replicate in replicates)),
        configs=study.configs,
        diffs={},
    )


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def with_short_diffs(provenance: StudyProvenance, num_characters: int) -> StudyProvenance:
    """The provenance with the first `num_characters` of all diffs together, and a note of what that leaves out."""
    total = sum(map(len, provenance.diffs.values()))
    if total <= num_characters:
        return provenance
    diffs, left = {}, num_characters
    for name, diff in provenance.diffs.items():
        if left > 0:
            diffs[name] = diff[:left]
            left -= len(diff)
    note = f"Of {total:,} characters of uncommitted changes the first {num_characters:,} are shown; a bundle has all."
    return replace(provenance, diffs=diffs, notes=(*provenance.notes, note))
