"""deploy/docker/compose.yaml as Docker Compose reads it."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.image import ROOT

FOLDER = ROOT / "deploy" / "docker"
FILE = FOLDER / "compose.yaml"
SPEC = "HEADGATE_COMPOSE_SPEC"
"""The program `cmd` of compose-go, the library of Docker Compose; `./task test` builds it where Go is installed."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def filled(text: str, variables: Mapping[str, str]) -> str:
    """With values in place of variables. Raises KeyError with the message of a required one."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if variables.get(name):
            return variables[name]
        if kind == "?":
            raise KeyError(rest)
        return rest or ""

    return _VARIABLE.sub(value, text)


def checked(text: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What the reader says of a compose file without variables; skips where there is none. ``folder``: for a copy of the text."""
    if SPEC not in os.environ:
        pytest.skip(f"{SPEC} names no compose-go, which ./task builds where Go is installed")
    (copy := folder / "compose.yaml").write_text(text, encoding="utf-8")
    command = [os.environ[SPEC], "--format", "json", str(copy)]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=60)


def services(folder: Path, **variables: str) -> Mapping[str, Any]:
    """All services, with everything that they take over from others spelled out."""
    done = checked(filled(FILE.read_text(encoding="utf-8"), variables), folder)
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)["services"]
    return found
