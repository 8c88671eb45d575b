"""What can go wrong in a way that has a name."""


class InputError(ValueError):
    """A user's mistake or a broken input: one line that says the rule, the value and the remedy."""


class DataWarning(UserWarning):
    """Something about the data that a user should know, though work can go on."""


class DivergedError(ArithmeticError):
    """A loss or gradient that is no longer a finite number; the message names the step."""
