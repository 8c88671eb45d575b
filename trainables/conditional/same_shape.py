"""Refusal of tensors whose shapes differ, which broadcasting takes for a choice, a draw or a loss of many rows."""

from torch import Tensor


def check_same_shape(**tensors: Tensor) -> None:
    """Looks at shapes alone, so that nothing waits for a GPU.

    Raises:
        ValueError: if one, by the name of the argument that it is, has not the shape of the first.
    """
    (first, like), *others = tensors.items()
    for name, tensor in others:
        if tensor.shape != like.shape:
            raise ValueError(
                f"`{name}` must have the shape of `{first}`, {tuple(like.shape)}, but has {tuple(tensor.shape)}."
            )
