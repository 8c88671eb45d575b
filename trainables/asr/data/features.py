"""The front end: log-mel filterbank frames of a waveform."""

from jaxtyping import Float
from torch import Tensor
from torchaudio.compliance import kaldi

from trainables.asr.data.config import SAMPLE_RATE_HZ, Features

FIXED_SETTINGS = {
    "dither": 0.0,
    "remove_dc_offset": False,
    "round_to_power_of_two": False,
    "snip_edges": True,
}


def fbank(waveform: Float[Tensor, " N"], config: Features) -> Float[Tensor, "T F"]:
    """Natural-log power mel energies, pre-emphasis .97, 20 Hz to Nyquist, no mean normalisation.

    Frame t covers samples from `t * keep_every * hop`; a last frame that the audio does not fill is dropped.
    """
    frames: Tensor = kaldi.fbank(
        waveform[None],
        num_mel_bins=config.num_mel_bins,
        frame_length=config.window_ms,
        frame_shift=config.hop_ms,
        window_type=config.window,
        sample_frequency=SAMPLE_RATE_HZ,
        **FIXED_SETTINGS,
    )
    return frames[:: config.keep_every].contiguous()


def num_frames(num_samples: int, config: Features) -> int:
    """How many frames `fbank` makes of so many samples; 0 for audio shorter than one window."""
    window = config.window_samples
    dense = 1 + (num_samples - window) // config.hop_samples if num_samples >= window else 0
    return -(-dense // config.keep_every)
