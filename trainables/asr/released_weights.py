"""Weights of an autoregressive model as the paper's released code keeps them (arXiv:2006.01659).

They are a file of `torch.save`: the `state_dict` of the model alone, or that of a recogniser, which has it within. Its
encoder is one list of layers: the normaliser, a causal pad, and for each block a GRU, the choice of its outputs,
dropout, a linear layer and a leaky ReLU.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import Pretraining
from trainables.asr.macs import NUM_BLOCKS
from trainables.errors import InputError

MOST_NAMED: Final = 3
"""Differences that a message names."""

_WITHIN: Final = ("", "autoregressive_model.")
"""The beginnings of names in the model's own file and in a recogniser's."""


def read(path: Path, config: Pretraining) -> dict[str, Tensor]:
    """The state of an `AutoregressiveModel` of `config`, whose layers must have the shapes of the file's.

    Only tensors are loaded, never code.

    Raises:
        InputError: if it is no such file, or names, shapes or numbers are not those of the model.
    """
    tensors, names = _tensors(path), _names()
    start = max(_WITHIN, key=lambda start: sum(start + name in tensors for name in names))
    of_model = {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
    own = AutoregressiveModel(config).state_dict()
    faults = [f"lacks {name}" for name in names if name not in of_model]
    faults += [f"has {name} beside them" for name in of_model if name not in names]
    for name in names:
        if name in of_model and of_model[name].shape != own[names[name]].shape:
            has, wanted = (tuple(tensor.shape) for tensor in (of_model[name], own[names[name]]))
            faults.append(f"has {name} of shape {has} for {wanted}")
    if faults:
        more = f" and {len(faults) - MOST_NAMED} more such" if len(faults) > MOST_NAMED else ""
        raise InputError(
            f"{path} must hold the weights of {NUM_BLOCKS} GRU blocks with ar.hidden_size {config.hidden_size} and "
            f"ar.features.num_mel_bins {config.features.num_mel_bins}, but {', '.join(faults[:MOST_NAMED])}{more}; set "
            "these to the file's, or name another with `ar.weights`."
        )
    state = {own_name: of_model[name].to(own[own_name].dtype) for name, own_name in names.items()}
    broken = [name for name, own_name in names.items() if not state[own_name].isfinite().all()]
    if broken:
        raise InputError(
            f"{path} must hold finite weights, but {broken[0]} has others; name another with `ar.weights`."
        )
    return state


def _tensors(path: Path) -> Mapping[str, Tensor]:
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name another file with `ar.weights`.") from None
    except Exception:  # torch has no error of its own for what it did not write, or will not load
        content = None
    if not isinstance(content, Mapping) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise InputError(
            f"{path} must be a state_dict that torch.save wrote, with nothing but tensors; name another file with "
            "`ar.weights`."
        )
    return content


def _names() -> dict[str, str]:
    """The names in our model by those in the released model."""
    names = {f"encoder.layers.0.{part}": f"normaliser.{part}" for part in ("weight", "bias")}
    for block in range(NUM_BLOCKS):
        gru, linear = 2 + 5 * block, 5 + 5 * block
        for part in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            names[f"encoder.layers.{gru}.{part}"] = f"blocks.{block}.mixer.gru.{part}"
        for part in ("weight", "bias"):
            names[f"encoder.layers.{linear}.{part}"] = f"blocks.{block}.linear.{part}"
    return names | {f"regressor.{part}": f"regressor.{part}" for part in ("weight", "bias")}
