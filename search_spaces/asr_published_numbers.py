"""What Lugosch, Nowrouzezahrai and Meyer published of surprisal-routed speech recognisers: their numbers.

Their error rates were counted by the released code, so that they are held against `released_per`. "FLOPs" are theirs:
parameters used per frame, in millions; of routed models averaged as in the released code.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from search_spaces.asr_published_sizes import CORPORA, MINI_LIBRISPEECH, PAPER, TIMIT, Corpus, flops, of_flags
from search_spaces.claim import NumberClaim, Place, Published, Source

Printed = tuple[float, float | None, float]
"""PER, its standard deviation where one is printed, FLOPs."""

NUM_SEEDS: Final = 5

# in the published unit, and why
PER_MARGIN: Final = 0.5, "half a point; the published standard deviations over seeds are .05 to .68"
ROUTED_MARGIN: Final = 0.05, ".05 M; so much is a routing rate that differs by .02 to .05"
FIXED_MARGIN: Final = 0.02, "the last digit printed, and 41 labels for 39, which make up to .011"
EXACT_MARGIN: Final = 0.5, "an exact count"
HALF_MARGIN: Final = 0.01e6, "a routing rate that is drawn within .005 of one half"
SAVING_MARGIN: Final = 0.01, "printed as whole per cent"
LOSS_MARGIN: Final = 0.02, "2 % of the number; the printed standard deviations over seeds are .5 to 2.1 % of theirs"
"""A share of the number."""

PADDED: Final = "The printed FLOPs of routed models count padding frames."
DECODED: Final = "Printed as a deterministic test but decoded stochastically, as is ours that is held against it."
FITTED: Final = "Their controller was fitted by one pass of Adam (controller.fit=one_pass_adam); ours to convergence."
LEARNED: Final = "As released: the gate reads the pre-net's output, and the penalty is summed over the batch."

# of the paper, of ours: PER, its standard deviation and FLOPs on TIMIT, then on Mini-LibriSpeech
TABLE_2: Final = (
    ("random", "random", (20.52, 0.28, 6.63), (26.16, 0.35, 6.62)),
    ("learned", "learned_released", (19.91, 0.58, 6.63), (25.93, 0.32, 6.50)),
    ("surprisal", "surprisal", (20.00, 0.15, 6.41), (25.80, 0.10, 6.43)),
    ("big only", "always_big", (20.09, 0.24, 7.54), (25.69, 0.30, 7.54)),
    ("small only", "always_small", (20.61, 0.24, 5.70), (26.31, 0.33, 5.70)),
)

# AR features, surprisal in training, surprisal in testing: PER, its standard deviation, FLOPs
ABLATIONS: Final = {
    "timit": (
        ("---", (22.81, 0.27, 2.91)),
        ("--y", (22.49, 0.28, 5.75)),
        ("-y-", (22.73, 0.44, 2.91)),
        ("-yy", (22.58, 0.05, 5.75)),
        ("y--", (20.52, 0.28, 6.63)),
        ("y-y", (20.52, 0.17, 6.41)),
        ("yy-", (20.28, 0.17, 6.63)),
        ("yyy", (20.00, 0.15, 6.41)),
    ),
    "mini_librispeech": (
        ("y--", (26.16, 0.35, 6.62)),
        ("y-y", (26.04, 0.26, 6.43)),
        ("yy-", (26.44, 0.06, 6.62)),
        ("yyy", (25.80, 0.10, 6.43)),
    ),
}
APPENDIX_A: Final = {
    "model1": (
        ("y--", (26.94, 0.48, 6.52)),
        ("y-y", (26.89, 0.20, 6.49)),
        ("yy-", (28.86, 0.31, 6.52)),
        ("yyy", (27.51, 0.39, 6.49)),
        ("small", (27.72, 0.53, 5.96)),
        ("big", (26.75, 0.13, 7.07)),
    ),
    "model2": (
        ("y--", (26.76, 0.11, 6.52)),
        ("y-y", (26.30, 0.36, 6.49)),
        ("yy-", (28.16, 0.27, 6.52)),
        ("yyy", (26.54, 0.32, 6.49)),
        ("small", (27.60, 0.60, 5.96)),
        ("big", (25.91, 0.41, 7.07)),
    ),
    "model3": (
        ("y--", (32.30, 0.66, 4.62)),
        ("y-y", (31.14, 0.54, 4.54)),
        ("yy-", (34.07, 0.58, 4.62)),
        ("yyy", (30.37, 0.31, 4.54)),
        ("small", (35.47, 0.68, 3.28)),
        ("big", (28.04, 0.55, 5.96)),
    ),
}

# stochastic in training, in testing (y or n): training loss and test loss, each with its standard deviation; PER, its
# standard deviation, FLOPs
APPENDIX_C: Final = {
    "timit": (
        ("nn", (16.19, 0.14), (24.61, 0.52), (21.00, 0.19, 6.41)),
        ("ny", (16.21, 0.08), (25.11, 0.24), (20.81, 0.24, 6.41)),
        ("yn", (17.58, 0.20), (23.88, 0.31), (20.08, 0.22, 6.41)),
        ("yy", (17.55, 0.26), (24.04, 0.22), (20.00, 0.15, 6.41)),
    ),
    "mini_librispeech": (
        ("nn", (69.96, 0.41), (62.80, 0.76), (26.45, 0.23, 6.43)),
        ("ny", (69.72, 0.43), (63.69, 0.36), (26.48, 0.14, 6.43)),
        ("yn", (73.76, 0.31), (62.15, 0.60), (25.98, 0.26, 6.43)),
        ("yy", (74.30, 0.52), (62.18, 0.64), (25.80, 0.10, 6.43)),
    ),
}

# parameters used per frame with 39 labels, by the sizes that the paper gives: sweep, condition, evaluation, how many
SIZES: Final = (
    ("table2", "always_small", "stochastic", 5_703_448),
    ("table2", "always_big", "stochastic", 7_540_504),
    ("table2", "random", "stochastic", 6_621_976),
    ("ablation", "no_ar,random", "random", 2_903_592),
    ("model1", "always_small", "stochastic", 5_959_448),
    ("model1", "always_big", "stochastic", 7_071_512),
    ("model2", "always_small", "stochastic", 5_959_448),
    ("model2", "always_big", "stochastic", 7_071_512),
    ("model3", "always_small", "stochastic", 3_280_152),
    ("model3", "always_big", "stochastic", 5_959_448),
)

# where else a shipped sweep has the setting of a row of Table 2: its name, whether that always ends in the data set's,
# the condition and evaluation there
ELSEWHERE: Final = {
    "random": (("lambda_grid", False, "random", "stochastic"),),
    "learned": (("lambda_grid", False, "released,lambda=0.001", "stochastic"),),
    "surprisal": (
        ("controller_bias", False, "surprisal", "bias_0"),
        ("ar_corpus", False, "larger_corpus,surprisal", "stochastic"),
    ),
    "big only": (
        ("ablation", True, "always_big", "stochastic"),
        ("budget", False, "always_big", "stochastic"),
        ("controller_bias", False, "always_big", "stochastic"),
    ),
    "small only": (
        ("ablation", True, "always_small", "stochastic"),
        ("budget", False, "always_small", "stochastic"),
        ("controller_bias", False, "always_small", "stochastic"),
    ),
}


def numbers() -> Iterator[NumberClaim]:
    """Every number that they printed, and the costs that follow from the sizes that they give."""
    yield from _table_2()
    for corpus in CORPORA:
        for flags, columns in ABLATIONS[corpus.key]:
            source = Source(PAPER, f"{corpus.ablation}, {flags}")
            identity = f"asr.{corpus.ablation.lower().replace(' ', '')}.{flags}"
            yield from _row(identity, corpus.sweep("ablation"), of_flags(flags), columns, source, corpus)
    for model, rows in APPENDIX_A.items():
        for flags, columns in rows:
            source, at = Source(PAPER, f"Appendix A, Model {model[-1]}, {flags}"), of_flags(flags)
            identity = f"asr.appendix_a.{model}.{flags}"
            yield from _row(identity, f"asr.{model}", at, columns, source, TIMIT, model)
    for corpus in CORPORA:
        yield from _appendix_c(corpus)
    source, at = Source(PAPER, "Section 4.3, TIMIT, lambda .0001"), ("released,lambda=0.0001", "stochastic")
    yield from _row("asr.appendix_d.1e-4", "asr.lambda_grid_timit", at, (23.97, None, 6.99), source, TIMIT)
    yield from _sizes()
    yield from _costs_on_valid_frames()


def _table_2() -> Iterator[NumberClaim]:
    for name, condition, *columns in TABLE_2:
        for corpus, printed in zip(CORPORA, columns, strict=True):
            table = corpus.ablation if name == "small only" else "Table 2"
            source = Source(PAPER, f"{table}, {corpus.title}, {name}")
            identity, at = f"asr.table2.{corpus.key}.{name.replace(' ', '_')}", (condition, "stochastic")
            for claim in _row(identity, corpus.sweep("table2"), at, printed, source, corpus):
                if name == "learned":
                    claim = replace(claim, note=_joined(claim.note, LEARNED))
                yield claim if name == "learned" else replace(claim, sweeps=(*claim.sweeps, *corpus.laptop))
                for sweep, has_end, *other in ELSEWHERE[name]:
                    yield _moved(claim, corpus.sweep(sweep) if has_end else corpus.bare_sweep(sweep), *other)
                if name == "surprisal" and corpus is MINI_LIBRISPEECH:
                    yield _moved(claim, "asr.ar_encoder", "gru,surprisal")
                    yield _moved(claim, "asr.joint_training", "frozen")


def _moved(claim: NumberClaim, sweep: str, condition: str, evaluation: str = "stochastic") -> NumberClaim:
    """The same number where another sweep has its setting."""
    place = replace(claim.place, condition=condition, evaluation=evaluation)
    name = sweep.removeprefix("asr.").removesuffix("_timit").removesuffix("_mini_librispeech")
    return replace(claim, id=f"{claim.id}.{name}", sweeps=(sweep,), place=place)


def _row(
    identity: str,
    sweep: str,
    at: tuple[str, str],
    printed: Printed,
    source: Source,
    corpus: Corpus,
    network: str = "recurrent",
) -> Iterator[NumberClaim]:
    """PER and FLOPs of a row, measured at a condition and evaluation."""
    condition, evaluation = at
    error = NumberClaim(
        id=f"{identity}.per",
        sweeps=(sweep,),
        place=Place(condition, "released_per", evaluation, scale=100),
        published=Published(printed[0], printed[1], NUM_SEEDS if printed[1] is not None else None),
        margin=PER_MARGIN[0],
        margin_reason=PER_MARGIN[1],
        source=source,
        setting=corpus.setting(network, of_errors=True),
        objective="per",
        row=source.place,
        note=_joined(corpus.note, _of_the_fit(at)),
    )
    yield error
    is_fixed = condition.startswith("always_")
    margin, reason = FIXED_MARGIN if is_fixed else ROUTED_MARGIN
    metric = "paper_flops_per_frame" if is_fixed else "released_flops_per_frame"
    yield replace(
        error,
        id=f"{identity}.flops",
        place=flops(condition, metric, evaluation),
        published=Published(printed[2]),
        margin=margin,
        margin_reason=reason,
        setting=corpus.setting(network),
        objective="macs_per_frame",
        note="" if is_fixed else _joined(PADDED, _of_the_fit(at)),
    )


def _of_the_fit(at: tuple[str, str]) -> str:
    return FITTED if any("surprisal" in part for part in at) or at[0].startswith("train_") else ""


def _joined(*notes: str) -> str:
    return " ".join(filter(None, notes))


def _appendix_c(corpus: Corpus) -> Iterator[NumberClaim]:
    kinds = {"y": "stochastic", "n": "deterministic"}
    for flags, train_nats, test_nats, columns in APPENDIX_C[corpus.key]:
        condition, evaluation = f"train_{kinds[flags[0]]}", kinds[flags[1]]
        source = Source(PAPER, f"Appendix C, {corpus.title}, stochastic in training and testing: {flags}")
        identity, sweep = f"asr.appendix_c.{corpus.key}.{flags}", corpus.bare_sweep("deterministic")
        error, cost = _row(identity, sweep, (condition, "stochastic"), columns, source, corpus)
        for claim in (error, cost):
            yield replace(claim, note=_joined(DECODED, claim.note)) if flags[1] == "n" else claim
        yield _loss(error, f"{identity}.test_loss", Place(condition, "test_loss_nats", evaluation), test_nats)
        train = _loss(error, f"{identity}.train_loss", Place(condition, "train_loss_nats"), train_nats)
        yield replace(train, bar="the paper does not say of which epoch the training loss is; ours is of the last")


def _loss(error: NumberClaim, identity: str, place: Place, printed: tuple[float, float]) -> NumberClaim:
    (nats, std), (share, reason) = printed, LOSS_MARGIN
    return replace(
        error,
        id=identity,
        place=place,
        published=Published(nats, std, NUM_SEEDS),
        margin=share * nats,
        margin_reason=reason,
        objective="",
    )


def _sizes() -> Iterator[NumberClaim]:
    for sweep, condition, evaluation, size in SIZES:
        margin, reason = HALF_MARGIN if "random" in condition else EXACT_MARGIN
        yield NumberClaim(
            id=f"asr.sizes.{sweep}.{condition}",
            sweeps=(f"asr.{sweep}" if sweep.startswith("model") else TIMIT.sweep(sweep),),
            place=Place(condition, "paper_flops_per_frame", evaluation),
            published=Published(size, is_computed=True),
            margin=margin,
            margin_reason=reason,
            source=Source(PAPER, "sizes in the text and Appendix A, counted with 39 labels"),
            setting=TIMIT.setting(sweep if sweep.startswith("model") else "recurrent"),
            direction="none",
        )


def _costs_on_valid_frames() -> Iterator[NumberClaim]:
    """What the surprisal model saves as printed, of the abstract's 15 %, and its cost on valid frames alone."""
    big = Place("always_big", "paper_flops_per_frame", "stochastic")
    counted = Source(PAPER, "Table 2's surprisal model, counted anew on valid frames")
    on_valid_frames = Place("surprisal", "paper_flops_per_frame", "stochastic", over=big)
    saving = NumberClaim(
        id="asr.saving.timit.valid",
        sweeps=("asr.table2_timit",),
        place=on_valid_frames,
        published=Published(0.88, is_computed=True),
        margin=SAVING_MARGIN[0],
        margin_reason=SAVING_MARGIN[1],
        source=counted,
        setting=TIMIT.setting(),
    )
    yield saving
    yield replace(
        saving,
        id="asr.saving.timit.printed",
        place=replace(on_valid_frames, metric="released_flops_per_frame"),
        published=Published(0.85, is_computed=True),
        source=Source(PAPER, "abstract: 15 % fewer FLOPs than big only, on TIMIT"),
        note=f"Counts padding, 43 % of the frames of TIMIT's test; on valid frames it is 12 %. {FITTED}",
    )
    for corpus, cost in ((TIMIT, 6.62), (MINI_LIBRISPEECH, 6.90)):
        yield replace(
            saving,
            id=f"asr.valid_flops.{corpus.key}",
            sweeps=(corpus.sweep("table2"),),
            place=flops("surprisal"),
            published=Published(cost, is_computed=True),
            margin=ROUTED_MARGIN[0],
            margin_reason=ROUTED_MARGIN[1],
            setting=corpus.setting(),
        )
