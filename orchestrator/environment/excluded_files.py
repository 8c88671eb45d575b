"""Files that neither go with a job nor into recorded changes: caches, databases, and what usually holds secrets."""

from typing import Final

FOLDERS: Final = (
    ".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
    ".ipynb_checkpoints", ".tox", ".nox", "*.egg-info", "mlruns", "mlartifacts",
    ".aws", ".docker", ".kube", ".ssh", ".streamlit",
)  # fmt: skip
FILES: Final = (
    "*.pyc", ".coverage", "*.db", "*.db-*", "*.sqlite", "*.sqlite3",
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "auth_token", "token", "*_token", "secret_key",
    "authentication.ini", "credentials", "*credentials*.json", "service[-_]account*.json", "kaggle.json",
    "secrets.toml", "secrets.yaml", "secrets.yml", ".npmrc", ".netrc", ".pgpass", ".pypirc", ".git-credentials",
    "ponderay.toml", "cluster*.yaml", "cluster*.yml",
)  # fmt: skip
"""Patterns of names in lower case, at any depth."""


def git_excludes() -> list[str]:
    """The same as git's words for what to leave out."""
    names = [*FILES, *(f"{folder}/**" for folder in FOLDERS)]
    return [f":(exclude,glob,icase)**/{name}" for name in names]
