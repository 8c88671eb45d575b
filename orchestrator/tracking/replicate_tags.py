"""Replicates and settings as tags of their condition's run, so that a study can be read from these runs alone.

Tag `ponderay.replicate.SEED` is a JSON object: the number of chunks, then every field of `Replicate` but condition and
seed. Where the text is longer than CHUNK it goes on in `ponderay.replicate.SEED.1`, `.2` and so on. Numbers that JSON
does not know are written as Python does: NaN, Infinity, -Infinity.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.journal.study_file import from_record, to_record
from orchestrator.results.study import Replicate
from orchestrator.tracking import names
from search_spaces.settings import setting_texts
from trainables.errors import InputError

CHUNK: Final = 7500
"""Characters in a tag; MLflow allows 8,000."""

_HEADER: Final = '{"chunks": %4d, '
_FIRST: Final = re.compile(re.escape(names.REPLICATE_PREFIX) + r"(-?\d+)")
_NUM_CHUNKS: Final = re.compile(r'\{"chunks": *(\d+), ')


def encode(replicate: Replicate) -> dict[str, str]:
    """The tags that hold all of `replicate` but its condition.

    The first says how many there are, so that those of a longer state before it do no harm.
    """
    body = json.dumps(to_record(replicate))[1:]
    num_chunks = -(-(len(_HEADER % 0) + len(body)) // CHUNK)
    text = _HEADER % num_chunks + body
    return {_name(replicate.seed, i): text[i * CHUNK : (i + 1) * CHUNK] for i in range(num_chunks)}


def decode(condition: str, tags: Mapping[str, str]) -> list[Replicate]:
    """The replicates of `condition` by seed, from all tags of its run.

    Raises:
        ValueError: if a tag is missing or not whole.
    """
    replicates = []
    for seed in sorted(int(found[1]) for name in tags if (found := _FIRST.fullmatch(name))):
        first = tags[_name(seed, 0)]
        counted = _NUM_CHUNKS.match(first)
        chunks = [_name(seed, i) for i in range(int(counted[1]) if counted else 1)]
        try:
            record = json.loads("".join(tags[name] for name in chunks))
            replicates.append(from_record({**record, "condition": condition, "seed": seed}))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"Tag `{chunks[0]}` of condition {condition!r} must hold a replicate in {len(chunks)} chunks, "
                f"but it cannot be read: {error!r}. Delete the tag in MLflow; `ponderay run` writes it again."
            ) from None
    return replicates


def encode_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """The tag that holds what `--set` changed in a condition; none where it changed nothing."""
    texts = setting_texts(settings)
    return {names.SETTINGS: json.dumps(texts)} if texts else {}


def decode_settings(tags: Mapping[str, str]) -> dict[str, str]:
    """What `--set` changed, as text by config path, from all tags of a condition's run; nothing in older studies.

    Raises:
        ValueError: if the tag holds something else.
    """
    text = tags.get(names.SETTINGS, "{}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    if not isinstance(found, dict):
        raise InputError(f"Tag `{names.SETTINGS}` must hold a JSON object, but holds {found!r}; delete it in MLflow.")
    return {path: str(text) for path, text in found.items()}


def _name(seed: int, chunk: int) -> str:
    return f"{names.REPLICATE_PREFIX}{seed}.{chunk}" if chunk else f"{names.REPLICATE_PREFIX}{seed}"
