"""What Lugosch, Nowrouzezahrai and Meyer say, or their numbers show, of one model against another.

A statement is about the models: `per`, the corrected error rate, must bear it out, and costs count valid frames unless
a statement is about the printed ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from search_spaces.asr_published_numbers import PADDED, PER_MARGIN
from search_spaces.asr_published_sizes import CORPORA, MINI_LIBRISPEECH, PAPER, TIMIT, Corpus, flops, of_flags
from search_spaces.claim import FrontClaim, JointClaim, Place, Source, StatementClaim, TrendClaim, sentence


class Line(NamedTuple):
    """What is said: of which condition or row, its relation to which other, and whether it is "no more than"."""

    text: str
    left: str
    relation: Literal["below", "above", "same"]
    right: str
    is_no_more: bool = False


TABLE_2: Final = (
    Line("surprisal routing errs less than random routing", "surprisal", "below", "random"),
    Line("surprisal routing errs no more than big only", "surprisal", "below", "always_big", is_no_more=True),
    Line("random routing errs more than big only", "random", "above", "always_big"),
)
OF_FIXED: Final = Line("small only errs more than big only", "always_small", "above", "always_big")
CHEAPER_THAN_BIG: Final = Line("surprisal routing costs less than big only", "surprisal", "below", "always_big")
CHEAPER_THAN_RANDOM: Final = Line(
    "surprisal routing costs less than random routing, as printed", "surprisal", "below", "random"
)
UNDER_SURPRISAL: Final = Line(
    "trained with surprisal, testing with random routing errs more than with surprisal", "yy-", "above", "yyy"
)
ALONE: Final = Line(
    "trained with random routing, testing with surprisal errs less than with random", "y-y", "below", "y--"
)
ALONE_ON_TIMIT: Final = (
    Line("trained with random routing, testing with surprisal errs as much as with random", "y-y", "same", "y--"),
    Line(
        "trained with random routing on frames, testing with surprisal errs less than with random",
        "--y",
        "below",
        "---",
    ),
)
IN_BOTH: Final = Line("surprisal in training and testing errs less than random routing in both", "yyy", "below", "y--")
SMALL_AND_BIG: Final = Line("small only errs more than big only", "small", "above", "big")
FEATURES: Final = (
    Line("under random routing AR features lower the error", "y--", "below", "---"),
    Line("trained with random routing, tested with surprisal, AR features lower the error", "y-y", "below", "--y"),
    Line("trained with surprisal, tested with random routing, AR features lower the error", "yy-", "below", "-y-"),
    Line("under surprisal routing AR features lower the error", "yyy", "below", "-yy"),
)
VALIDATION: Final = Line("in validation, too, surprisal routing errs less than random routing", "yyy", "below", "y--")
ABLATIONS: Final = (
    ("Table 3", TIMIT.sweep("ablation"), TIMIT, "recurrent", (IN_BOTH, UNDER_SURPRISAL, *ALONE_ON_TIMIT, *FEATURES)),
    ("Table 4", MINI_LIBRISPEECH.sweep("ablation"), MINI_LIBRISPEECH, "recurrent", (IN_BOTH, UNDER_SURPRISAL, ALONE)),
    ("Appendix A, Model 1", "asr.model1", TIMIT, "model1", (UNDER_SURPRISAL, ALONE, SMALL_AND_BIG)),
    ("Appendix A, Model 2", "asr.model2", TIMIT, "model2", (UNDER_SURPRISAL, ALONE, SMALL_AND_BIG)),
    ("Appendix A, Model 3", "asr.model3", TIMIT, "model3", (IN_BOTH, UNDER_SURPRISAL, ALONE, SMALL_AND_BIG)),
)

BIASES: Final = tuple(f"bias_{step}" for step in range(10))
"""Evaluations of the sweep: the controller's bias from its fitted value b to b + 4."""

RAISED: Final = BIASES[-1]
APPENDIX_B: Final = "Appendix B and Figure 3, Mini-LibriSpeech"
CONTROLLER_BIAS: Final = ("asr.controller_bias",)
TURN: Final = (
    "The paper names no such point, nor how many biases it tested; of our ten the error is held to fall along the "
    "first five, to b + 1.8, and to rise along the last five."
)
OF_BIAS: Final[tuple[tuple[str, str, Literal["rises", "falls"], tuple[str, ...], str], ...]] = (
    ("the more the bias is raised, the more the big network is used", "routing_rate", "rises", BIASES, ""),
    ("using the big network more lowers the error up to a point", "per", "falls", BIASES[:5], TURN),
    ("behind that point the error increases as the bias is raised further", "per", "rises", BIASES[5:], TURN),
)

PRINTED_ALIKE: Final = "The printed rates were both decoded stochastically, so that draws alone tell them apart."

NATS_MARGIN: Final = 0.5, "half a nat; the published standard deviations of test losses over seeds are .22 to .76"
MARGIN_REASON: Final = f"no more, or as much, is {PER_MARGIN[1]}"


def statements() -> Iterator[StatementClaim]:
    """Every comparison."""
    for corpus in CORPORA:
        yield from _of_table_2(corpus)
    for table, sweep, corpus, network, lines in ABLATIONS:
        for line in lines:
            yield _line(line, table, (sweep,), corpus, (_of_row(line.left), _of_row(line.right)), network)
    for corpus in CORPORA:
        sides = _of_row(VALIDATION.left, "valid_per"), _of_row(VALIDATION.right, "valid_per")
        yield _line(VALIDATION, f"Figure 2, {corpus.title}", (corpus.sweep("ablation"),), corpus, sides)
    yield from _of_appendix_b()
    for corpus in CORPORA:
        yield from _of_appendix_c(corpus)
    yield from _of_section_4_3()


def _of_table_2(corpus: Corpus) -> Iterator[StatementClaim]:
    table, sweeps = f"Table 2, {corpus.title}", (corpus.sweep("table2"), *corpus.laptop)
    for line in TABLE_2:
        yield _line(line, table, sweeps, corpus, (_per(line.left), _per(line.right)))
    fixed = _per(OF_FIXED.left), _per(OF_FIXED.right)
    yield _line(OF_FIXED, f"{corpus.ablation}, {corpus.title}", sweeps, corpus, fixed)
    costs = flops("surprisal"), flops("always_big")
    yield _line(CHEAPER_THAN_BIG, table, sweeps, corpus, costs)
    printed = flops("surprisal", "released_flops_per_frame"), flops("random", "released_flops_per_frame")
    note = f"{PADDED} Counted on valid frames, surprisal does not cost less."
    yield _line(CHEAPER_THAN_RANDOM, table, sweeps, corpus, printed, note=note)


def _of_appendix_b() -> Iterator[StatementClaim]:
    text = "where the bias is raised by 4, the model errs more than one that only ever has the big network"
    line = Line(text, RAISED, "above", "always_big")
    yield _line(line, APPENDIX_B, CONTROLLER_BIAS, MINI_LIBRISPEECH, (_per("surprisal", RAISED), _per("always_big")))


def trends() -> Iterator[TrendClaim]:
    """What appendix B says along the controller's bias."""
    for text, metric, relation, biases, note in OF_BIAS:
        yield TrendClaim(
            id=f"{CONTROLLER_BIAS[0]}.{biases[0]}.{relation}.{biases[-1]}.{metric}",
            sweeps=CONTROLLER_BIAS,
            text=sentence(text),
            places=tuple(Place("surprisal", metric, name, 100) for name in biases),
            relation=relation,
            source=Source(PAPER, APPENDIX_B),
            setting=MINI_LIBRISPEECH.setting(),
            note=note,
        )


def _of_appendix_c(corpus: Corpus) -> Iterator[StatementClaim]:
    table, sweeps = f"Appendix C, {corpus.title}", (corpus.bare_sweep("deterministic"),)
    net, other = "train_deterministic", "train_stochastic"
    errs = Line("training deterministically errs more, tested stochastically", net, "above", other)
    yield _line(errs, table, sweeps, corpus, (_per(net), _per(other)))
    loss = Line("training deterministically has a higher test loss, tested stochastically", net, "above", other)
    nats = (Place(name, "test_loss_nats", "stochastic") for name in (net, other))
    yield _line(loss, table, sweeps, corpus, nats)
    fits = Line("training deterministically has a lower training loss", net, "below", other)
    yield _line(fits, table, sweeps, corpus, (Place(name, "train_loss_nats") for name in (net, other)))
    text = "trained deterministically, the loss is lower when tested so than when tested stochastically"
    same_net = (Place(net, "test_loss_nats", routing) for routing in ("deterministic", "stochastic"))
    yield _line(Line(text, f"{net}.itself", "below", net), table, sweeps, corpus, same_net)
    text = "trained stochastically, testing deterministically errs more than testing stochastically"
    errors = (_per(other, routing) for routing in ("deterministic", "stochastic"))
    yield _line(Line(text, f"{other}.itself", "above", other), table, sweeps, corpus, errors, note=PRINTED_ALIKE)
    text = "trained stochastically, testing deterministically has no higher loss than testing stochastically"
    losses = (Place(other, "test_loss_nats", routing) for routing in ("deterministic", "stochastic"))
    no_higher = _line(Line(text, f"{other}.itself", "below", other), table, sweeps, corpus, losses)
    yield replace(no_higher, margin=NATS_MARGIN[0], margin_reason=NATS_MARGIN[1])


def _of_section_4_3() -> Iterator[StatementClaim]:
    table, sweeps = "Section 4.3, TIMIT", ("asr.lambda_grid_timit",)
    low, published = "released,lambda=0.0001", "released,lambda=0.001"
    worse = Line("the learned controller errs more with lambda .0001 than with .001", low, "above", published)
    yield _line(worse, table, sweeps, TIMIT, (_per(low), _per(published)))
    dearer = Line("the learned controller costs more with lambda .0001 than with .001", low, "above", published)
    costs = (flops(name, "released_flops_per_frame") for name in (low, published))
    yield _line(dearer, table, sweeps, TIMIT, costs, note=PADDED)


def _line(
    line: Line,
    table: str,
    sweeps: tuple[str, ...],
    corpus: Corpus,
    places: Iterable[Place],
    network: str = "recurrent",
    note: str = "",
) -> StatementClaim:
    left, right = places
    has_margin = line.is_no_more or line.relation == "same"
    return StatementClaim(
        id=f"{sweeps[0]}.{line.left}.{line.relation}.{line.right}.{left.metric}",
        sweeps=sweeps,
        text=sentence(line.text),
        left=left,
        relation=line.relation,
        right=right,
        source=Source(PAPER, table),
        setting=corpus.setting(network),
        margin=PER_MARGIN[0] if has_margin else 0.0,
        margin_reason=MARGIN_REASON if has_margin else "",
        note=note,
    )


def _per(condition: str, evaluation: str = "stochastic") -> Place:
    return Place(condition, "per", evaluation, scale=100)


def _of_row(flags: str, metric: str = "per") -> Place:
    condition, evaluation = of_flags(flags)
    return Place(condition, metric, evaluation, scale=100)


SIMILAR_CHEAPER_STEADIER: Final = (
    "surprisal routing errs as much as the learned controller, with less spread over seeds and at a lower cost"
)
FIRST_ROWS: Final = (
    "By the printed means it is not: with random routing in training the error is 22.49 instead of 22.58, at one cost."
)


def statements_of_several_things() -> Iterator[JointClaim | FrontClaim]:
    """What is said of error, spread and cost together (section 4.3), and of the front (section 4.4)."""
    for corpus in CORPORA:
        yield _against_learned(corpus)
    for corpus, rows in ((TIMIT, ("y-y", "yy-", "y--", "-yy", "--y", "-y-", "---")), (MINI_LIBRISPEECH, MINI_ROWS)):
        text = "surprisal routing in training and testing is on the front of error against cost"
        yield _on_front(corpus, "yyy", (*rows, "small", "big"), text)
    text = "of the models without AR features, that with surprisal in training and testing is on the front"
    yield replace(_on_front(TIMIT, "-yy", ("--y", "-y-", "---"), text), note=f"{FIRST_ROWS} {PADDED}")


MINI_ROWS: Final = ("y-y", "yy-", "y--")


def _against_learned(corpus: Corpus) -> JointClaim:
    sweep, (margin, reason) = corpus.sweep("table2"), PER_MARGIN
    common: dict[str, Any] = {
        "id": f"{sweep}.surprisal.similar.steadier.cheaper.learned",
        "sweeps": (sweep,),
        "text": sentence(SIMILAR_CHEAPER_STEADIER),
        "source": Source(PAPER, f"section 4.3, {corpus.title}"),
        "setting": corpus.setting(),
    }
    ours, learned = "surprisal", "learned_released"
    costs = (flops(name, "released_flops_per_frame") for name in (ours, learned))
    similar = StatementClaim(
        **common, left=_per(ours), relation="same", right=_per(learned), margin=margin, margin_reason=reason
    )
    steadier = StatementClaim(**common, left=_per(ours), relation="below", right=_per(learned), of="spread")
    cheaper = StatementClaim(**common, left=next(costs), relation="below", right=next(costs))
    return JointClaim(**common, parts=(similar, steadier, cheaper), note=PADDED)


def _on_front(corpus: Corpus, flags: str, others: tuple[str, ...], text: str) -> FrontClaim:
    sweep = corpus.sweep("ablation")
    return FrontClaim(
        id=f"{sweep}.{flags}.on_front.{len(others)}",
        sweeps=(sweep,),
        text=sentence(text),
        point=_error_and_cost(flags),
        others=tuple(_error_and_cost(row) for row in others),
        directions=("minimize", "minimize"),
        source=Source(PAPER, f"section 4.4, {corpus.ablation}"),
        setting=corpus.setting(),
        note=PADDED,
    )


def _error_and_cost(flags: str) -> tuple[Place, Place]:
    condition, evaluation = of_flags(flags)
    return _per(condition, evaluation), flops(condition, "released_flops_per_frame", evaluation)
