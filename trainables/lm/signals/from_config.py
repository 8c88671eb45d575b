"""The error signal that a config names."""

from jaxtyping import Int
from torch import Tensor

from trainables.lm.config import AnchoredEnsemble, McDropout, Signal, Surprisal, Variational, WeakSupervision
from trainables.lm.noise import Noise
from trainables.lm.signals.error_signal import Decoders, ErrorSignal
from trainables.lm.signals.probe import ProbeSignal, Supervision
from trainables.lm.signals.surprisal import SurprisalSignal
from trainables.lm.signals.uncertainty import DropoutSignal, EnsembleSignal, MomentsSignal, VariationalSignal


def error_signal(
    config: Signal,
    decoders: Decoders,
    targets: Int[Tensor, "T B"],
    noise: Noise,
    keeps: bool = False,
    supervision: Supervision | None = None,
) -> ErrorSignal:
    """The signal that `config` names, over one window.

    Raises:
        ValueError: if a probe has no supervision.
    """
    match config:
        case Surprisal():
            return SurprisalSignal(config, decoders, targets, noise, keeps)
        case McDropout():
            return (
                MomentsSignal(config, decoders)
                if config.estimator == "moments"
                else DropoutSignal(config, decoders, noise)
            )
        case AnchoredEnsemble():
            return EnsembleSignal(config, decoders, noise)
        case Variational():
            return VariationalSignal(config, decoders, noise)
        case WeakSupervision():
            if supervision is None:
                raise ValueError("`supervision` must be given to a probe, but got None.")
            return ProbeSignal(config, supervision)
