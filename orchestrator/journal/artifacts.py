"""Files for people in a replicate's folder, which no computation reads."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from orchestrator.journal.file_names import is_partial, is_plain, partial_of
from orchestrator.machine.durable_files import check_is_no_link, make_folder, new_file, replace_durably
from trainables.errors import shown

LIMIT_BYTES: Final = 64_000_000
"""What those of one replicate may take; larger things belong into checkpoints."""

NAME_BYTES: Final = 200
"""File systems allow 255, and what is not whole yet has a longer name."""


def write_artifacts(folder: Path, contents: Mapping[str, bytes]) -> Iterator[str]:
    """Writes files by name, each whole or not at all, and gives its name; one of the same name is replaced.

    Raises:
        ValueError: if all of them would take more than the limit, or a name leads elsewhere.
        LinkError: if the folder, or the one that it lies in, is a link.
    """
    check_is_no_link(folder.parent)
    check_is_no_link(folder)
    for name in contents:
        if not is_plain(name) or is_partial(name) or not name.isprintable() or len(name.encode()) > NAME_BYTES:
            raise ValueError(
                f"An artifact's name must be that of a file alone, in one line of at most {NAME_BYTES} bytes in UTF-8, "
                f"but got {shown(name)}."
            )
    for left in list(folder.glob("*")):
        if is_partial(left.name):
            left.unlink()
    there = {file.name: file.lstat().st_size for file in folder.glob("*")}
    total = sum((there | {name: len(content) for name, content in contents.items()}).values())
    if total > LIMIT_BYTES:
        raise ValueError(
            f"The artifacts of a replicate may take {LIMIT_BYTES / 1e6:.0f} MB, but these take "
            f"{total / 1e6:.0f} MB; report fewer or smaller files."
        )
    for name, content in contents.items():
        make_folder(folder)
        partial = folder / partial_of(name)
        with new_file(partial) as file:
            file.write(content)
        replace_durably(partial, folder / name)
        yield name
