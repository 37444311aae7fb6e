"""Credentials of a cluster in a folder, for Docker Compose and for services without an orchestrator."""

import os
from collections.abc import Mapping
from pathlib import Path

_SECRET = ("access.toml", "password", "settings.toml", "token", "users.acl")
"""Besides keys; whatever runs as this user or in its group reads them."""


def found_in(folder: Path) -> dict[str, str]:
    """The texts of its folders, by ``FOLDER/FILE``; of damaged ones what can be read. Raises OSError."""
    files = [path for path in folder.glob("*/*") if path.is_file() and not path.name.startswith(".")]
    return {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8", errors="replace") for path in files}


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Each file is replaced at once, so that no service reads half of one; keys before their certificates. Raises OSError."""
    for name in sorted(texts, key=lambda each: (not each.endswith(".key"), each)):
        path = folder / name
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.unlink(missing_ok=True)
        mode = 0o640 if path.suffix == ".key" or path.name in _SECRET else 0o644
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(texts[name])
        partial.replace(path)
