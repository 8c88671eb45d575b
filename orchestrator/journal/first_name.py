"""The name that a renamed sweep had first: it stands in the keys of its replicates, which a new name must not change.

It is a file of the name alone beside the replicates' folders, there and in the bucket.
"""

from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.journal.bucket import SharedFolder

FIRST_NAME: Final = "first_name"


def name_in_keys(settings: Settings, sweep: str) -> str:
    """The name by which the keys of the sweep's replicates were made."""
    folder = settings.replicates(sweep)
    try:
        found = (folder / FIRST_NAME).read_text(encoding="utf-8")
    except OSError:
        found = ""
    if not found and settings.storage:
        found = SharedFolder(settings.shared(folder)).read(FIRST_NAME).decode("utf-8", "replace")
    return found.strip() or sweep
