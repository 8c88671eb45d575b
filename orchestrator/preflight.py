"""What would go wrong, before it does: the data of a sweep are looked at before anything starts."""

from orchestrator.draft import Drafter
from orchestrator.settings import Settings
from search_spaces.sweep import Condition, Sweep


def check_data(sweep: Sweep, settings: Settings) -> None:
    """Reads transcripts and headers of all that the sweep will use.

    Raises:
        InputError: naming the first thing that is missing, broken or empty.
    """
    drafter = Drafter(sweep, settings, num_gpus=0)
    for condition in sweep.conditions or (Condition("base"),):
        drafter.prerequisites(condition)
        drafter.fingerprint(sweep.trainable, sweep.config(condition, sweep.seeds[0]))
