"""What MLflow's server is told by its environment and by files: all that is secret, for arguments are seen by all."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from orchestrator.environment.credentials import administrator, secret_in, write_secret
from orchestrator.environment.settings import QUIET
from orchestrator.server.folder import MARK

KEPT_SETTINGS: Final = ("MLFLOW_S3_", "MLFLOW_BOTO_", "MLFLOW_SQLALCHEMYSTORE_")
"""Others of MLflow's, which mean clients or would undo what is set here, do not reach the server."""

CACHE_S: Final = 60
"""How long a password that was right is not checked again: its hash takes longer than most answers."""

ONLY_TRACKING: Final = {"MLFLOW_ENABLE_AI_GATEWAY": "false", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}

AUTHENTICATION: Final = """[mlflow]
default_permission = READ
database_uri = {uri}
admin_username = {user}
admin_password = {password}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = {cache_s}
"""
"""READ: whoever an administrator lets in may see the results of all, and change none but what is his own."""


def environment(folder: Path, store: str, users: str, artifacts: str, origins: Sequence[str]) -> Mapping[str, str]:
    """The variables of a server in `folder` whose databases are at `store` and `users`; writes its files.

    Args:
        origins: of pages that may change what is recorded.
    """
    settings, user = folder / "authentication.ini", administrator(folder)
    doubled = {name: text.replace("%", "%%") for name, text in {"uri": users, "password": user.password}.items()}
    write_secret(settings, AUTHENTICATION.format(user=user.user, cache_s=CACHE_S, **doubled))
    kept = {name: text for name, text in os.environ.items() if "MLFLOW_" not in name or name.startswith(KEPT_SETTINGS)}
    own = {
        MARK: str(folder),
        "MLFLOW_ARTIFACTS_DESTINATION": artifacts,
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_BACKEND_STORE_URI": store,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secret_in(folder / "secret_key"),
        "MLFLOW_REGISTRY_STORE_URI": store,
        "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins),
        "PONDERAY_USERS_URI": users,
        "PYTHONWARNINGS": "ignore",  # they are for MLflow's developers
    }
    return kept | QUIET | ONLY_TRACKING | own
