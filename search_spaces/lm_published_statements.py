"""What the numbers of Ulmer's thesis show of one model against another: recoders, their step sizes, K and speed."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from search_spaces.claim import Place, Source, StatementClaim, TrendClaim, sentence
from search_spaces.lm_published_numbers import (
    BATCH_AXIS,
    CONFOUNDED,
    NAMES,
    NOTES,
    OF_SHAPES,
    OTHER_START,
    PAPER,
    RATES,
    SAMPLES,
    STEP_SIZES,
    WITHOUT,
    perplexity,
    speed,
)

NO_WORSE: Final = 1.0, "1 of perplexity; a quarter of the spread of the baseline over seeds"
SHAPE: Final = "On whatever text is set: what is claimed is a shape."
ONE_MACHINE: Final = "Speeds compare where the replicates ran on one kind of machine."


def statements() -> Iterator[StatementClaim]:
    """Every comparison."""
    yield from _of_step_sizes()
    for kind, by_count in SAMPLES.items():
        for count in by_count:
            yield _worse(f"{NAMES[kind]} with K = {count}", "samples", f"{kind},K={count}", "Table 5.2", NOTES[kind])
        yield from _of_counts(kind, tuple(by_count))
    for rate in RATES:
        yield _worse(f"MC dropout at rate {rate:g}", "mc_dropout_rate", f"rate={rate}", "Figure 5.4", CONFOUNDED)
    for kind in ("mc_dropout", "ensemble"):
        yield _worse(NAMES[kind], "confounds", kind, "Table 5.1", BATCH_AXIS if kind == "ensemble" else "")
        for step, condition in (("learned", "learned_released"), ("predicted", "predicted")):
            text = f"{NAMES[kind]} with {step} steps"
            yield _worse(text, "dynamic_step", f"{kind},{condition}", "Figure 5.5", NOTES[kind])
    for condition, name in (("mc_dropout,units", "MC dropout"), ("ensemble,released", "the released ensemble")):
        yield _worse(name, "signals", condition, "Table 5.2", CONFOUNDED)
    yield from _of_the_ablation()


def _of_step_sizes() -> Iterator[StatementClaim]:
    best, others = 5.0, (10.0, 25.0)
    better = _against_baseline(
        f"surprisal with step size {best:g} has a lower perplexity than the baseline", "step_size",
        perplexity(f"eq44,step={best:g}"), "below", "Table 5.1", NOTES["eq44"],
    )  # fmt: skip
    yield replace(better, sweeps=(*better.sweeps, "lm.laptop"))
    for kind, sizes in STEP_SIZES.items():
        for size in others if kind == "eq44" else sizes:
            text = f"{NAMES[kind]} with step size {size:g}"
            yield _worse(text, "step_size", f"{kind},step={size:g}", "Table 5.1", NOTES[kind])


def _of_counts(kind: str, counts: tuple[int, ...]) -> Iterator[StatementClaim]:
    """How perplexity and speed go with K."""
    first = f"{kind},K={counts[0]}"
    text = f"{NAMES[kind]} with K = {counts[0]} is slower than the baseline"
    yield _statement(text, "samples", speed(first), "below", speed("baseline"), "Table 5.2", ONE_MACHINE)
    for less, more in itertools.pairwise(counts):
        small, large = (f"{kind},K={count}" for count in (less, more))
        text = f"{NAMES[kind]} with K = {more} is slower than with {less}"
        yield _statement(text, "samples", speed(large), "below", speed(small), "Table 5.2", ONE_MACHINE)
        if kind == "ensemble":
            text = f"{NAMES[kind]} with K = {more} has a higher perplexity than with {less}"
            places = perplexity(large), perplexity(small)
            yield _statement(text, "samples", places[0], "above", places[1], "Table 5.2", NOTES[kind])


def _of_the_ablation() -> Iterator[StatementClaim]:
    margin, reason = NO_WORSE
    for kind, by_step in WITHOUT.items():
        for step in by_step:
            start = OTHER_START if step == "learned" else ""
            text = f"the baseline tested with {NAMES[kind]} ({step} steps) is no worse than without"
            claim = _against_baseline(
                text, "ablation", perplexity("baseline", f"{kind}_{step}"), "below", "Figure 5.6", start
            )
            yield replace(claim, margin=margin, margin_reason=reason)
    for step in ("learned", "predicted"):
        trained = f"eq44,{step}"
        text = f"trained with surprisal ({step} steps), the perplexity is the same without it"
        left, right = perplexity(trained, "without"), perplexity(trained)
        claim = _statement(text, "ablation", left, "same", right, "Figures 5.5 and 5.6", NOTES["eq44"])
        yield replace(claim, margin=margin, margin_reason=reason)


def _worse(what: str, sweep: str, condition: str, place: str, note: str) -> StatementClaim:
    text = f"{what} has a higher perplexity than the baseline"
    return _against_baseline(text, sweep, perplexity(condition), "above", place, note)


def _against_baseline(
    text: str, sweep: str, left: Place, relation: Literal["below", "above"], place: str, note: str
) -> StatementClaim:
    return _statement(text, sweep, left, relation, perplexity("baseline"), place, note)


def _statement(
    text: str, sweep: str, left: Place, relation: Literal["below", "above", "same"], right: Place, place: str, note: str
) -> StatementClaim:
    return StatementClaim(
        id=f"lm.{sweep}.{left.condition}@{left.evaluation}.{relation}.{right.condition}.{left.metric}",
        sweeps=(f"lm.{sweep}",),
        text=sentence(text),
        left=left,
        relation=relation,
        right=right,
        source=Source(PAPER, place),
        setting=OF_SHAPES,
        note=" ".join(filter(None, (note, SHAPE))),
    )


def trends() -> Iterator[TrendClaim]:
    """What is said along a swept value: step sizes (section 5.3.1), and numbers of samples (section 5.3.2)."""
    for kind, sizes in STEP_SIZES.items():
        best = 5.0 if kind == "eq44" else 1e-3
        larger = [size for size in sizes if size >= best]
        text = f"from its best step size on, larger steps of {NAMES[kind]} have higher perplexities"
        places = tuple(perplexity(f"{kind},step={size:g}") for size in larger)
        yield _trend(text, "step_size", places, "rises", "section 5.3.1 and Table 5.1", NOTES[kind])
    for kind, by_count in SAMPLES.items():
        names = [f"{kind},K={count}" for count in by_count]
        text = f"the more samples, the slower {NAMES[kind]} is"
        places = tuple(speed(name) for name in names)
        yield _trend(text, "samples", places, "falls", "section 5.3.2 and Table 5.2", ONE_MACHINE)
    text = "anchored ensembling is best with one member: the more, the higher the perplexity"
    places = tuple(perplexity(f"ensemble,K={count}") for count in SAMPLES["ensemble"])
    yield _trend(text, "samples", places, "rises", "section 5.3.2 and Table 5.2", NOTES["ensemble"])


def _trend(
    text: str, sweep: str, places: tuple[Place, ...], relation: Literal["rises", "falls"], place: str, note: str
) -> TrendClaim:
    return TrendClaim(
        id=f"lm.{sweep}.{places[0].condition}.{relation}.{places[-1].condition}.{places[0].metric}",
        sweeps=(f"lm.{sweep}",),
        text=sentence(text),
        places=places,
        relation=relation,
        source=Source(PAPER, place),
        setting=OF_SHAPES,
        note=" ".join((note, SHAPE)),
    )
