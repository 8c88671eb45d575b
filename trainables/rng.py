"""Random streams: every one derives from the config's seed and a name, and can be saved and put back."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


def derive(seed: int, *names: object) -> int:
    """A 63-bit seed for the stream `names` of `seed`; streams of different names are independent."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: object) -> "torch.Generator":
    """A torch stream (CPU) of its own, for draws that must not disturb the global one."""
    import torch

    return torch.Generator().manual_seed(derive(seed, *names))


def numpy_generator(seed: int, *names: object) -> np.random.Generator:
    """A NumPy stream of its own."""
    return np.random.Generator(np.random.Philox(derive(seed, *names)))


def seed_everything(seed: int) -> None:
    """Start the global streams of Python, NumPy and torch (all devices) from `seed`."""
    import torch

    random.seed(derive(seed, "python"))
    np.random.seed(derive(seed, "numpy") % 2**32)
    torch.manual_seed(derive(seed, "torch"))


def keyed_uniform(num_draws: int, seed: int, *names: object) -> Float[NDArray[np.float64], " T"]:
    """`num_draws` uniform numbers in [0, 1) that depend on the seed, the names and the position alone.

    Draw t is the same whatever else is drawn, so batching and padding cannot change it.
    """
    return numpy_generator(seed, *names).random(num_draws)


def capture(**streams: "torch.Generator") -> dict[str, Any]:
    """The state of the global streams and of the named `streams`, loadable with `weights_only=True`."""
    import torch

    numpy_state = np.random.get_state(legacy=False)
    version, internal, gauss = random.getstate()
    return {
        "python": [version, list(internal), gauss],
        "numpy": [
            torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
            int(numpy_state["state"]["pos"]),
            int(numpy_state["has_gauss"]),
            float(numpy_state["gauss"]),
        ],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "streams": {name: stream.get_state() for name, stream in streams.items()},
    }


def put_back_process(
    states: Sequence[Mapping[str, Any]],
    rank: int,
    shared: Mapping[str, "torch.Generator"],
    own: Mapping[str, "torch.Generator"] | None = None,
) -> None:
    """Continue the streams of process `rank`; one that the earlier run did not have keeps its fresh ones.

    Args:
        states: what `capture` saw in each process of the earlier run.
        shared: streams that are the same in all processes.
        own: streams of this process.
    """
    if rank < len(states):
        put_back(states[rank], **shared, **(own or {}))
    else:
        for name, stream in shared.items():
            stream.set_state(states[0]["streams"][name])


def put_back(state: Mapping[str, Any], **streams: "torch.Generator") -> None:
    """Continue all streams where `capture` saw them."""
    import torch

    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
    for name, stream in streams.items():
        stream.set_state(state["streams"][name])
