"""Commands as tests of several files run them."""

import json
from typing import Any

import pytest

from headgate_cli.main import run


@pytest.fixture
def headgate(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --json; returns the exit code, the lines on stdout, and the error."""

    def call(*arguments: str) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
        code = run([*arguments, "--json"])
        captured = capsys.readouterr()
        errors = [json.loads(line)["error"] for line in captured.err.splitlines()]
        return code, [json.loads(line) for line in captured.out.splitlines()], errors[0] if errors else {}

    return call
