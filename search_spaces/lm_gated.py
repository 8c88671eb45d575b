"""Sweeps of surprisal recoding in part: of some tokens (gates), and of some layers and activations."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from search_spaces.lm_conditions import BASELINE, lm_sweep
from search_spaces.lm_sizes import SURPRISAL, Scale, base, brief
from search_spaces.size import Size
from search_spaces.sweep import Condition, Sweep, SweepFunction
from trainables.lm.config import Evaluation
from trainables.lm.gate_config import Chance, EntropyThreshold, Gate, Threshold
from trainables.lm.step_config import FixedByLayer

SURPRISALS: Final = (2.0, 4.0, 6.0, 8.0)
"""Nats that a word's surprisal must exceed; known when it has come."""

ENTROPIES: Final = (2.0, 4.0, 5.0, 6.0)
"""Nats that the entropy of the prediction must exceed; known before the word."""

RATES: Final = (0.2, 0.4, 0.6, 0.8)
"""Shares of the tokens that are recoded at random: over the range of what the thresholds let through."""

TRAINED: Final[Mapping[str, Gate]] = {
    "surprisal,min=4": Threshold(min_delta=4.0),
    "entropy,min=4": EntropyThreshold(min_entropy=4.0),
    "random,rate=0.5": Chance(probability=0.5),
}
"""Gates that are trained with as well, one of each kind."""

LAYERS: Final[Mapping[str, FixedByLayer]] = {
    "h": FixedByLayer(h=(1, 1), c=(0, 0)),
    "c": FixedByLayer(h=(0, 0), c=(1, 1)),
    "layer_1": FixedByLayer(h=(1, 0), c=(1, 0)),
    "layer_2": FixedByLayer(h=(0, 1), c=(0, 1)),
    "h_1": FixedByLayer(h=(1, 0), c=(0, 0)),
    "c_1": FixedByLayer(h=(0, 0), c=(1, 0)),
    "h_2": FixedByLayer(h=(0, 1), c=(0, 0)),
    "c_2": FixedByLayer(h=(0, 0), c=(0, 1)),
    "layer_1=0.3": FixedByLayer(h=(0.3, 1), c=(0.3, 1)),
    "layer_2=0.3": FixedByLayer(h=(1, 0.3), c=(1, 0.3)),
    "h=0.3": FixedByLayer(h=(0.3, 0.3), c=(1, 1)),
    "c=0.3": FixedByLayer(h=(1, 1), c=(0.3, 0.3)),
}
"""What is recoded alone, and what has a smaller step than the rest; layer 1 is the lower one of two."""


SMALL: Final = " A small model on a part of WikiText-2."


def gated(scale: Scale, size: Size = "full") -> Sweep:
    """Which tokens to recode: perplexity against cost over thresholds of surprisal, of entropy, and at random.

    A gate has nothing to learn: all of them are tested on the model that was trained with an open one (`always`). One
    of each kind is trained with as well, because a model may adapt to its gate.
    """
    by = 2 if size == "smoke" else 1
    gates: dict[str, Gate] = {f"surprisal_{bound:g}": Threshold(min_delta=bound) for bound in SURPRISALS[by - 1 :: by]}
    gates |= {f"entropy_{bound:g}": EntropyThreshold(min_entropy=bound) for bound in ENTROPIES[by - 1 :: by]}
    gates |= {f"random_{100 * rate:g}": Chance(probability=rate) for rate in RATES[by - 1 :: by]}
    tests = (Evaluation(name=name, recoder=SURPRISAL.model_copy(update={"gate": gate})) for name, gate in gates.items())
    always = Condition("always", {"recoder": SURPRISAL, "evaluations": (Evaluation(), *tests)})
    trained = [
        Condition(name, {"recoder": SURPRISAL.model_copy(update={"gate": gate})}) for name, gate in TRAINED.items()
    ]
    about = "Surprisal recoding of some tokens: by surprisal, by entropy, at random; against cost."
    name, more, config = ("gated_laptop", SMALL, brief(size)) if scale == "laptop" else ("gated", "", None)
    return lm_sweep(name, about + more, (BASELINE, always, *trained), size, config, claims="")


def layers(scale: Scale, size: Size = "full") -> Sweep:
    """Section 7.1: whether one constant step suits all layers and activations."""
    steps = dict(list(LAYERS.items())[2::6]) if size == "smoke" else LAYERS
    conditions = [
        Condition(name, {"recoder": SURPRISAL.model_copy(update={"step": step})}) for name, step in steps.items()
    ]
    about = "Section 7.1: surprisal recoding of some layers or activations, or with steps of their own."
    whole = Condition("all", {"recoder": SURPRISAL})
    name, more = ("layers_laptop", SMALL) if scale == "laptop" else ("layers", "")
    return lm_sweep(name, about + more, (BASELINE, whole, *conditions), size, base(scale, size), claims="")


SWEEPS: Final[Mapping[str, SweepFunction]] = {
    "gated": partial(gated, "thesis"),
    "gated_laptop": partial(gated, "laptop"),
    "layers": partial(layers, "thesis"),
    "layers_laptop": partial(layers, "laptop"),
}
"""Recoding in part."""
