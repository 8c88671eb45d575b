"""Where a study's results came from, as its runs in MLflow say."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StudyProvenance:
    """What is known of how a study was made; each tuple holds distinct values in the order first seen.

    Attributes:
        configs: of each condition, leaf values by dotted path, as logged.
        diffs: what was changed and not committed, by the name of the driver's session.
        fingerprints: of data.
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
