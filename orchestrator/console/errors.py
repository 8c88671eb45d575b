"""What may not start as it is."""


class RefusedError(RuntimeError):
    """A sweep that must not start as it is; the message names the remedy."""
