"""How often the theorems of the thesis hold for a trained model (Ulmer 2019, study of chapter 6).

Theorem 1: a step alpha up to 2 / L, L the Lipschitz constant of the gradient, does not raise delta. Theorem 2: recoding
step t does not raise delta later on, when all later steps are recoded as well; its proof takes a gradient that is not
the one that is followed, so that violations are to be expected. Both are looked at in float64, because rounding decides
where little changes, and with every token recoded.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from trainables import rng
from trainables.lm import noise
from trainables.lm.config import ClosedForm, Recoder
from trainables.lm.gate_config import Always
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise
from trainables.lm.signals.error_signal import Decoders
from trainables.lm.step_config import FixedStep, LipschitzStep
from trainables.lm.step_sizes import StepSizes
from trainables.lm.streams import NO_TARGET, Window

SIZES: Final = (1e-3, 1e-2, 0.1, 1.0, 5.0, 10.0, 25.0, 100.0)
SHARES: Final = (0.5, 1.0, 2.0, 4.0)
"""Step sizes alpha L."""

MAX_DISTANCE: Final = 10


@torch.no_grad()
def first(network: Network, window: Window, attached: AttachedRecoder, seed: int) -> dict[str, float]:
    """The share of the tokens with delta after recoding <= delta before, by step size and by alpha L."""
    network, attached = _in_float64(network, attached)
    steps: dict[str, FixedStep | LipschitzStep] = {f"alpha={size:g}": FixedStep(size=size) for size in SIZES}
    steps |= {f"alpha={share:g}/L": LipschitzStep(share=share, num_iterations=3) for share in SHARES}
    shares = {}
    for name, step in steps.items():
        recoder = attached.recoder.model_copy(update={"step": step, "gradient": ClosedForm()})
        changed = replace(attached, recoder=recoder, steps=StepSizes(step, 2 * network.config.num_layers, 0))
        run = _run(network, window, changed, _noise(network, window, recoder, seed), True)
        assert run.trace
        before, after = torch.stack(run.trace.before), torch.stack(run.trace.after)
        is_target = window.targets != NO_TARGET
        shares[name] = float((after <= before)[is_target].double().mean())
    return shares


@torch.no_grad()
def second(network: Network, window: Window, attached: AttachedRecoder, seed: int) -> dict[str, float]:
    """The share of the tokens k behind a recoded one with delta <= what it is when that one is not, for k = 1 to 10."""
    network, attached = _in_float64(network, attached)
    drawn = _noise(network, window, attached.recoder, seed)
    with_all = _deltas(_run(network, window, attached, drawn, False))
    held: list[list[Tensor]] = [[] for _ in range(MAX_DISTANCE)]
    for step in range(len(window.targets) - 1):
        without = _deltas(_run(network, window, attached, _without(drawn, step, window.targets), False))
        for k, place in enumerate(range(step + 1, min(step + 1 + MAX_DISTANCE, len(with_all)))):
            is_target = window.targets[place] != NO_TARGET
            held[k].append((with_all[place] <= without[place])[is_target])
    return {f"k={k + 1}": float(torch.cat(parts).double().mean()) for k, parts in enumerate(held) if parts}


def _noise(network: Network, window: Window, recoder: Recoder, seed: int) -> Noise:
    device = window.targets.device
    generator = torch.Generator(device).manual_seed(rng.derive(seed, "theorems"))
    shape = (window.targets.shape[0], window.targets.shape[1])
    return noise.draw(network.config, recoder, shape, network.vocabulary_size, generator, is_training=False)


def _without(drawn: Noise, step: int, targets: Tensor) -> Noise:
    """The noise with the gate shut at one step."""
    gates = torch.ones(targets.shape, device=targets.device) if drawn.gates is None else drawn.gates.clone()
    gates[step] = 0.0
    return replace(drawn, gates=gates)


def _in_float64(network: Network, attached: AttachedRecoder) -> tuple[Network, AttachedRecoder]:
    """Copies of both, with the gate always open."""
    members = attached.members
    if members is not None:
        members = Decoders(members.weight.double(), members.bias.double())
    recoder = attached.recoder.model_copy(update={"gate": Always()})
    steps = copy.deepcopy(attached.steps).double()
    return copy.deepcopy(network).double().eval(), AttachedRecoder(recoder, steps, members, attached.supervision)


def _run(network: Network, window: Window, attached: AttachedRecoder, drawn: Noise, measures_after: bool) -> Run:
    zeros = network.zeros(window.targets.shape[1], attached.recoder)
    run: Run = network(window, zeros, drawn, attached, measures_after)
    return run


def _deltas(run: Run) -> Sequence[Tensor]:
    assert run.trace
    return run.trace.before
