"""Which errors of a store pass by themselves."""

import sqlite3

import psycopg2.errors
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

from orchestrator.tracking.availability import is_unavailable

STANDBY = psycopg2.errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction")
"""While another machine of PostgreSQL takes over."""


@pytest.mark.parametrize(
    ("error", "is_away"),
    [
        (ConnectionError("refused"), True),
        (MlflowException("down", error_code=8), True),  # TEMPORARILY_UNAVAILABLE in the protocol
        (OperationalError("ROLLBACK", None, Exception("server closed the connection")), True),
        (InterfaceError("ROLLBACK", None, Exception("connection already closed")), True),
        (MlflowException.invalid_parameter_value("no such run"), False),
        (MlflowException(InternalError("INSERT", None, STANDBY), error_code=BAD_REQUEST), True),
        (InternalError("INSERT", None, STANDBY), True),
        (InternalError("INSERT", None, psycopg2.errors.InFailedSqlTransaction("aborted")), False),
        (OperationalError("SELECT", None, sqlite3.DatabaseError("database disk image is malformed")), False),
        (KeyError("x"), False),
    ],
)
def test_away_is_what_may_come_back(error, is_away):
    assert is_unavailable(error) is is_away
