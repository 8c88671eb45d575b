"""What `ponderay audit` asks of a trainable: test items, what a trained model predicts of each, and what it promises.

    def examples(config, part):                                       # part is "train" or "test"
        return [ponderay.Example(name, inputs, targets, group=speaker), ...]

    def predict(config, checkpoint, evaluation, trial, examples):
        return [ponderay.Prediction(probabilities), ...]              # one for each example, in their order

    def promises(config, evaluation):                                 # only where a default does not hold
        return ponderay.Promises(causal=False)

Arrays are of numpy or torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Example:
    """One item of a data set.

    Attributes:
        inputs: what the model reads, an array whose first axis is time: (T ...).
        targets: what is right, an array; None where there is nothing.
        group: whom it is of, such as a speaker; empty: nobody's.
    """

    name: str
    inputs: Any
    targets: Any = None
    group: str = ""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a trained model predicts of one example.

    Attributes:
        probabilities: of the K outputs at each place (T ... K); NaN at a place where nothing is asked.
        decisions: which way each place went, such as its network or number of updates (T ...).
        macs: multiply-accumulates as the trainable counts them, of this example alone; without them it is not checked
            whether what is counted runs.
        uncounted: those that run beyond them on purpose, such as the masked half of an attention.
    """

    probabilities: Any
    decisions: Any = None
    macs: float | None = None
    uncounted: float = 0.0


@dataclass(frozen=True)
class Promises:
    """What holds of the predictions; whoever promises less is not tested for it.

    Attributes:
        causal: what is predicted at a place, and decided there, uses the inputs up to that place alone.
        adapts: what is predicted at a place may use the targets of the places before it.
        carries: what is predicted of an example may use the examples before it in the list.
        draws: predictions are drawn, and what is drawn depends on its place in the list and their number.
        same_start: every seed begins with the same weights, such as downloaded ones; or names of those that all share.
        same_order: every seed reads the same data in the same order, such as a text from its beginning.
        generated: training and test items are drawn alike, so that equal ones are chance.
    """

    causal: bool = True
    adapts: bool = False
    carries: bool = False
    draws: bool = False
    same_start: bool | Sequence[str] = False
    same_order: bool = False
    generated: bool = False


Predict = Callable[[Sequence[Example]], Sequence[Prediction]]
"""`predict` of one trained model under one evaluation."""
