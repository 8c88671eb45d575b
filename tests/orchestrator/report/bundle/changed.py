"""Bundles with other members than they were written with."""

import hashlib
import json
import zipfile


def changed(file, change):
    """The bundle with its members changed by a function, and a manifest that agrees but for its format."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(members.pop("MANIFEST.json"))
    about["format"] = change(members) or about["format"]
    about["members"] = {n: {"sha256": hashlib.sha256(x).hexdigest(), "size": len(x)} for n, x in members.items()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (members | {"MANIFEST.json": json.dumps(about).encode()}).items():
            archive.writestr(name, content)
    return file
