"""Files that neither go with a job nor into recorded changes: caches, databases, and what usually holds secrets."""

from typing import Final

FOLDERS: Final = (
    ".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
    ".ipynb_checkpoints", ".tox", ".nox", "*.egg-info", "mlruns", "mlartifacts",
    ".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kube", ".ssh", ".streamlit", "secrets", ".secrets",
)  # fmt: skip
ENDS: Final = ("json", "yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "txt", "csv")
STEMS: Final = ("secret", "secrets", "credential", "credentials", "password", "passwords", "api_key", "apikey")
FILES: Final = (
    *(f"*{stem}.{end}" for stem in STEMS for end in ENDS),
    ".secrets", "*.token", "*token.txt", "*token.json", ".htpasswd", ".s3cfg", ".boto", "rclone.conf", "*.tfstate",
    "*.tfstate.*", "*.ppk", "*.jks", "*vault_pass*", "*api_key",
    "*.pyc", ".coverage", "*.db", "*.db-*", "*.sqlite", "*.sqlite3",
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "auth_token", "token", "*_token", "secret_key",
    "authentication.ini", "credentials", "*credentials*.json", "service[-_]account*.json", "kaggle.json",
    ".npmrc", ".netrc", ".pgpass", ".pypirc", ".git-credentials",
    "kubeconfig", "*.kubeconfig", "kubeconfig.*", "rootkey.csv", "*accesskeys.csv", "key.json", "*[-_.]key.json",
    "client_secret*.json", "*.tfvars", "*.tfvars.json", "*.kdbx", "*.kdb", ".env~", "*.env~", ".#.env*", "#.env*#",
    ".dockercfg", ".dockerconfigjson", ".vault-token", ".my.cnf", ".mylogin.cnf", ".*_history", ".terraformrc",
    "*.keystore", "*.gpg",
    "ponderay.toml", "cluster*.yaml", "cluster*.yml",
)  # fmt: skip
"""Patterns of names in lower case, at any depth."""


def git_excludes() -> list[str]:
    """Pathspecs of git that leave out these files and folders."""
    names = [*FILES, *(f"{folder}/**" for folder in FOLDERS)]
    return [f":(exclude,glob,icase)**/{name}" for name in names]
