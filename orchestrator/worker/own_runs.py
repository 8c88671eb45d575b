"""Runs that a trainable opens in MLflow by itself go where the user's own MLFLOW_TRACKING_URI points, or nowhere.

MLflow's own default is a database in the working folder, which the processes of several replicates would write at once,
and which nobody would find on another machine.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trainables.errors import InputError, text_of

VARIABLE: Final = "MLFLOW_TRACKING_URI"
NOWHERE: Final = "no-tracking-uri-is-set:"
"""An address of a kind that MLflow knows no store for, so that it says so as soon as it is asked for one."""


@contextmanager
def own_runs() -> Iterator[None]:
    """A block of a trainable's code.

    Raises:
        InputError: if it asks MLflow for a store and has named none.
    """
    os.environ[VARIABLE] = os.environ.get(VARIABLE) or NOWHERE
    try:
        yield
    except Exception as error:
        if NOWHERE not in text_of(error):
            raise
        raise InputError(
            "A run that a trainable opens in MLflow by itself needs a store of its own: set MLFLOW_TRACKING_URI, on "
            "every machine that trains, or leave the recording to `trial.report`."
        ) from error
    finally:
        if os.environ.get(VARIABLE) == NOWHERE:
            del os.environ[VARIABLE]
