"""What a command ends with: one meaning each, whatever the command."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The command ran, and not all is well: replicates, a job or a server failed, or what was verified differs."""

WRONG_INPUT: Final = 2
REFUSED: Final = 3
"""Refused before it started."""
