"""The process in which MLflow serves, once its tables are up to date; its databases are named in its environment.

Run as a program by `serve`, with the options of `mlflow server`.
"""

import logging
import os
import sys
from urllib.parse import urlsplit

from orchestrator.console.exit_codes import WRONG_INPUT
from orchestrator.tracking.mlflow_internals import run_server
from trainables.errors import InputError


def main() -> None:
    """Says what was done to the tables, then serves; what is wrong with a store is one line and exit code 2."""
    from orchestrator.server.schema import check_users, upgrade_store

    for name in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        done = [upgrade_store(os.environ["MLFLOW_BACKEND_STORE_URI"]), check_users(os.environ["PONDERAY_USERS_URI"])]
        _check_artifacts(os.environ["MLFLOW_ARTIFACTS_DESTINATION"])
    except InputError as error:
        print(f"ponderay: {error}", file=sys.stderr, flush=True)
        raise SystemExit(WRONG_INPUT) from None
    for sentence in filter(None, done):
        print(sentence, flush=True)
    run_server(sys.argv[1:])


def _check_artifacts(destination: str) -> None:
    """Looks into a bucket, for MLflow alone would find it closed when the first artifact comes."""
    parts = urlsplit(destination)
    if parts.scheme != "s3":
        return
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    limits = Config(connect_timeout=10, read_timeout=10, retries={"total_max_attempts": 2})
    try:
        client = boto3.client("s3", endpoint_url=os.environ.get("MLFLOW_S3_ENDPOINT_URL"), config=limits)
        client.list_objects_v2(Bucket=parts.netloc, Prefix=parts.path.lstrip("/"), MaxKeys=1)
    except (BotoCoreError, ClientError, ValueError) as error:
        raise InputError(
            f"The bucket of {destination} cannot be used: {str(error).splitlines()[0]} "
            "Check AWS_* and MLFLOW_S3_ENDPOINT_URL."
        ) from None


if __name__ == "__main__":
    main()
