"""Checks of predictions: something is changed that must not matter, and what moves is a finding."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.audit.first_steps import as_array
from orchestrator.results.audit import Finding, unchecked
from trainables.errors import InputError, shown, text_of
from trainables.importing import in_one_sentence
from trainables.prediction import Example, Predict, Prediction, Promises

LEAST_RELATIVE, MOST_RELATIVE, ABSOLUTE = 2e-5, 1e-3, 1e-6
"""Probabilities that differ by less are equal: products of matrices of other shapes round in another order."""

ROUNDING: Final = 32
"""How many times as much as copies of an item differ from the item alone, within these limits, is still rounding."""

MOST_OFF: Final = 1e-3
"""How far a sum of probabilities may be from 1."""

MOST_UNCOUNTED: Final = 0.001
"""How far the multiply-accumulates that ran may be from those that were counted, as a share."""

NUM_CHANGED: Final = 2
"""Examples that are changed, one after the other."""

BATCHES: Final = (1, 15)
"""Copies of an item to which one is added, to count what it costs: large batches may take another way."""

NUM_CUTS: Final = 8
LEAST_CUT: Final = 8
"""Shorter items are not cut."""

REPEATED, SUMS, CAUSAL, BLIND, BATCH, COUNTED = (
    "repeats", "sums to 1", "prefix causality", "blind to targets", "batch and padding", "counted is executed",
)  # fmt: skip

TIED: Final = "predictions are reported"
"""A finding where `predict` itself asserts that, and it does not hold."""

CHECKS: Final = (REPEATED, SUMS, CAUSAL, BLIND, BATCH, COUNTED)

Change = tuple[str, list[Example], dict[int, int | None]]
"""What was changed, all examples then, and which may not move: each up to a place, or (None) all of it."""


def of_predictions(
    predict: Predict, examples: Sequence[Example], promises: Promises, crowd: Sequence[Example] = ()
) -> list[Finding]:
    """All checks of predictions, on a few examples.

    Args:
        crowd: others that may be predicted behind them, in one large batch.

    Raises:
        InputError: if `predict` fails, or does not give what it must.
    """
    predict, examples = _checked(predict), list(examples)
    try:
        before = predict(examples)
    except InputError as error:
        if isinstance(error.__cause__, NotImplementedError):  # it says itself what it cannot
            return [unchecked(check, text_of(error.__cause__)) for check in CHECKS]
        if isinstance(error.__cause__, AssertionError):  # it holds its predictions against what the model reports
            first = text_of(error.__cause__).partition("\n")[0]
            tied = Finding(TIED, "finding", "nothing", f"predictions from what is reported of them: {first}")
            return [tied, *(unchecked(check, "predictions are not what is reported") for check in CHECKS)]
        raise
    sums = _sums(before, examples)
    again = _first_moved(before, predict(examples), dict.fromkeys(range(len(examples))), examples, MOST_RELATIVE)
    if again:
        moved = Finding(REPEATED, "finding", "nothing, predicted again", *again)
        why = "two predictions of the same differ"
        return [moved, sums, *(unchecked(check, why) for check in (CAUSAL, BLIND, BATCH, COUNTED))]
    run = predict, before, examples, promises, _rounding(predict, examples, promises)
    return [
        Finding(REPEATED),
        sums,
        _causality(*run),
        _blindness(*run),
        _batch(*run, crowd),
        _counted(predict, examples[0]),
    ]


def chosen(examples: Sequence[Example], number: int) -> list[Example]:
    """So many of the examples: from the shortest to the longest, so that some are padded."""
    ranked = sorted(examples, key=lambda example: len(example.inputs))
    places = np.linspace(0, len(ranked) - 1, min(number, len(ranked))).round().astype(int)
    return [ranked[place] for place in places]


def _rounding(predict: Predict, examples: list[Example], promises: Promises) -> float:
    """The relative difference of probabilities that is rounding: by an item alone, and in a batch of its copies.

    Whatever a model takes from a batch, of copies it takes what it takes of the item alone.
    """
    if promises.draws or promises.carries:  # then copies differ
        return MOST_RELATIVE
    most = 0.0
    for example in examples:
        (alone,), (copy, *_) = predict([example]), predict([example] * len(examples))  # draws may depend on the name
        if alone.probabilities.shape == copy.probabilities.shape:
            apart = np.abs(alone.probabilities - copy.probabilities) / (alone.probabilities + ABSOLUTE / LEAST_RELATIVE)
            most = max(most, float(np.nan_to_num(apart).max(initial=0)))
    return min(max(ROUNDING * most, LEAST_RELATIVE), MOST_RELATIVE)


def _sums(before: Sequence[Prediction], examples: Sequence[Example]) -> Finding:
    for prediction, example in zip(before, examples, strict=True):
        values = prediction.probabilities
        is_asked = ~np.isnan(values).all(-1)
        asked = values[is_asked]
        off = np.nan_to_num(np.abs(asked.sum(-1) - 1), nan=np.inf)
        off = np.maximum(off, np.nan_to_num(np.maximum(-asked, asked - 1).max(-1, initial=0), nan=np.inf))
        if off.size and off.max() > MOST_OFF:
            place = tuple(np.argwhere(is_asked)[off.argmax()].tolist())
            what = (
                f"the sum of the {values.shape[-1]} probabilities of {example.name} at {_place(place)}, or one of them"
            )
            return Finding(SUMS, "finding", "nothing", what, float(off.max()))
    return Finding(SUMS)


def _causality(
    predict: Predict, before: Sequence[Prediction], examples: list[Example], promises: Promises, rounding: float
) -> Finding:
    if not promises.causal:
        return unchecked(CAUSAL, "it is not promised (causal=False)")
    fits = [i for i, p in enumerate(before) if len(p.probabilities) == len(examples[i].inputs) > 1]
    if not fits:
        return unchecked(CAUSAL, "no example has a prediction for each of two or more places of its inputs")

    def changes() -> Iterator[Change]:
        for i in fits[-NUM_CHANGED:]:
            for cut in _cuts(len(examples[i].inputs)):
                for how, inputs in _replacements(examples, i, cut + 1, "inputs"):
                    others = [*examples]
                    others[i] = replace(examples[i], inputs=inputs)
                    yield f"inputs of {examples[i].name} after {_place((cut,))} {how}", others, {i: cut}

    for i in fits[-NUM_CHANGED:]:
        cuts = _cuts(len(examples[i].inputs))
        for cut in cuts[1:-1:2] or cuts:
            after = _possible(predict, [*examples[:i], _until(examples[i], cut + 1), *examples[i + 1 :]])
            if after and (found := _first_moved(before, after, {i: cut}, examples, rounding, asks_anew=True)):
                changed = f"inputs of {examples[i].name} cut off after {_place((cut,))}"
                return Finding(CAUSAL, "finding", changed, *found)
    return _answer(CAUSAL, predict, before, examples, changes(), rounding)


def _blindness(
    predict: Predict, before: Sequence[Prediction], examples: list[Example], promises: Promises, rounding: float
) -> Finding:
    with_targets = [i for i, example in enumerate(examples) if example.targets is not None]
    if not with_targets:
        return unchecked(BLIND, "no example has targets")
    if not promises.adapts:

        def all_changes() -> Iterator[Change]:
            kinds = [_replacements(examples, i, 0, "targets") for i in with_targets]
            for number in range(max(map(len, kinds))):
                others = [*examples]
                for i, kind in zip(with_targets, kinds, strict=True):
                    if number < len(kind):
                        how, targets = kind[number]
                        others[i] = replace(examples[i], targets=targets)
                yield f"targets of all examples {how}", others, dict.fromkeys(range(len(examples)))

        for i in with_targets:
            own = examples[i].targets
            if len(as_array(own)) not in (0, 1, len(examples[i].inputs)):  # such as the phones of an utterance
                others = [*examples]
                others[i] = replace(examples[i], targets=own[: len(own) // 2])
                after = _possible(predict, others)
                if after and (found := _first_moved(before, after, {i: None}, examples, rounding, asks_anew=True)):
                    return Finding(BLIND, "finding", f"half of the targets of {examples[i].name} left out", *found)
        return _answer(BLIND, predict, before, examples, all_changes(), rounding)
    fits = [i for i in with_targets if len(before[i].probabilities) == len(examples[i].targets)]
    if not fits:
        return unchecked(BLIND, "it adapts, and no example has a prediction for each of its targets")

    def later_changes() -> Iterator[Change]:
        for i in fits[-NUM_CHANGED:]:
            for cut in _cuts(len(examples[i].targets)):
                for how, targets in _replacements(examples, i, cut, "targets"):
                    others = [*examples]
                    others[i] = replace(examples[i], targets=targets)
                    yield f"targets of {examples[i].name} from {_place((cut,))} on {how}", others, {i: cut}

    return _answer(BLIND, predict, before, examples, later_changes(), rounding)


def _batch(
    predict: Predict,
    before: Sequence[Prediction],
    examples: list[Example],
    promises: Promises,
    rounding: float,
    crowd: Sequence[Example],
) -> Finding:
    """An example alone, cut short, in another order, among many, beside others; with `draws` the last alone.

    With `carries` the last two. What is drawn may depend on how many examples there are.

    Items that are all of one length are never padded, so that one is cut.
    """
    if len(examples) < 2:
        return unchecked(BATCH, "there is one example")
    same = dict.fromkeys(range(len(examples)))
    if not (promises.draws or promises.carries):
        for i, example in enumerate(examples):
            if found := _first_moved([before[i]], predict([example]), {0: None}, [example], rounding):
                return Finding(BATCH, "finding", f"{example.name} alone, without {len(examples) - 1} others", *found)
        backwards = examples[::-1]
        if found := _first_moved(before[::-1], predict(backwards), same, backwards, rounding):
            return Finding(BATCH, "finding", "the order of the examples turned round", *found)
        short = _cut_short(examples)
        alone, beside = (_possible(predict, [short, *more]) if short else None for more in ((), examples[1:]))
        if short and alone and beside and (found := _first_moved(alone, beside, {0: None}, [short], rounding)):
            return Finding(BATCH, "finding", f"{short.name} beside {len(examples) - 1} longer ones", *found)
    crowd = () if promises.draws else crowd
    if crowd and (found := _first_moved(before, predict([*examples, *crowd]), same, examples, rounding)):
        return Finding(BATCH, "finding", f"{len(crowd)} more behind {len(examples)} examples", *found)

    def changes() -> Iterator[Change]:
        for i, example in enumerate(examples):
            changed = [j for j in range(len(examples)) if j > i or (j < i and not promises.carries)]
            others = [*examples]
            for j in changed:
                inputs = (_replacements(examples, j, 0, "inputs") or [("", examples[j].inputs)])[0][1]
                targets = examples[j].targets
                if targets is not None:
                    targets = (_replacements(examples, j, 0, "targets") or [("", targets)])[0][1]
                others[j] = replace(examples[j], inputs=inputs, targets=targets)
            if changed:
                where = "behind" if promises.carries else "beside"
                yield f"the {len(changed)} examples {where} {example.name} replaced", others, {i: None}

    return _answer(BATCH, predict, before, examples, changes(), rounding)


def _cut_short(examples: list[Example]) -> Example | None:
    """The first example without its end, where all are of one length; its targets too, where there is one a place."""
    first, lengths = examples[0], {len(example.inputs) for example in examples}
    if len(lengths) > 1 or (length := lengths.pop()) < LEAST_CUT:
        return None
    short = _until(first, length * 5 // 8)
    return replace(short, name=f"{first.name}, cut to {len(short.inputs)} places,")


def _until(example: Example, end: int) -> Example:
    """The first places of an example, and their targets, if there is one for each."""
    has_each = example.targets is not None and len(as_array(example.targets)) == len(example.inputs)
    return replace(example, inputs=example.inputs[:end], targets=example.targets[:end] if has_each else example.targets)


def _possible(predict: Predict, examples: list[Example]) -> Sequence[Prediction] | None:
    """What is predicted; None of a model that takes items of one length alone."""
    try:
        return predict(examples)
    except InputError:
        return None


def _counted(predict: Predict, example: Example) -> Finding:
    """One copy more, of few and of many: what runs once, whatever is predicted, falls out."""
    from trainables.conditional.macs import count_macs

    for number in BATCHES:
        counted, ran, masked = [], [], 0.0
        for copies in (number, number + 1):
            with count_macs() as macs:
                predictions = predict([example] * copies)
            if any(prediction.macs is None for prediction in predictions):
                return unchecked(COUNTED, "predictions have no `macs`")
            counted.append(sum(prediction.macs or 0.0 for prediction in predictions))
            masked = predictions[0].uncounted
            ran.append(macs.total)
        said, did = counted[1] - counted[0], ran[1] - ran[0]
        if abs(did - masked - said) > MOST_UNCOUNTED * max(said, 1):
            moved = f"multiply-accumulates: {did:,} ran and {said:,.0f} are counted"
            return Finding(
                COUNTED, "finding", f"{example.name} predicted once more, beside {number}", moved, float(did - said)
            )
    return Finding(COUNTED)


def _answer(
    check: str,
    predict: Predict,
    before: Sequence[Prediction],
    examples: list[Example],
    changes: Iterable[Change],
    rounding: float,
) -> Finding:
    is_any = False
    for changed, others, still in changes:
        is_any = True
        if found := _first_moved(before, predict(others), still, examples, rounding, check == BLIND):
            return Finding(check, "finding", changed, *found)
    return Finding(check) if is_any else unchecked(check, "all that could be changed is alike")


def _first_moved(
    before: Sequence[Prediction],
    after: Sequence[Prediction],
    still: dict[int, int | None],
    examples: list[Example],
    rounding: float,
    asks_anew: bool = False,
) -> tuple[str, float] | None:
    """What moved first of what must stay, and by how much; `asks_anew`: the places that are asked may be others."""
    for i, last in still.items():
        end = None if last is None else last + 1
        for name, least in (("probabilities", True), ("decisions", False)):
            one, other = getattr(before[i], name), getattr(after[i], name)
            if one is None or other is None:
                continue
            one, other = one[:end], other[:end]
            if one.shape != other.shape:
                return f"the shape of the {name} of {examples[i].name}", float(abs(one.size - other.size))
            apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
            bound = ABSOLUTE + rounding * np.maximum(np.abs(one), np.abs(other)) if least else 0.0
            is_moved = (np.isfinite(one) != np.isfinite(other)) | (apart > bound)
            if asks_anew and least:
                is_moved &= ~(np.isnan(one).all(-1, keepdims=True) | np.isnan(other).all(-1, keepdims=True))
            if is_moved.any():
                place = np.argwhere(is_moved)[0][:1].tolist()
                by = float(np.nan_to_num(apart[is_moved].max(), nan=np.inf, posinf=np.inf))
                return f"{name} of {examples[i].name} from {_place(place)} on", by
    return None


def _cuts(length: int) -> list[int]:
    """Places behind which, or from which on, something is changed."""
    return sorted({*np.linspace(0, max(0, length - 2), NUM_CUTS).round().astype(int).tolist()})


def _replacements(examples: Sequence[Example], i: int, start: int, name: str) -> list[tuple[str, Any]]:
    """The inputs or targets of an example with those from `start` on changed; each way that changes anything."""
    own = getattr(examples[i], name)
    values = as_array(own)
    if values.ndim == 0 or start >= len(values):
        return []
    rest = values[start:]
    ways = {"turned round": rest[::-1], "all alike": np.broadcast_to(rest[:1], rest.shape)}
    if np.issubdtype(values.dtype, np.floating):  # which moves what lies behind a threshold
        ways["turned over and five times as large"] = -5 * rest
    donors = [as_array(other) for e in (*examples[i + 1 :], *examples[:i]) if (other := getattr(e, name)) is not None]
    fitting = [donor for donor in donors if donor.ndim == values.ndim and donor.shape[1:] == values.shape[1:]]
    for donor in (donor for donor in fitting if len(donor)):
        taken = np.resize(donor[start:] if len(donor) > start else donor, rest.shape)
        if not np.array_equal(taken, rest):
            ways = {"replaced by those of another": taken} | ways
            break
    made = []
    for how, new in ways.items():
        if not np.array_equal(new, rest):
            made.append((how, _as_given(np.concatenate([values[:start], new]).astype(values.dtype), own)))
    return made


def _checked(predict: Predict) -> Callable[[Sequence[Example]], list[Prediction]]:
    def call(examples: Sequence[Example]) -> list[Prediction]:
        with in_one_sentence("`predict` fails"):
            predictions = list(predict(list(examples)))
        if len(predictions) != len(examples):
            rule = "`predict` must return a prediction for each example"
            raise InputError(f"{rule}, but it returned {len(predictions)} for {len(examples)}.")
        made = []
        for prediction in predictions:
            if not isinstance(prediction, Prediction):
                raise InputError(f"`predict` must return `ponderay.Prediction`s, but got {shown(prediction)}.")
            probabilities = np.asarray(as_array(prediction.probabilities), dtype=np.float64)
            if probabilities.ndim < 2:
                rule = "`probabilities` must have a row for each place and a column for each output"
                raise InputError(f"{rule}, but its shape is {probabilities.shape}; one place is [[...]].")
            decisions = None if prediction.decisions is None else as_array(prediction.decisions)
            made.append(replace(prediction, probabilities=probabilities, decisions=decisions))
        return made

    return call


def _as_given(values: NDArray[Any], like: Any) -> Any:
    """An array of torch where it was one."""
    if not hasattr(like, "detach"):
        return values
    import torch

    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)


def _place(place: Sequence[int]) -> str:
    return "place " + ", ".join(map(str, place))
