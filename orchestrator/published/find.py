"""What was published of a sweep."""

from collections.abc import Iterator

from search_spaces.claim import Claim
from search_spaces.size import plain_name


def claims_of(sweep_name: str) -> tuple[Claim, ...]:
    """The claims that a study of the sweep can be held against, numbers first; none for a sweep of one's own.

    Args:
        sweep_name: with or without `.smoke`, whose results are comparable with nothing.
    """
    name = plain_name(sweep_name)
    return tuple(claim for claim in all_claims(name.partition(".")[0]) if name in claim.sweeps)


def all_claims(family: str) -> Iterator[Claim]:
    """Every claim about asr, act or lm; none about another family."""
    match family:
        case "asr":
            from search_spaces import asr_published as asr
            from search_spaces import asr_published_statements as asr_statements

            yield from asr.numbers()
            yield from asr_statements.statements()
        case "act":
            from search_spaces import act_published as act

            yield from act.numbers()
            yield from act.statements()
        case "lm":
            from search_spaces import lm_published as lm
            from search_spaces import lm_published_statements as lm_statements

            yield from lm.numbers()
            yield from lm_statements.statements()
