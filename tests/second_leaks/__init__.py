"""Models with one planted leak or fault each, and some that only look like it, for `ponderay audit`.

`LEAKS` and `CLEAN` name each by its place. Those of `asr_.py` need LibriSpeech in PONDERAY_DATA, but `rated`.
"""

_HERE = "tests/second_leaks"

LEAKS: dict[str, tuple[str, str]] = {
    f"{_HERE}/own.py:progress": (
        "later inputs",
        "reads t / T, the share of the record that is over: later inputs by their number alone",
    ),
    f"{_HERE}/own.py:events": (
        "later inputs",
        "updates its state where a central difference is above a threshold: a decision looks one step ahead",
    ),
    f"{_HERE}/own.py:pointer": (
        "probabilities",
        "adds .05 to the sign that is copied and takes it from no other: sums of 1.05 at a few late places",
    ),
    f"{_HERE}/own.py:positioned": (
        "batch",
        "filled up on the left, and the places are counted from the batch's first: the longest item moves the others",
    ),
    f"{_HERE}/own.py:windows": (
        "items in training",
        "windows of one series that overlap by three quarters are split at random: near, but no two begin alike",
    ),
    f"{_HERE}/own.py:reservoir": (
        "seeds",
        "the recurrent weights are drawn with seed 0, the readout alone with the replicate's seed",
    ),
    f"{_HERE}/own.py:epochs": (
        "seeds",
        "each epoch calls torch.manual_seed: order and dropout are the same for all seeds, the first weights are not",
    ),
    f"{_HERE}/act_.py:oracle": (
        "targets",
        "from the third update on a step also ends where its answer is right",
    ),
    f"{_HERE}/act_.py:dense": (
        "cost",
        "in batches of eight sequences and more all rows take all updates, but those before their halt are counted",
    ),
    f"{_HERE}/asr_.py:filled": (
        "items in training",
        "two of ten test utterances, the last ones, are of a speaker of the training",
    ),
    f"{_HERE}/asr_.py:rated": (
        "targets",
        "utterances of more than .35 phones a frame take the big network more often: targets by their number alone",
    ),
    f"{_HERE}/lm_.py:ring": (
        "score before adapt",
        "a full cache has the word that is to be predicted: it is written before it is read",
    ),
    f"{_HERE}/lm_.py:all_files": (
        "items in training",
        "the training text ends with the test text, cut in stretches elsewhere",
    ),
    f"{_HERE}/routed_.py:refitted": (
        "batch",
        "in batches of eight sequences and more the threshold is their own quantile: other sequences and later bytes",
    ),
    f"{_HERE}/routed_.py:shared": (
        "cost",
        "the small network runs on all bytes, and is counted where it is chosen: under one percent of the cost",
    ),
}
"""Kind, and what is wrong."""

CLEAN: dict[str, str] = {
    f"{_HERE}/own.py:rightly_positioned": "filled up on the left, but masked and counted from each item's own first",
    f"{_HERE}/own.py:taught": "a bidirectional network is in the checkpoint, and trains the one that predicts; "
    "test items are also in training by chance, as is promised",
    f"{_HERE}/own.py:prior": "takes targets, each behind its place, as is promised",
    f"{_HERE}/act_.py:smoothed": "changes targets in training alone; an exit by the network's own confidence",
    f"{_HERE}/routed_.py:backwards": "sequences go through in parts of three, in the other order, and come back; top-k",
}
"""Why it is right."""
