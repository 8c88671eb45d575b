"""Where a study's results came from, as its runs in MLflow say."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


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


def with_short_diffs(provenance: StudyProvenance, num_characters: int) -> StudyProvenance:
    """The same with the first `num_characters` of all diffs together, and a note of what that leaves out."""
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
