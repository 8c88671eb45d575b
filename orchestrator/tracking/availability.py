"""Which errors of a store pass by themselves, so that the same call may succeed later, and what is away then.

MLflow is imported where there is an error to look at: a driver begins to work while another thread still loads it.
"""

import errno
import sqlite3
from typing import Final

from orchestrator.journal.bucket import UnavailableError
from orchestrator.tracking.damage import is_damage, is_moved

AWAY_STATUS: Final = (401, 403, 429, 499, 500, 502, 503, 504)
FAILED: Final = 500
OF_DATA: Final = (OverflowError, UnicodeError, TypeError)
STANDBY: Final = "ReadOnlySqlTransaction"
"""What PostgreSQL answers while another machine of it takes over, through whatever library."""

DISK: Final = "A disk"
OF_DISK: Final = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE)


def is_unavailable(error: Exception) -> bool:
    """Whether the store could not be reached or could not serve, so that the same call may succeed later."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import InterfaceError, OperationalError

    if is_damage(error) or is_moved(error):
        return False
    if STANDBY in str(error):
        return True
    if is_of_data(error):
        return False
    if isinstance(error, MlflowException):
        status: int = error.get_http_status_code()  # type: ignore[no-untyped-call]
        return status in AWAY_STATUS
    return isinstance(error, (OSError, OperationalError, InterfaceError))  # from giving up on a broken connection


def is_of_data(error: BaseException) -> bool:
    """Whether what was to be written is no value that a database takes: MLflow calls that an error of its own, 500."""
    from sqlalchemy.exc import DataError

    cause = error.__cause__ or error
    return isinstance(getattr(cause, "orig", None) or cause, OF_DATA) or isinstance(cause, DataError)


def is_answer(error: Exception) -> bool:
    """Whether a server has answered that it failed, which may be for this one write alone."""
    from mlflow.exceptions import MlflowException

    if not isinstance(error, MlflowException):
        return False
    status: int = error.get_http_status_code()  # type: ignore[no-untyped-call]
    return status == FAILED


def is_of_store(error: Exception) -> bool:
    """Whether a store has raised it: MLflow, a database's driver, or the disk or network below them."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return isinstance(error, (MlflowException, SQLAlchemyError, sqlite3.Error, OSError))


def what_is_away(error: Exception) -> str:
    """What an error that `is_unavailable` knows is of, as the subject of a sentence."""
    if isinstance(error, UnavailableError):
        return "The bucket"
    if isinstance(error, OSError) and (error.errno in OF_DISK or error.filename):
        return DISK
    return "The tracking store"
