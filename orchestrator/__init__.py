"""Carries out sweeps: the commands, what runs next, what is recorded, and the answers."""

import sys
from pathlib import Path

# Python and Ray search the working folder first; it may hold packages of the user's own that have the same names.
_SOURCES = Path(__file__).parents[1]
sys.path.insert(0, str(_SOURCES))
try:
    import search_spaces
    import trainables
finally:
    sys.path.remove(str(_SOURCES))

for _package in (search_spaces, trainables):
    if str(_SOURCES / _package.__name__) not in _package.__path__:
        raise ImportError(
            f"`{_package.__name__}` must be Ponderay's package in {_SOURCES}, but {_package.__path__[0]} was imported "
            "before. Import `orchestrator` first, or rename that folder."
        )
