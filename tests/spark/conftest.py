"""One Spark for the whole run. `./task spark` sets the environment that this needs."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from headgate_cli.main import run
from support.spark_hudi import start_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_spark(os.environ["HEADGATE_HUDI_JAR"], tmp_path_factory.mktemp("spark"), master="local[2,4]")
    yield session
    session.stop()


@pytest.fixture
def headgate(spark: Any, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --json; returns the exit code, the lines on stdout by event, and the error."""

    def call(*arguments: str) -> tuple[int, dict[str, list[dict[str, Any]]], dict[str, Any]]:
        capfd.readouterr()
        code = run([*arguments, "--json"])
        captured = capfd.readouterr()
        events: dict[str, list[dict[str, Any]]] = {}
        for line in map(json.loads, captured.out.splitlines()):
            events.setdefault(line["event"], []).append(line)
        errors = [json.loads(line)["error"] for line in captured.err.splitlines() if line.startswith('{"error"')]
        return code, events, errors[0] if errors else {}

    return call
